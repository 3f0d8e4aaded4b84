// SPDX-License-Identifier: BSD-3-Clause
/*
 * The component: its parameters, a module for each interface and link, their published addresses,
 * incoming connections, and progress.
 *
 * Progress never waits. It looks at an epoll set of the component's own, not at Open MPI's event
 * base, because that costs one system call where the event library makes several for its timers. A
 * process that waits calls it all the same (opal_progress()).
 */
#include "btl_esp.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "opal/mca/base/mca_base_var.h"
#include "opal/util/argv.h"

#define EVENTS		64
#define BACKLOG		1024
#define STRANGERS	64

/* An incoming connection whose HELLO is not complete. */
struct mca_btl_esp_incoming {
	opal_list_item_t		super;
	struct mca_btl_esp_watch	watch;
	struct mca_btl_esp_module	*module;
	struct mca_btl_esp_ident	ident;
	size_t				have;
};

static int component_register(void);
static int component_open(void);
static int component_close(void);
static mca_btl_base_module_t **component_init(int *count, bool progress_threads, bool mpi_threads);
static int component_progress(void);

struct mca_btl_esp_component mca_btl_esp_component = {
	.super = {
		.btl_version = {
			MCA_BTL_DEFAULT_VERSION("esp"),
			.mca_open_component	= component_open,
			.mca_close_component	= component_close,
			.mca_register_component_params = component_register,
		},
		.btl_data = {
			.param_field = MCA_BASE_METADATA_PARAM_NONE,
		},
		.btl_init	= component_init,
		.btl_progress	= component_progress,
	},
};

/* Did the user ask for this component by name? */
static bool wanted(void)
{
	const char **value = NULL;
	char **names;
	bool found = false;
	int id;

	id = mca_base_var_find("opal", "btl", NULL, NULL);
	if (id < 0 || mca_base_var_get_value(id, &value, NULL, NULL) != OPAL_SUCCESS ||
	    !value || !*value || **value == '^')
		return false;
	names = opal_argv_split(*value, ',');
	for (char **i = names; i && *i; i++)
		found |= strcmp(*i, "esp") == 0;
	opal_argv_free(names);
	return found;
}

/*
 * Tell the user one line, from the first process of a host. A line that isn't IMPORTANT is told
 * only if the user asked for this component by name; important is, for instance, a setting of the
 * user's.
 */
void mca_btl_esp_say(bool important, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (opal_process_info.my_local_rank == 0 && (important || wanted()))
		opal_output(0, "btl:esp: %s: %s", opal_process_info.nodename, text);
	else
		opal_output_verbose(10, opal_btl_base_framework.framework_output,
				    "btl:esp: %s: %s", opal_process_info.nodename, text);
}

/*
 * Report the failure in TEXT, which concerns PEER or NULL. It ends the job, unless the PML knows
 * better.
 */
void mca_btl_esp_give_up(struct mca_btl_esp_module *module, opal_proc_t *peer, char *text)
{
	/* OB1 takes the text for a format. */
	for (char *p = text; *p; p++)
		*p = *p == '%' ? '_' : *p;
	if (module->error_cb)
		module->error_cb(&module->super, MCA_BTL_ERROR_FLAGS_FATAL, peer, text);
	else
		opal_output(0, "%s", text);
}

static void parameter(const char *name, const char *help, mca_base_var_type_t type, int level,
		      void *storage)
{
	mca_base_component_var_register(&mca_btl_esp_component.super.btl_version, name, help, type,
					NULL, 0, 0, level, MCA_BASE_VAR_SCOPE_READONLY, storage);
}

static int component_register(void)
{
	struct mca_btl_esp_component *c = &mca_btl_esp_component;

	c->if_include = NULL;
	parameter("if_include",
		  "Interfaces to be used, with commas (empty: all that are up and enabled for ESP). NAME=LABEL: interfaces of equal labels, which are their names if none is given, are connected with each other; what is left in the order of this list",
		  MCA_BASE_VAR_TYPE_STRING, OPAL_INFO_LVL_1, &c->if_include);
	c->if_exclude = NULL;
	parameter("if_exclude",
		  "Interfaces not to be used, with commas; not together with if_include",
		  MCA_BASE_VAR_TYPE_STRING, OPAL_INFO_LVL_1, &c->if_exclude);
	c->links = 1;
	parameter("links",
		  "Connections to each peer through each interface (1 to 16)",
		  MCA_BASE_VAR_TYPE_INT, OPAL_INFO_LVL_4, &c->links);
	c->sndbuf = 0;
	parameter("sndbuf",
		  "Send buffer of a socket, in bytes (0: the kernel's own, which grows; or from 4096)",
		  MCA_BASE_VAR_TYPE_INT, OPAL_INFO_LVL_4, &c->sndbuf);
	c->rcvbuf = 0;
	parameter("rcvbuf",
		  "Receive buffer of a socket, in bytes (0: net.esp.rcvbuf; or from 4096)",
		  MCA_BASE_VAR_TYPE_INT, OPAL_INFO_LVL_4, &c->rcvbuf);
	c->first_burst = -1;
	parameter("first_burst",
		  "Packets behind the first one of a message that may be sent before the receiver has answered (0 to 64; -1: as the kernel does)",
		  MCA_BASE_VAR_TYPE_INT, OPAL_INFO_LVL_4, &c->first_burst);
	c->free_list_num = 8;
	parameter("free_list_num", "Fragments of each size to begin with (from 0)",
		  MCA_BASE_VAR_TYPE_INT, OPAL_INFO_LVL_5, &c->free_list_num);
	c->free_list_max = -1;
	parameter("free_list_max",
		  "Fragments of each size with more than 512 bytes at most; messages wait until there are some again (-1: no bound; or from 1)",
		  MCA_BASE_VAR_TYPE_INT, OPAL_INFO_LVL_5, &c->free_list_max);
	c->free_list_inc = 32;
	parameter("free_list_inc", "Fragments to add when there are none left (from 1)",
		  MCA_BASE_VAR_TYPE_INT, OPAL_INFO_LVL_5, &c->free_list_inc);
	return mca_btl_base_param_register(&c->super.btl_version, &mca_btl_esp_template);
}

/* Return the number of processes of the job; 0: unknown. */
static uint32_t job_size(void)
{
#if OPAL_MAJOR_VERSION < 5
	opal_process_name_t all = OPAL_PROC_MY_NAME;
	uint32_t size, *p = &size;
	int rc;

	all.vpid = OPAL_VPID_WILDCARD;
	OPAL_MODEX_RECV_VALUE(rc, OPAL_PMIX_JOB_SIZE, &all, &p, OPAL_UINT32);
	return rc == OPAL_SUCCESS ? size : 0;
#else
	return opal_process_info.num_procs;
#endif
}

/* Are all parameters in their ranges? Tells the user which isn't. */
static bool parameters_ok(void)
{
	struct mca_btl_esp_component *c = &mca_btl_esp_component;
	mca_btl_base_module_t *m = &mca_btl_esp_template;
	const struct {
		const char *name;
		long long value, low, high;
	} ranges[] = {
		{ "links", c->links, 1, ESP_MAX_LINKS },
		{ "sndbuf", c->sndbuf, c->sndbuf ? 4096 : 0, INT32_MAX },
		{ "rcvbuf", c->rcvbuf, c->rcvbuf ? 4096 : 0, INT32_MAX },
		{ "first_burst", c->first_burst, -1, 64 },
		{ "latency", m->btl_latency, 1, UINT32_MAX },
		{ "free_list_num", c->free_list_num, 0, INT32_MAX },
		{ "free_list_max", c->free_list_max, c->free_list_max == -1 ? -1 : 1, INT32_MAX },
		{ "free_list_inc", c->free_list_inc, 1, INT32_MAX },
		{ "eager_limit", m->btl_eager_limit, ESP_FRAG_SMALL, 1 << 30 },
		{ "rndv_eager_limit", m->btl_rndv_eager_limit, ESP_FRAG_SMALL, 1 << 30 },
		{ "max_send_size", m->btl_max_send_size, ESP_FRAG_SMALL, 1 << 30 },
		{ "rdma_pipeline_send_length", m->btl_rdma_pipeline_send_length, 0, INT64_MAX },
		{ "rdma_pipeline_frag_size", m->btl_rdma_pipeline_frag_size, ESP_FRAG_SMALL,
		  INT64_MAX },
	};

	for (size_t i = 0; i < ARRAY_SIZE(ranges); i++) {
		if (ranges[i].value >= ranges[i].low && ranges[i].value <= ranges[i].high)
			continue;
		mca_btl_esp_say(true, "btl_esp_%s is %lld, which is not from %lld to %lld",
				ranges[i].name, ranges[i].value, ranges[i].low, ranges[i].high);
		return false;
	}
	if (c->if_include && *c->if_include && c->if_exclude && *c->if_exclude) {
		mca_btl_esp_say(true, "%s and %s exclude each other", "btl_esp_if_include",
				"btl_esp_if_exclude");
		return false;
	}
	return true;
}

static int component_open(void)
{
	struct mca_btl_esp_component *c = &mca_btl_esp_component;

	c->nmodules = 0;
	c->epoll = -1;
	c->recv_buffer = NULL;
	OBJ_CONSTRUCT(&c->progress_lock, opal_mutex_t);
	OBJ_CONSTRUCT(&c->proc_lock, opal_mutex_t);
	OBJ_CONSTRUCT(&c->incoming, opal_list_t);
	OBJ_CONSTRUCT(&c->procs, opal_proc_table_t);
	return opal_proc_table_init(&c->procs, 16, 256);
}

static void incoming_end(struct mca_btl_esp_incoming *in)
{
	mca_btl_esp_unwatch(&in->watch);
	opal_list_remove_item(&mca_btl_esp_component.incoming, &in->super);
	OBJ_DESTRUCT(&in->super);
	free(in);
}

static int component_close(void)
{
	struct mca_btl_esp_component *c = &mca_btl_esp_component;

	while (!opal_list_is_empty(&c->incoming)) {
		struct mca_btl_esp_incoming *in = (void *)opal_list_get_first(&c->incoming);

		close(in->watch.fd);
		incoming_end(in);
	}
	if (c->epoll >= 0) {
		close(c->epoll);
		mca_btl_esp_frags_fini();
	}
	free(c->recv_buffer);
	OBJ_DESTRUCT(&c->procs);
	OBJ_DESTRUCT(&c->incoming);
	OBJ_DESTRUCT(&c->proc_lock);
	OBJ_DESTRUCT(&c->progress_lock);
	return OPAL_SUCCESS;
}

/* Set the events that are waited for. Returns 0 or an errno. */
int mca_btl_esp_watch(struct mca_btl_esp_watch *watch, uint32_t events)
{
	struct epoll_event e = { .events = events, .data.ptr = watch };

	if (watch->events == events)
		return 0;
	if (epoll_ctl(mca_btl_esp_component.epoll,
		      watch->events ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, watch->fd, &e))
		return errno;
	watch->events = events;
	return 0;
}

void mca_btl_esp_unwatch(struct mca_btl_esp_watch *watch)
{
	if (watch->events)
		epoll_ctl(mca_btl_esp_component.epoll, EPOLL_CTL_DEL, watch->fd, NULL);
	watch->events = 0;
}

/* Set the options of a socket. Returns 0, or -1 with errno. */
int mca_btl_esp_setup_socket(int fd)
{
	const struct mca_btl_esp_component *c = &mca_btl_esp_component;
	const int on = 1;

	/* With keepalive, the kernel finds out a host that is silent for ever. */
	if (setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on)) ||
	    (c->sndbuf && setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &c->sndbuf, sizeof(c->sndbuf))) ||
	    (c->first_burst != -1 && setsockopt(fd, SOL_ESP, ESP_INITIAL_ACK_BURST_LENGTH,
						&c->first_burst, sizeof(c->first_burst))) ||
	    (c->rcvbuf && setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &c->rcvbuf, sizeof(c->rcvbuf))))
		return -1;
	return 0;
}

/*
 * Give a connection to its endpoint, when its HELLO is complete. A stranger, which doesn't know the
 * key, gets no answer.
 */
static void greeted(struct mca_btl_esp_incoming *in)
{
	struct mca_btl_base_endpoint_t *ep = NULL;
	struct mca_btl_esp_module *module = in->module;
	struct mca_btl_esp_ident ident = in->ident;
	opal_proc_t *opal;
	int fd = in->watch.fd;

	incoming_end(in);
	if (mca_btl_esp_ident_ok(&ident) && ident.say == ESP_HELLO &&
	    ident.key == mca_btl_esp_component.key) {
		opal = opal_proc_for_name(ident.name);
		if (opal)
			ep = mca_btl_esp_proc_endpoint(opal, module);
	}
	if (ep) {
		mca_btl_esp_endpoint_accept(ep, fd);
		return;
	}
	opal_output_verbose(1, opal_btl_base_framework.framework_output,
			    "btl:esp: %s: a stranger connected to %s",
			    opal_process_info.nodename, module->iface.name);
	close(fd);
}

static int incoming_ready(struct mca_btl_esp_watch *watch, uint32_t events)
{
	struct mca_btl_esp_incoming *in = container_of(watch, struct mca_btl_esp_incoming, watch);
	ssize_t n = recv(watch->fd, (char *)&in->ident + in->have, sizeof(in->ident) - in->have,
			 MSG_DONTWAIT);

	if (n < 0 && errno == EAGAIN)
		return 0;
	if (n <= 0) {
		int fd = watch->fd;

		incoming_end(in);
		close(fd);
		return 0;
	}
	in->have += n;
	if (in->have == sizeof(in->ident))
		greeted(in);
	return 1;
}

/* Report that connections can't be accepted: else peers that have connected would wait for ever. */
static void cannot_accept(struct mca_btl_esp_module *module, int error)
{
	char text[256];

	mca_btl_esp_unwatch(&module->listener);
	snprintf(text, sizeof(text), "btl:esp: %s: cannot accept connections through %s: %s",
		 opal_process_info.nodename, module->iface.name, strerror(error));
	mca_btl_esp_give_up(module, NULL, text);
}

static int listener_ready(struct mca_btl_esp_watch *watch, uint32_t events)
{
	struct mca_btl_esp_module *module = container_of(watch, struct mca_btl_esp_module,
							 listener);
	int fd = accept4(watch->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct mca_btl_esp_incoming *in;

	if (fd < 0) {
		if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
			cannot_accept(module, errno);
		return 0;
	}
	in = calloc(1, sizeof(*in));
	if (!in || mca_btl_esp_setup_socket(fd)) {
		close(fd);
		free(in);
		return 0;
	}
	OBJ_CONSTRUCT(&in->super, opal_list_item_t);
	in->module = module;
	in->watch = (struct mca_btl_esp_watch){ .fd = fd, .ready = incoming_ready };
	opal_list_append(&mca_btl_esp_component.incoming, &in->super);
	if (mca_btl_esp_watch(&in->watch, EPOLLIN)) {
		incoming_end(in);
		close(fd);
	}
	return 1;
}

/*
 * Close the oldest connections above the bound. A process of the job may compute between its
 * connect() and its HELLO, as long as it wants; so there is room for all of them, and for some
 * strangers.
 */
static void bound_incoming(void)
{
	struct mca_btl_esp_component *c = &mca_btl_esp_component;
	static bool said;

	while (opal_list_get_size(&c->incoming) > c->max_incoming) {
		struct mca_btl_esp_incoming *in = (void *)opal_list_get_first(&c->incoming);
		int fd = in->watch.fd;

		if (!said)
			opal_output(0,
				    "btl:esp: %s: more than %zu connections have not said whose they are; the oldest are closed",
				    opal_process_info.nodename, c->max_incoming);
		said = true;
		incoming_end(in);
		close(fd);
	}
}

/*
 * Make a module for a link over IFACE, and let it listen. NULL: it can't be used, and the user was
 * told why.
 */
static struct mca_btl_esp_module *new_module(const struct mca_btl_esp_if *iface, int link)
{
	struct mca_btl_esp_component *c = &mca_btl_esp_component;
	struct sockaddr_esp addr = { .sesp_family = AF_ESP, .sesp_ifindex = iface->ifindex,
				     .sesp_halen = 6 };
	socklen_t size = sizeof(addr);
	struct mca_btl_esp_module *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->super = mca_btl_esp_template;
	if (!m->super.btl_bandwidth)
		m->super.btl_bandwidth = iface->speed;
	m->iface = *iface;
	m->link = link;
	m->index = c->nmodules;
	OBJ_CONSTRUCT(&m->endpoints, opal_list_t);
	m->listener.ready = listener_ready;
	m->listener.fd = socket(AF_ESP, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	memcpy(addr.sesp_addr, iface->mac, sizeof(addr.sesp_addr));
	if (m->listener.fd < 0 ||
	    bind(m->listener.fd, (struct sockaddr *)&addr, sizeof(addr)) ||
	    listen(m->listener.fd, BACKLOG) ||
	    getsockname(m->listener.fd, (struct sockaddr *)&addr, &size) ||
	    mca_btl_esp_watch(&m->listener, EPOLLIN)) {
		mca_btl_esp_say(c->if_include && *c->if_include, "interface '%s' can't be used: %s",
				iface->name, strerror(errno));
		if (m->listener.fd >= 0)
			close(m->listener.fd);
		OBJ_DESTRUCT(&m->endpoints);
		free(m);
		return NULL;
	}
	m->port = addr.sesp_port;
	return m;
}

/* Publish where this process can be reached. */
static int publish(void)
{
	struct mca_btl_esp_component *c = &mca_btl_esp_component;
	size_t size = sizeof(struct mca_btl_esp_modex) +
		      c->nmodules * sizeof(struct mca_btl_esp_addr);
	struct mca_btl_esp_modex *modex = calloc(1, size);
	int rc;

	if (!modex)
		return OPAL_ERR_OUT_OF_RESOURCE;
	modex->magic = ESP_MAGIC;
	modex->version = ESP_VERSION;
	modex->order = ESP_ORDER;
	modex->key = c->key;
	modex->max_frag = c->max_frag;
	modex->count = c->nmodules;
	for (int i = 0; i < c->nmodules; i++) {
		struct mca_btl_esp_module *m = c->modules[i];
		struct mca_btl_esp_addr *a = &modex->addrs[i];

		memcpy(a->label, m->iface.label, sizeof(a->label));
		memcpy(a->mac, m->iface.mac, sizeof(a->mac));
		a->port = m->port;
		a->ifindex = m->iface.ifindex;
		a->mtu = m->iface.mtu;
		a->speed = m->iface.speed;
		a->link = m->link;
	}
	OPAL_MODEX_SEND(rc, ESP_MODEX_SCOPE, &c->super.btl_version, modex, size);
	free(modex);
	return rc;
}

static size_t largest(size_t a, size_t b) { return a > b ? a : b; }

static mca_btl_base_module_t **component_init(int *count, bool progress_threads, bool mpi_threads)
{
	struct mca_btl_esp_component *c = &mca_btl_esp_component;
	struct mca_btl_esp_if ifs[ESP_MAX_MODULES];
	mca_btl_base_module_t **modules;
	int n, used = 0;

	*count = 0;
	if (!parameters_ok())
		return NULL;
	n = mca_btl_esp_interfaces(ifs, ESP_MAX_MODULES / c->links);
	if (!n)
		return NULL;
	c->max_frag = largest(mca_btl_esp_template.btl_max_send_size,
			      largest(mca_btl_esp_template.btl_eager_limit,
				      mca_btl_esp_template.btl_rndv_eager_limit));
	modules = calloc(n * c->links, sizeof(*modules));
	c->recv_buffer = malloc(ESP_RECV_BUFFER);
	if (!modules || !c->recv_buffer ||
	    getrandom(&c->key, sizeof(c->key), 0) != sizeof(c->key))
		goto none;
	c->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (c->epoll < 0)
		goto none;
	if (mca_btl_esp_frags_init() != OPAL_SUCCESS) {
		mca_btl_esp_say(true, "no memory for fragments");
		goto none;
	}
	for (int i = 0; i < n * c->links; i++) {
		struct mca_btl_esp_module *m = new_module(&ifs[i / c->links], i % c->links);

		if (!m)
			continue;
		c->modules[c->nmodules++] = m;
		modules[used++] = &m->super;
	}
	c->max_incoming = (size_t)job_size() * used + STRANGERS;
	if (!used || publish() != OPAL_SUCCESS) {
		while (used--)
			modules[used]->btl_finalize(modules[used]);
		goto none;
	}
	*count = used;
	return modules;
none:
	free(modules);
	return NULL;
}

static int component_progress(void)
{
	struct mca_btl_esp_component *c = &mca_btl_esp_component;
	struct epoll_event events[EVENTS];
	int n, done = 0;

	/* Progress is running: in another thread, or in a caller of the PML that calls this. */
	if (opal_mutex_trylock(&c->progress_lock))
		return 0;
	n = epoll_wait(c->epoll, events, EVENTS, 0);
	for (int i = 0; i < n; i++) {
		struct mca_btl_esp_watch *watch = events[i].data.ptr;

		done += watch->ready(watch, events[i].events);
	}
	bound_incoming();
	opal_mutex_unlock(&c->progress_lock);
	return done;
}
