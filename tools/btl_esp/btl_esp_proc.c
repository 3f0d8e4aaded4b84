// SPDX-License-Identifier: BSD-3-Clause
/*
 * Peers. Both sides know both lists of interfaces, and come to the same pairs: first those with the
 * same label and link, then the remaining ones of the same link, in their order.
 */
#include "btl_esp.h"

#include <string.h>

static bool modex_ok(const struct mca_btl_esp_modex *modex, size_t size)
{
	return size >= sizeof(*modex) && modex->magic == ESP_MAGIC &&
	       modex->version == ESP_VERSION && modex->order == ESP_ORDER &&
	       size == sizeof(*modex) + modex->count * sizeof(modex->addrs[0]);
}

/* Find a peer's interface for each module. A module that has been finalized is NULL. */
static void match(struct mca_btl_esp_proc *proc)
{
	struct mca_btl_esp_component *c = &mca_btl_esp_component;
	struct mca_btl_esp_modex *theirs = proc->modex;
	bool taken[ESP_MAX_MODULES] = { false };

	for (int i = 0; i < ESP_MAX_MODULES; i++)
		proc->match[i] = -1;
	for (int i = 0; i < c->nmodules; i++) {
		struct mca_btl_esp_module *m = c->modules[i];

		for (uint32_t j = 0; m && j < theirs->count; j++) {
			if (taken[j] || theirs->addrs[j].link != m->link ||
			    strncmp(theirs->addrs[j].label, m->iface.label, ALTIFNAMSIZ) != 0)
				continue;
			proc->match[i] = j;
			taken[j] = true;
			break;
		}
	}
	for (int i = 0; i < c->nmodules; i++) {
		struct mca_btl_esp_module *m = c->modules[i];

		for (uint32_t j = 0; m && proc->match[i] < 0 && j < theirs->count; j++) {
			if (taken[j] || theirs->addrs[j].link != m->link)
				continue;
			proc->match[i] = j;
			taken[j] = true;
		}
	}
}

/* Return the peer's published addresses; NULL: it has no ESP, or another version or byte order. */
static struct mca_btl_esp_modex *receive_modex(opal_proc_t *opal)
{
	struct mca_btl_esp_component *c = &mca_btl_esp_component;
	struct mca_btl_esp_modex *modex = NULL;
	static bool said_none, said_other;
	size_t size = 0;
	int rc;

	OPAL_MODEX_RECV(rc, &c->super.btl_version, &opal->proc_name, (void **)&modex, &size);
	if (rc != OPAL_SUCCESS || !modex) {
		if (!said_none)
			mca_btl_esp_say(true, "rank %u on host %s has no ESP",
					(unsigned int)opal->proc_name.vpid,
					opal_get_proc_hostname(opal));
		said_none = true;
		return NULL;
	}
	if (modex_ok(modex, size) && modex->count <= ESP_MAX_MODULES)
		return modex;
	if (!said_other)
		mca_btl_esp_say(true, "rank %u on host %s has another byte order or version",
				(unsigned int)opal->proc_name.vpid, opal_get_proc_hostname(opal));
	said_other = true;
	free(modex);
	return NULL;
}

/* Find a peer, or make it, with proc_lock held. */
static struct mca_btl_esp_proc *proc_get(opal_proc_t *opal)
{
	struct mca_btl_esp_component *c = &mca_btl_esp_component;
	struct mca_btl_esp_proc *proc = NULL;

	if (opal_proc_table_get_value(&c->procs, opal->proc_name, (void **)&proc) == OPAL_SUCCESS)
		return proc;
	proc = calloc(1, sizeof(*proc));
	if (!proc)
		return NULL;
	proc->opal = opal;
	proc->name = opal->proc_name;
	proc->modex = receive_modex(opal);
	if (!proc->modex) {
		free(proc);
		return NULL;
	}
	match(proc);
	OBJ_RETAIN(opal);
	opal_proc_table_set_value(&c->procs, proc->name, proc);
	return proc;
}

/* Forget a peer that has no endpoint, with proc_lock held. */
static void proc_put(struct mca_btl_esp_proc *proc)
{
	if (proc->users)
		return;
	opal_proc_table_remove_value(&mca_btl_esp_component.procs, proc->name);
	OBJ_RELEASE(proc->opal);
	free(proc->modex);
	free(proc);
}

/* Remove EP from its peer and module, so that no thread finds it any more. */
void mca_btl_esp_proc_remove(struct mca_btl_base_endpoint_t *ep)
{
	struct mca_btl_esp_component *c = &mca_btl_esp_component;

	OPAL_THREAD_LOCK(&c->proc_lock);
	opal_list_remove_item(&ep->module->endpoints, &ep->super);
	ep->proc->endpoints[ep->module->index] = NULL;
	OPAL_THREAD_UNLOCK(&c->proc_lock);
}

/* Count one endpoint less, and forget a peer that has none. */
void mca_btl_esp_proc_put(struct mca_btl_esp_proc *proc)
{
	struct mca_btl_esp_component *c = &mca_btl_esp_component;

	OPAL_THREAD_LOCK(&c->proc_lock);
	proc->users--;
	proc_put(proc);
	OPAL_THREAD_UNLOCK(&c->proc_lock);
}

/*
 * Find the endpoint of this module to a peer, or make it, and the peer. NULL: the peer has no ESP,
 * or the module has no counterpart there.
 */
struct mca_btl_base_endpoint_t *mca_btl_esp_proc_endpoint(opal_proc_t *opal,
							  struct mca_btl_esp_module *module)
{
	struct mca_btl_esp_component *c = &mca_btl_esp_component;
	struct mca_btl_base_endpoint_t *ep = NULL;
	struct mca_btl_esp_proc *proc;

	/* Hold the lock throughout: another thread may free the peer's last endpoint. */
	OPAL_THREAD_LOCK(&c->proc_lock);
	proc = proc_get(opal);
	if (!proc)
		goto out;
	ep = proc->endpoints[module->index];
	if (!ep && proc->match[module->index] >= 0) {
		ep = mca_btl_esp_endpoint_new(module, proc);
		if (ep) {
			proc->endpoints[module->index] = ep;
			proc->users++;
		}
	}
	proc_put(proc);
out:
	OPAL_THREAD_UNLOCK(&c->proc_lock);
	return ep;
}
