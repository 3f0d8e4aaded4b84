// SPDX-License-Identifier: BSD-3-Clause
/*
 * A module is one interface, or one of several links over it: the functions that the PML calls.
 * With several, the PML spreads messages over them by their bandwidth.
 */
#include "btl_esp.h"

#include <unistd.h>

static int add_procs(mca_btl_base_module_t *btl, size_t nprocs, opal_proc_t **procs,
		     struct mca_btl_base_endpoint_t **endpoints, opal_bitmap_t *reachable)
{
	struct mca_btl_esp_module *module = (struct mca_btl_esp_module *)btl;
	const opal_proc_t *self = opal_proc_local_get();

	for (size_t i = 0; i < nprocs; i++) {
		endpoints[i] = NULL;
		if (procs[i] == self)
			continue;
		endpoints[i] = mca_btl_esp_proc_endpoint(procs[i], module);
		if (endpoints[i] && reachable)
			opal_bitmap_set_bit(reachable, i);
	}
	return OPAL_SUCCESS;
}

/*
 * Free endpoints, unless progress is running: in another thread, or in a callback of the PML, whose
 * endpoint may be in use. finalize() frees these later. The pointers stay, because by them the BML
 * knows which of its endpoints for put it has given back already.
 */
static int del_procs(mca_btl_base_module_t *btl, size_t nprocs, opal_proc_t **procs,
		     struct mca_btl_base_endpoint_t **endpoints)
{
	struct mca_btl_esp_component *c = &mca_btl_esp_component;

	if (opal_mutex_trylock(&c->progress_lock))
		return OPAL_SUCCESS;
	for (size_t i = 0; i < nprocs; i++) {
		if (endpoints[i])
			mca_btl_esp_endpoint_free(endpoints[i]);
	}
	opal_mutex_unlock(&c->progress_lock);
	return OPAL_SUCCESS;
}

static int finalize(mca_btl_base_module_t *btl)
{
	struct mca_btl_esp_component *c = &mca_btl_esp_component;
	struct mca_btl_esp_module *module = (struct mca_btl_esp_module *)btl;

	opal_mutex_lock(&c->progress_lock);
	/*
	 * Free those that the PML never asked for, of peers that only sent, and those that
	 * del_procs() left.
	 */
	while (!opal_list_is_empty(&module->endpoints))
		mca_btl_esp_endpoint_free((struct mca_btl_base_endpoint_t *)
					  opal_list_get_first(&module->endpoints));
	OBJ_DESTRUCT(&module->endpoints);
	mca_btl_esp_unwatch(&module->listener);
	close(module->listener.fd);
	c->modules[module->index] = NULL;
	opal_mutex_unlock(&c->progress_lock);
	free(module);
	return OPAL_SUCCESS;
}

static mca_btl_base_descriptor_t *alloc(mca_btl_base_module_t *btl,
					struct mca_btl_base_endpoint_t *ep, uint8_t order,
					size_t size, uint32_t flags)
{
	struct mca_btl_esp_frag *frag = mca_btl_esp_frag_get(size);

	if (!frag)
		return NULL;
	frag->base.des_flags = flags;
	return &frag->base;
}

static int release(mca_btl_base_module_t *btl, mca_btl_base_descriptor_t *des)
{
	mca_btl_esp_frag_put((struct mca_btl_esp_frag *)des);
	return OPAL_SUCCESS;
}

/*
 * Prepare a fragment: RESERVE bytes for the PML's header, and up to *SIZE of the message. These
 * stay in the user's memory if they lie there as they are to be sent; else they are packed after
 * the header.
 */
static mca_btl_base_descriptor_t *prepare_src(mca_btl_base_module_t *btl,
					      struct mca_btl_base_endpoint_t *ep,
					      opal_convertor_t *data, uint8_t order,
					      size_t reserve, size_t *size, uint32_t flags)
{
	bool packed = opal_convertor_need_buffers(data);
	size_t max = mca_btl_esp_component.max_frag;
	struct mca_btl_esp_frag *frag;
	struct iovec iov = { 0 };
	uint32_t count = 1;

	if (reserve > max)
		return NULL;
	if (*size > max - reserve)
		*size = max - reserve;
	frag = mca_btl_esp_frag_get(packed ? reserve + *size : reserve);
	if (!frag)
		return NULL;

	iov.iov_len = *size;
	if (packed)
		iov.iov_base = (char *)frag->buffer + reserve;
	if (opal_convertor_pack(data, &iov, &count, size) < 0) {
		mca_btl_esp_frag_put(frag);
		return NULL;
	}
	if (packed) {
		frag->segments[0].seg_len = reserve + *size;
	} else {
		frag->segments[1].seg_addr.pval = iov.iov_base;
		frag->segments[1].seg_len = *size;
		frag->base.des_segment_count = 2;
	}
	frag->base.des_flags = flags;
	return &frag->base;
}

static int send_frag(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *ep,
		     mca_btl_base_descriptor_t *des, mca_btl_base_tag_t tag)
{
	struct mca_btl_esp_frag *frag = (struct mca_btl_esp_frag *)des;

	frag->ep = ep;
	mca_btl_esp_frag_start(frag, tag);
	return mca_btl_esp_endpoint_send(ep, frag);
}

static void put_sent(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *ep,
		     mca_btl_base_descriptor_t *des, int status)
{
	struct mca_btl_esp_frag *frag = (struct mca_btl_esp_frag *)des;

	frag->put_done(btl, ep, frag->segments[1].seg_addr.pval, NULL, frag->put_context,
		       frag->put_data, status);
}

/*
 * Put bytes of the user's memory into the peer's, which has told the PML where. It is done when the
 * kernel has it all: bytes that are sent later through this module come after it.
 */
static int put(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *ep, void *from,
	       uint64_t to, mca_btl_base_registration_handle_t *from_handle,
	       mca_btl_base_registration_handle_t *to_handle, size_t size, int flags, int order,
	       mca_btl_base_rdma_completion_fn_t done, void *context, void *data)
{
	struct mca_btl_esp_frag *frag = mca_btl_esp_frag_get(sizeof(struct mca_btl_esp_put));
	int rc;

	if (!frag)
		return OPAL_ERR_OUT_OF_RESOURCE;
	frag->ep = ep;
	frag->put_done = done;
	frag->put_context = context;
	frag->put_data = data;
	frag->base.des_cbfunc = put_sent;
	frag->base.des_flags = MCA_BTL_DES_FLAGS_BTL_OWNERSHIP | MCA_BTL_DES_SEND_ALWAYS_CALLBACK;
	mca_btl_esp_frag_start_put(frag, from, to, size);
	rc = mca_btl_esp_endpoint_send(ep, frag);
	if (rc >= 0)
		return OPAL_SUCCESS;
	mca_btl_esp_frag_put(frag);
	return rc;
}

/*
 * Send header and payload from where they are, without a descriptor. They must lie there as they
 * are to be sent, and nothing may wait yet; else the PML uses a descriptor.
 */
static int sendi(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *ep,
		 opal_convertor_t *data, void *header, size_t header_size,
		 size_t payload_size, uint8_t order, uint32_t flags, mca_btl_base_tag_t tag,
		 mca_btl_base_descriptor_t **des)
{
	size_t size = header_size + payload_size;
	struct iovec iov[2] = { { header, header_size } };
	int count = 1;

	if (size > ESP_FRAG_SMALL || (payload_size && opal_convertor_need_buffers(data)))
		goto no;
	if (payload_size) {
		opal_convertor_get_current_pointer(data, &iov[1].iov_base);
		iov[1].iov_len = payload_size;
		count = 2;
	}
	if (mca_btl_esp_endpoint_sendi(ep, iov, count, size, tag) == OPAL_SUCCESS)
		return OPAL_SUCCESS;
no:
	if (des)
		*des = alloc(btl, ep, order, size, flags);
	return OPAL_ERR_RESOURCE_BUSY;
}

static int register_error(mca_btl_base_module_t *btl, mca_btl_base_module_error_cb_fn_t cb)
{
	((struct mca_btl_esp_module *)btl)->error_cb = cb;
	return OPAL_SUCCESS;
}

static void dump(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *ep, int verbose)
{
	struct mca_btl_esp_module *module = (struct mca_btl_esp_module *)btl;

	if (ep)
		mca_btl_esp_say(true, "%s link %u: rank %u, state %d, %zu fragments wait",
				module->iface.name, module->link, (unsigned int)ep->proc->name.vpid,
				ep->state, opal_list_get_size(&ep->queue));
	else
		mca_btl_esp_say(true, "%s link %u: port %u", module->iface.name, module->link,
				ntohs(module->port));
}

/* Each module begins as a copy of this one, which the parameters set. */
mca_btl_base_module_t mca_btl_esp_template = {
	.btl_component		= &mca_btl_esp_component.super,
	.btl_eager_limit	= 64 * 1024,
	.btl_rndv_eager_limit	= 64 * 1024,
	.btl_max_send_size	= 128 * 1024,
	.btl_rdma_pipeline_send_length = 128 * 1024,
	.btl_rdma_pipeline_frag_size = (1UL << 31) - 1024,
	.btl_exclusivity	= MCA_BTL_EXCLUSIVITY_DEFAULT,
	.btl_latency		= 50,
	.btl_flags		= MCA_BTL_FLAGS_SEND | MCA_BTL_FLAGS_SEND_INPLACE |
				  MCA_BTL_FLAGS_PUT,
	.btl_add_procs		= add_procs,
	.btl_del_procs		= del_procs,
	.btl_finalize		= finalize,
	.btl_alloc		= alloc,
	.btl_free		= release,
	.btl_prepare_src	= prepare_src,
	.btl_send		= send_frag,
	.btl_sendi		= sendi,
	.btl_put		= put,
	.btl_dump		= dump,
	.btl_register_error	= register_error,
};
