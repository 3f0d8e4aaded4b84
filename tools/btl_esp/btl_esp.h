/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Open MPI's byte transfer layer over AF_ESP: the declarations that its files share.
 *
 *	btl_esp_component.c	parameters, start, published addresses, progress
 *	btl_esp_if.c		interfaces of this host that can carry ESP
 *	btl_esp_proc.c		peers, and which interface talks to which of theirs
 *	btl_esp_module.c	one interface: the functions that the PML calls
 *	btl_esp_endpoint.c	one connection: its beginning, its queue, its end
 *	btl_esp_frag.c		descriptors, and their bytes in a connection
 *
 * Locks, in the order in which they are taken: component.progress_lock is held by the one thread
 * that receives and accepts, and while an endpoint is freed; a nested or second call of progress
 * returns at once. component.proc_lock guards the table of peers, and the endpoints of peers and
 * modules. An endpoint's lock guards its state, socket and queue; a sender holds this lock alone,
 * also when it begins to connect. No callback of the PML is called with any lock but the first.
 */
#ifndef MCA_BTL_ESP_H
#define MCA_BTL_ESP_H

#include "opal_config.h"

#include <net/if.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "opal/class/opal_bitmap.h"
#include "opal/class/opal_free_list.h"
#include "opal/class/opal_hash_table.h"
#include "opal/constants.h"
#include "opal/datatype/opal_convertor.h"
#include "opal/mca/btl/base/base.h"
#include "opal/mca/btl/btl.h"
#include "opal/util/output.h"
#include "opal/util/proc.h"

#if OPAL_MAJOR_VERSION < 5
#include "opal/mca/pmix/pmix.h"
#include "opal/threads/mutex.h"
#define ESP_MODEX_SCOPE		OPAL_PMIX_GLOBAL
#define ESP_RECEIVED		mca_btl_base_descriptor_t
#else
#include "opal/mca/pmix/pmix-internal.h"
#include "opal/mca/threads/mutex.h"
#define ESP_MODEX_SCOPE		PMIX_GLOBAL
#define ESP_RECEIVED		mca_btl_base_receive_descriptor_t
#endif

#include <linux/af_esp.h>
#include "device.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define container_of(pointer, type, member) \
	((type *)((char *)(pointer) - offsetof(type, member)))

#define ESP_MAGIC	0x4d504945	/* a host of the other byte order reads another number */
#define ESP_VERSION	3
#define ESP_ORDER	0x0102
#define ESP_MAX_LINKS	16
#define ESP_MAX_MODULES	64
#define ESP_RECV_BUFFER	(16 * 1024)

/* A descriptor in the epoll set; ready() is called with progress_lock held. */
struct mca_btl_esp_watch {
	int		fd;
	uint32_t	events;
	int		(*ready)(struct mca_btl_esp_watch *watch, uint32_t events);
};

/* An interface that carries ESP. */
struct mca_btl_esp_if {
	char		name[IFNAMSIZ];
	char		label[ALTIFNAMSIZ];	/* interfaces of equal labels talk to each other */
	uint8_t		mac[6];
	uint32_t	ifindex;
	uint32_t	mtu;
	uint32_t	speed;			/* Mbit/s */
};

/* Published for each module; port is big-endian. */
struct mca_btl_esp_addr {
	char		label[ALTIFNAMSIZ];
	uint8_t		mac[6];
	uint16_t	port;
	uint32_t	ifindex;
	uint32_t	mtu;
	uint32_t	speed;
	uint32_t	link;
};

/* Published for each process. */
struct mca_btl_esp_modex {
	uint32_t	magic;
	uint16_t	version;
	uint16_t	order;
	uint64_t	key;		/* a process that connects must know it */
	uint32_t	max_frag;	/* bytes of the largest fragment it sends */
	uint32_t	count;
	struct mca_btl_esp_addr	addrs[];
};

/* The first bytes in either direction of a connection. */
enum mca_btl_esp_say {
	ESP_HELLO	= 1,	/* from the process that connects */
	ESP_WELCOME	= 2,	/* answer: this connection stays */
	ESP_YIELD	= 3,	/* answer: the one that I make stays */
};

struct mca_btl_esp_ident {
	uint32_t	magic;
	uint16_t	version;
	uint16_t	order;
	uint32_t	say;
	uint32_t	zero;
	uint64_t	key;		/* of the process that accepts */
	opal_process_name_t	name;
};

/* The header of each fragment; all begin at multiples of 8 bytes. */
struct mca_btl_esp_hdr {
	uint32_t	size;		/* without header and padding */
	uint8_t		tag;
	uint8_t		zero[3];
};

/* Tags of this component; the PML doesn't use them. */
#define ESP_TAG_BYE	0	/* no more will come */
#define ESP_TAG_PUT	1	/* bytes follow for the place in struct mca_btl_esp_put */
#define ESP_PADDED(n)	(((size_t)(n) + 7) & ~(size_t)7)

/* The fragment before SIZE bytes for the peer's memory, and padding. */
struct mca_btl_esp_put {
	uint64_t	address;
	uint64_t	size;
};

struct mca_btl_esp_frag {
	mca_btl_base_descriptor_t	base;
	mca_btl_base_segment_t		segments[2];
	struct mca_btl_base_endpoint_t	*ep;		/* the endpoint that sends it */
	struct mca_btl_esp_hdr		hdr;
	size_t				sent;	/* bytes, with header and padding */
	size_t				total;
	mca_btl_base_rdma_completion_fn_t put_done;	/* called when a put is sent */
	void				*put_context;
	void				*put_data;
	opal_free_list_t		*list;
	uint64_t			buffer[];
};

struct mca_btl_esp_module {
	mca_btl_base_module_t			super;
	struct mca_btl_esp_if			iface;
	struct mca_btl_esp_watch		listener;
	uint16_t				port;
	uint32_t				link;
	int					index;
	opal_list_t				endpoints;
	mca_btl_base_module_error_cb_fn_t	error_cb;
};

struct mca_btl_esp_component {
	mca_btl_base_component_t	super;

	/* parameters */
	char		*if_include;
	char		*if_exclude;
	int		links;
	int		sndbuf;
	int		rcvbuf;
	int		first_burst;
	int		free_list_num;
	int		free_list_max;
	int		free_list_inc;

	struct mca_btl_esp_module	*modules[ESP_MAX_MODULES];
	int				nmodules;
	uint64_t			key;
	size_t				max_frag;
	int				epoll;
	char				*recv_buffer;
	opal_mutex_t			progress_lock;
	opal_mutex_t			proc_lock;
	opal_proc_table_t		procs;
	opal_list_t			incoming;
	size_t				max_incoming;
	opal_free_list_t		frags_small;
	opal_free_list_t		frags_eager;
	opal_free_list_t		frags_max;
};

extern struct mca_btl_esp_component mca_btl_esp_component;

struct mca_btl_esp_proc {
	opal_proc_t			*opal;
	opal_process_name_t		name;
	struct mca_btl_esp_modex	*modex;
	size_t				users;
	int				match[ESP_MAX_MODULES];	/* index of addrs; -1: none */
	struct mca_btl_base_endpoint_t	*endpoints[ESP_MAX_MODULES];
};

enum mca_btl_esp_state {
	ESP_CLOSED,
	ESP_CONNECTING,		/* connect() is on its way */
	ESP_GREETED,		/* HELLO is sent, no answer yet */
	ESP_YIELDED,		/* the peer's connection must come */
	ESP_CONNECTED,
	ESP_ENDED,		/* the peer said BYE */
	ESP_FAILED,
};

struct mca_btl_base_endpoint_t {
	opal_list_item_t		super;		/* of module->endpoints */
	struct mca_btl_esp_module	*module;
	struct mca_btl_esp_proc		*proc;
	struct mca_btl_esp_addr		*addr;
	opal_mutex_t			lock;
	enum mca_btl_esp_state		state;
	struct mca_btl_esp_watch	watch;
	opal_list_t			queue;		/* fragments to be sent */

	/* the receiver's state */
	union {
		struct mca_btl_esp_ident	ident;
		struct mca_btl_esp_hdr		hdr;
		char				bytes[sizeof(struct mca_btl_esp_ident)];
	} head;					/* begin of an answer or a fragment */
	size_t				head_have;
	char				*partial;	/* a fragment that has come in part */
	/*
	 * where the next bytes belong: the rest of partial, or the user's memory and a put's
	 * padding
	 */
	struct iovec			rest[2];
	char				padding[8];
};

/* btl_esp_component.c */
int mca_btl_esp_watch(struct mca_btl_esp_watch *watch, uint32_t events);
void mca_btl_esp_unwatch(struct mca_btl_esp_watch *watch);
int mca_btl_esp_setup_socket(int fd);
void mca_btl_esp_say(bool important, const char *format, ...)
	__opal_attribute_format__(__printf__, 2, 3);
void mca_btl_esp_give_up(struct mca_btl_esp_module *module, opal_proc_t *peer, char *text);

/* btl_esp_if.c */
int mca_btl_esp_interfaces(struct mca_btl_esp_if *list, int max);

/* btl_esp_proc.c */
void mca_btl_esp_proc_put(struct mca_btl_esp_proc *proc);
void mca_btl_esp_proc_remove(struct mca_btl_base_endpoint_t *ep);
struct mca_btl_base_endpoint_t *mca_btl_esp_proc_endpoint(opal_proc_t *opal,
							  struct mca_btl_esp_module *module);

/* btl_esp_module.c */
extern mca_btl_base_module_t mca_btl_esp_template;

/* btl_esp_endpoint.c */
struct mca_btl_base_endpoint_t *mca_btl_esp_endpoint_new(struct mca_btl_esp_module *module,
							 struct mca_btl_esp_proc *proc);
void mca_btl_esp_endpoint_free(struct mca_btl_base_endpoint_t *ep);
int mca_btl_esp_endpoint_send(struct mca_btl_base_endpoint_t *ep, struct mca_btl_esp_frag *frag);
int mca_btl_esp_endpoint_sendi(struct mca_btl_base_endpoint_t *ep, struct iovec *iov, int count,
			       size_t size, uint8_t tag);
void mca_btl_esp_endpoint_accept(struct mca_btl_base_endpoint_t *ep, int fd);
int mca_btl_esp_ident_send(int fd, enum mca_btl_esp_say say, uint64_t key);
bool mca_btl_esp_ident_ok(const struct mca_btl_esp_ident *ident);

/* btl_esp_frag.c */
int mca_btl_esp_frags_init(void);
void mca_btl_esp_frags_fini(void);
struct mca_btl_esp_frag *mca_btl_esp_frag_get(size_t size);
void mca_btl_esp_frag_put(struct mca_btl_esp_frag *frag);
void mca_btl_esp_frag_start(struct mca_btl_esp_frag *frag, uint8_t tag);
void mca_btl_esp_frag_start_put(struct mca_btl_esp_frag *frag, void *from, uint64_t to,
				size_t size);
int mca_btl_esp_frag_gather(struct mca_btl_esp_frag *frag, struct iovec *iov);
void mca_btl_esp_frag_sent(struct mca_btl_esp_frag *frag);

#define ESP_FRAG_IOVS	4	/* parts of a fragment: header, two segments, padding */
#define ESP_FRAG_SMALL	512	/* bytes: for control messages, headers and sendi */
extern const char mca_btl_esp_padding[8];

#endif
