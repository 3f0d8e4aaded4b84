// SPDX-License-Identifier: GPL-2.0-only
/*
 * For speed.sh: two kernel threads do what speed.c does by system calls, so that a
 * protocol's own path shows. Not a part of ESP.
 *
 *	exec 3<>/sys/kernel/debug/kbench 4</run/netns/n0 5</run/netns/n1
 *	echo "pingpong esp 64 4000 4 v0 5 v1" >&3 && cat <&3
 *
 *	pingpong|bulk  there and back, or one way
 *	esp|tcp|udp    udp: only pingpong
 *	64 4000        bytes of a message, number of messages
 *	4 v0 5 v1      the client's network namespace, by file descriptor, and a device in
 *		       it; then the server's
 *
 * A write() makes the run and returns its error. A signal ends the run. Then the file has
 * the result, in lines "METRIC UNIT PROTO VALUE".
 */
#include <linux/completion.h>
#include <linux/debugfs.h>
#include <linux/etherdevice.h>
#include <linux/inetdevice.h>
#include <linux/kthread.h>
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/net.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/tcp.h>
#include <linux/timex.h>
#include <linux/uaccess.h>
#include <linux/wait.h>
#include <net/net_namespace.h>
#include <net/sock.h>
#include <linux/af_esp.h>

#define MOST		SZ_1M	/* bytes of a message */
#define MOST_TIMES	10000000
#define PATIENCE	(10 * HZ)	/* receive timeout: a datagram may be lost */

enum { CLIENT, SERVER, SIDES };

static const struct kind {
	const char	*name;
	int		family, type;
} kinds[] = {
	{ "esp", AF_ESP, SOCK_STREAM },
	{ "tcp", AF_INET, SOCK_STREAM },
	{ "udp", AF_INET, SOCK_DGRAM },
};

union address {
	struct sockaddr_storage	any;
	struct sockaddr_in	in;
	struct sockaddr_esp	esp;
};

struct side {
	struct run		*run;
	struct net		*net;
	int			ifindex;
	u8			mac[ETH_ALEN];
	__be32			ip;
	struct socket		*sock;
	struct task_struct	*task;
	void			*buf;
};

struct run {
	const struct kind	*kind;
	bool			bulk;
	unsigned int		size, times, warm;
	struct side		side[SIDES];
	wait_queue_head_t	wait;
	atomic_t		running;
	int			err;		/* the first */
	u32			*took;		/* ns, of each round trip */
	u64			ns;
	u64			cycles;
};

struct result {
	struct mutex		lock;		/* one run at a time; guards all below */
	size_t			len;
	char			text[320];
};

/*
 * Sockets
 */

static int find_device(struct side *s, const char *name)
{
	struct net_device *dev = dev_get_by_name(s->net, name);

	if (!dev)
		return -ENODEV;
	s->ifindex = dev->ifindex;
	if (dev->addr_len == ETH_ALEN)
		ether_addr_copy(s->mac, dev->dev_addr);
	s->ip = inet_select_addr(dev, 0, RT_SCOPE_UNIVERSE);
	dev_put(dev);
	return 0;
}

static int create(const struct kind *kind, struct side *s)
{
	int err = sock_create_kern(s->net, kind->family, kind->type, 0, &s->sock);

	if (err)
		return err;
	if (kind->family == AF_INET && kind->type == SOCK_STREAM)
		tcp_sock_set_nodelay(s->sock->sk);
	s->sock->sk->sk_rcvtimeo = PATIENCE;
	s->sock->sk->sk_sndtimeo = PATIENCE;
	return 0;
}

/* Addresses are void pointers because newer kernels have another type for them. */
static int bind_own(const struct kind *kind, struct side *s)
{
	union address a = {};

	if (kind->family == AF_ESP) {
		a.esp.sesp_family = AF_ESP;
		a.esp.sesp_ifindex = s->ifindex;
		return kernel_bind(s->sock, (void *)&a, sizeof(a.esp));
	}
	a.in.sin_family = AF_INET;
	a.in.sin_addr.s_addr = s->ip;
	return kernel_bind(s->sock, (void *)&a, sizeof(a.in));
}

static int connect_to(const struct kind *kind, struct side *s, struct side *to)
{
	union address a = {};
	int err = kernel_getsockname(to->sock, (void *)&a);

	if (err < 0)
		return err;
	if (kind->family == AF_ESP) {
		a.esp.sesp_ifindex = s->ifindex;
		a.esp.sesp_halen = ETH_ALEN;
		ether_addr_copy(a.esp.sesp_addr, to->mac);
		return kernel_connect(s->sock, (void *)&a, sizeof(a.esp), 0);
	}
	return kernel_connect(s->sock, (void *)&a, sizeof(a.in), 0);
}

static int accept_one(struct side *s)
{
	struct socket *listener = s->sock;
	int err;

	s->sock = NULL;
	err = kernel_accept(listener, &s->sock, 0);
	sock_release(listener);
	return err;
}

static int open_sockets(struct run *run)
{
	struct side *c = &run->side[CLIENT], *s = &run->side[SERVER];
	const struct kind *kind = run->kind;
	int err;

	err = create(kind, s) ?: create(kind, c) ?: bind_own(kind, s);
	if (err)
		return err;
	if (kind->type == SOCK_DGRAM)
		return bind_own(kind, c) ?: connect_to(kind, c, s) ?: connect_to(kind, s, c);
	return kernel_listen(s->sock, 1) ?: connect_to(kind, c, s) ?: accept_one(s);
}

/*
 * Threads
 */

static int send_all(struct side *s, size_t n)
{
	struct kvec vec = { .iov_base = s->buf };
	int sent;

	while (n) {
		struct msghdr msg = { .msg_flags = MSG_NOSIGNAL };

		vec.iov_len = n;
		sent = kernel_sendmsg(s->sock, &msg, &vec, 1, n);
		if (sent < 0)
			return sent;
		n -= sent;
		cond_resched();
	}
	return 0;
}

/* Receive @n bytes, at most @most with each call. */
static int recv_all(struct side *s, u64 n, size_t most)
{
	struct kvec vec = { .iov_base = s->buf };
	int got;

	while (n) {
		struct msghdr msg = {};

		vec.iov_len = min_t(u64, n, most);
		got = kernel_recvmsg(s->sock, &msg, &vec, 1, vec.iov_len, 0);
		if (got <= 0)
			return got ?: -ECONNRESET;
		n -= got;
		cond_resched();
	}
	return 0;
}

static int ping(struct run *run)
{
	struct side *s = &run->side[CLIENT];
	u64 began = 0, last = 0, now;
	unsigned int i;
	int err;

	for (i = 0; i < run->warm + run->times; i++) {
		if (i == run->warm) {
			run->cycles = get_cycles();
			began = ktime_get_ns();
			last = began;
		}
		err = send_all(s, run->size) ?: recv_all(s, run->size, run->size);
		if (err)
			return err;
		if (i < run->warm)
			continue;
		now = ktime_get_ns();
		run->took[i - run->warm] = min_t(u64, now - last, U32_MAX);
		last = now;
	}
	run->ns = last - began;
	run->cycles = get_cycles() - run->cycles;
	return 0;
}

static int pong(struct run *run)
{
	struct side *s = &run->side[SERVER];
	unsigned int i;
	int err;

	for (i = 0; i < run->warm + run->times; i++) {
		err = recv_all(s, run->size, run->size) ?: send_all(s, run->size);
		if (err)
			return err;
	}
	return 0;
}

/* Send all; the receiver returns one byte when everything has arrived. */
static int put(struct run *run, unsigned int times)
{
	struct side *s = &run->side[CLIENT];
	int err = 0;

	while (times-- && !err)
		err = send_all(s, run->size);
	return err ?: recv_all(s, 1, 1);
}

static int put_all(struct run *run)
{
	int err = put(run, run->warm);

	if (err)
		return err;
	run->cycles = get_cycles();
	run->ns = ktime_get_ns();
	err = put(run, run->times);
	run->ns = ktime_get_ns() - run->ns;
	run->cycles = get_cycles() - run->cycles;
	return err;
}

static int take_all(struct run *run)
{
	struct side *s = &run->side[SERVER];

	return recv_all(s, (u64)run->size * run->warm, MOST) ?: send_all(s, 1) ?:
	       recv_all(s, (u64)run->size * run->times, MOST) ?: send_all(s, 1);
}

static int thread(void *data)
{
	struct side *s = data;
	struct run *run = s->run;
	int err;

	allow_kernel_signal(SIGKILL);
	if (s == &run->side[CLIENT])
		err = run->bulk ? put_all(run) : ping(run);
	else
		err = run->bulk ? take_all(run) : pong(run);
	if (err)
		cmpxchg(&run->err, 0, err);
	atomic_dec(&run->running);
	wake_up(&run->wait);
	return 0;
}

/* Bind each thread to a processor, the two to different ones if there are two. */
static int start(struct side *s, int cpu)
{
	struct task_struct *task;

	task = kthread_create(thread, s, "kbench");
	if (IS_ERR(task))
		return PTR_ERR(task);
	kthread_bind(task, cpu);
	get_task_struct(task);
	s->task = task;
	return 0;
}

/* Run both threads, or none, and wait for them in any case. */
static int run_threads(struct run *run)
{
	int first = cpumask_first(cpu_online_mask), second = cpumask_next(first, cpu_online_mask);
	int err, i;

	init_waitqueue_head(&run->wait);
	atomic_set(&run->running, SIDES);
	err = start(&run->side[CLIENT], first) ?:
	      start(&run->side[SERVER], second < nr_cpu_ids ? second : first);
	if (!err) {
		for (i = 0; i < SIDES; i++)
			wake_up_process(run->side[i].task);
		err = wait_event_interruptible(run->wait, !atomic_read(&run->running) ||
					       READ_ONCE(run->err));
		if (err || READ_ONCE(run->err))
			for (i = 0; i < SIDES; i++)
				send_sig(SIGKILL, run->side[i].task, 1);
		wait_event(run->wait, !atomic_read(&run->running));
	}
	for (i = 0; i < SIDES; i++) {
		if (!run->side[i].task)
			continue;
		kthread_stop(run->side[i].task);
		put_task_struct(run->side[i].task);
	}
	return err ? -EINTR : run->err;
}

/*
 * The file
 */

static int compare(const void *a, const void *b)
{
	u32 x = *(const u32 *)a, y = *(const u32 *)b;

	return (x > y) - (x < y);
}

__printf(2, 3)
static void say(struct result *r, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	r->len += vscnprintf(r->text + r->len, sizeof(r->text) - r->len, format, args);
	va_end(args);
}

/* Add a line with @value / @by, with six decimals. */
static void metric(struct result *r, const char *what, const char *proto, u64 value, u64 by)
{
	u64 whole, rest;

	whole = div64_u64_rem(value, by, &rest);
	say(r, "%s %s %llu.%06llu\n", what, proto, whole, div64_u64(rest * 1000000, by));
}

static void show(struct result *r, struct run *run)
{
	u64 bytes = (u64)run->size * run->times;
	const char *proto = run->kind->name;

	say(r, "# %s %s, %u times %u bytes in %llu ns\n", proto, run->bulk ? "bulk" : "pingpong",
	    run->times, run->size, run->ns);
	if (run->bulk) {
		metric(r, "rate Gbit/s", proto, bytes * 8, max(run->ns, 1ULL));
		if (run->cycles)
			metric(r, "cost cycles/byte", proto, run->cycles, bytes);
		return;
	}
	sort(run->took, run->times, sizeof(*run->took), compare, NULL);
	metric(r, "median us", proto, run->took[run->times / 2], 1000);
	metric(r, "p99 us", proto, run->took[(u64)run->times * 99 / 100], 1000);
	metric(r, "mean us", proto, run->ns, 1000ULL * run->times);
	if (run->cycles)
		metric(r, "cost cycles", proto, run->cycles, run->times);
}

static int parse(struct run *run, const char *text)
{
	char how[9], proto[4], dev[SIDES][IFNAMSIZ];
	int fd[SIDES], end = 0, i;
	struct net *net;

	if (sscanf(text, "%8s %3s %u %u %d %15s %d %15s %n", how, proto, &run->size, &run->times,
		   &fd[CLIENT], dev[CLIENT], &fd[SERVER], dev[SERVER], &end) != 8 || text[end])
		return -EINVAL;
	for (i = 0; i < ARRAY_SIZE(kinds); i++)
		if (!strcmp(proto, kinds[i].name))
			run->kind = &kinds[i];
	run->bulk = !strcmp(how, "bulk");
	run->warm = run->times / 8 + 1;
	if (!run->kind || (!run->bulk && strcmp(how, "pingpong")) ||
	    (run->bulk && run->kind->type == SOCK_DGRAM) ||
	    !run->size || run->size > MOST || !run->times || run->times > MOST_TIMES)
		return -EINVAL;
	for (i = 0; i < SIDES; i++) {
		int err;

		net = get_net_ns_by_fd(fd[i]);
		if (IS_ERR(net))
			return PTR_ERR(net);
		run->side[i].run = run;
		run->side[i].net = net;
		err = find_device(&run->side[i], dev[i]);
		if (err)
			return err;
	}
	return 0;
}

static int prepare(struct run *run)
{
	int i;

	for (i = 0; i < SIDES; i++) {
		run->side[i].buf = kvzalloc(MOST, GFP_KERNEL);
		if (!run->side[i].buf)
			return -ENOMEM;
	}
	if (!run->bulk) {
		run->took = kvcalloc(run->times, sizeof(*run->took), GFP_KERNEL);
		if (!run->took)
			return -ENOMEM;
	}
	return open_sockets(run);
}

static void put_run(struct run *run)
{
	int i;

	for (i = 0; i < SIDES; i++) {
		struct side *s = &run->side[i];

		if (s->sock)
			sock_release(s->sock);
		if (s->net)
			put_net(s->net);
		kvfree(s->buf);
	}
	kvfree(run->took);
	kfree(run);
}

static int execute(struct result *r, const char *text)
{
	struct run *run = kzalloc(sizeof(*run), GFP_KERNEL);
	int err;

	r->len = 0;
	if (!run)
		return -ENOMEM;
	err = parse(run, text) ?: prepare(run) ?: run_threads(run);
	if (!err)
		show(r, run);
	put_run(run);
	return err;
}

static int kbench_open(struct inode *inode, struct file *file)
{
	struct result *r = kzalloc(sizeof(*r), GFP_KERNEL);

	if (!r)
		return -ENOMEM;
	mutex_init(&r->lock);
	file->private_data = r;
	return 0;
}

static int kbench_release(struct inode *inode, struct file *file)
{
	kfree(file->private_data);
	return 0;
}

static ssize_t kbench_write(struct file *file, const char __user *buf, size_t len, loff_t *pos)
{
	struct result *r = file->private_data;
	char text[128];
	int err;

	if (len >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, buf, len))
		return -EFAULT;
	text[len] = 0;
	if (mutex_lock_interruptible(&r->lock))
		return -EINTR;
	err = execute(r, text);
	mutex_unlock(&r->lock);
	/* the kernel must not restart the call after a signal */
	return err == -ERESTARTSYS ? -EINTR : err ?: (ssize_t)len;
}

/* Read from the beginning, wherever a write() left the file position. */
static ssize_t kbench_read(struct file *file, char __user *buf, size_t len, loff_t *pos)
{
	struct result *r = file->private_data;
	ssize_t n;

	if (mutex_lock_interruptible(&r->lock))
		return -EINTR;
	n = simple_read_from_buffer(buf, len, pos, r->text, r->len);
	mutex_unlock(&r->lock);
	return n;
}

static const struct file_operations kbench_fops = {
	.owner		= THIS_MODULE,
	.open		= kbench_open,
	.release	= kbench_release,
	.write		= kbench_write,
	.read		= kbench_read,
};

static struct dentry *kbench_file;

static int __init kbench_init(void)
{
	kbench_file = debugfs_create_file("kbench", 0600, NULL, NULL, &kbench_fops);
	return PTR_ERR_OR_ZERO(kbench_file);
}
module_init(kbench_init);

static void __exit kbench_exit(void)
{
	debugfs_remove(kbench_file);
}
module_exit(kbench_exit);

MODULE_DESCRIPTION("Socket benchmark from kernel threads");
MODULE_LICENSE("GPL");
