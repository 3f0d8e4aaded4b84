/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * esp - the user's tool of the Ethernet Streaming Protocol
 */
#ifndef ESP_H
#define ESP_H

#include <argp.h>
#include <errno.h>
#include <error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <linux/af_esp.h>

/* Exit codes, documented in esp(8). */
enum {
	EXIT_OK,
	EXIT_USAGE,
	EXIT_REFUSED,
	EXIT_TIMEOUT,
	EXIT_UNREACHABLE,
	EXIT_RESET,
	EXIT_IO,
};

/* Subcommands: argv[0] is "esp NAME", the result an exit code. */
int cmd_listen(int argc, char **argv);
int cmd_connect(int argc, char **argv);
int cmd_perf(int argc, char **argv);
int cmd_ping(int argc, char **argv);
int cmd_show(int argc, char **argv);
int cmd_kill(int argc, char **argv);
int cmd_dev(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_proxy(int argc, char **argv);

/**
 * struct address - where to connect to or to listen, ESP or TCP
 * @type:	socket type
 * @len:	length of the socket address
 * @sa:		the address, its family included; @esp and @storage as well
 */
struct address {
	int type;
	socklen_t len;
	union {
		struct sockaddr sa;
		struct sockaddr_esp esp;
		struct sockaddr_storage storage;
	};
};

#define ADDRESS_STRLEN	96
#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

/* addr.c: functions that end the program with a message when something is wrong. */
void address_parse(struct address *addr, const char *text, int type,
		   bool passive);
void address_parse_part(struct address *addr, const char *text);
void address_parse_host(struct address *addr, const char *text);
void address_parse_tcp(struct address *addr, const char *text, bool passive);
int address_connect(const struct address *addr, unsigned int sport,
		    int timeout_ms);
int address_listen(const struct address *addr, int backlog);
void address_fail(const struct address *addr, const char *what);
int exit_code(int err);

const char *address_format(const struct sockaddr *sa, char *buf);
const char *address_of(int fd, bool peer, char *buf);

/* util.c */
void print_stats(const struct esp_stats *stats, bool json);
void json_string(const char *text);

void set_nonblock(int fd, bool on);
__u64 parse_number(struct argp_state *state, const char *arg, const char *what,
		   __u64 min, __u64 max);
__u64 parse_size(struct argp_state *state, const char *arg, const char *what,
		 __u64 max);

#endif /* ESP_H */
