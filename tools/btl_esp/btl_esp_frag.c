// SPDX-License-Identifier: BSD-3-Clause
/*
 * Fragments: descriptors of the PML with room for bytes, from three free lists. Headers and the
 * PML's own messages come from the small ones, which never run out, so that it can always answer.
 * free_list_max bounds the others, and the PML waits until it gets some back.
 */
#include "btl_esp.h"

const char mca_btl_esp_padding[8];

static int list_init(opal_free_list_t *list, size_t room, int max)
{
	struct mca_btl_esp_component *c = &mca_btl_esp_component;

	return opal_free_list_init(list, sizeof(struct mca_btl_esp_frag) + room,
				   opal_cache_line_size, OBJ_CLASS(mca_btl_base_descriptor_t),
				   0, 0, c->free_list_num, max, c->free_list_inc, NULL, 0,
				   NULL, NULL, NULL);
}

/* Make the free lists. mca_btl_esp_frags_fini() must follow, even if this fails. */
int mca_btl_esp_frags_init(void)
{
	struct mca_btl_esp_component *c = &mca_btl_esp_component;
	const mca_btl_base_module_t *m = &mca_btl_esp_template;
	int rc;

	OBJ_CONSTRUCT(&c->frags_small, opal_free_list_t);
	OBJ_CONSTRUCT(&c->frags_eager, opal_free_list_t);
	OBJ_CONSTRUCT(&c->frags_max, opal_free_list_t);
	rc = list_init(&c->frags_small, ESP_FRAG_SMALL, -1);
	if (rc == OPAL_SUCCESS)
		rc = list_init(&c->frags_eager, m->btl_eager_limit, c->free_list_max);
	if (rc == OPAL_SUCCESS)
		rc = list_init(&c->frags_max, c->max_frag, c->free_list_max);
	return rc;
}

void mca_btl_esp_frags_fini(void)
{
	struct mca_btl_esp_component *c = &mca_btl_esp_component;

	OBJ_DESTRUCT(&c->frags_small);
	OBJ_DESTRUCT(&c->frags_eager);
	OBJ_DESTRUCT(&c->frags_max);
}

/* Get a fragment with room for SIZE bytes. NULL: that is too many, or all are in use. */
struct mca_btl_esp_frag *mca_btl_esp_frag_get(size_t size)
{
	struct mca_btl_esp_component *c = &mca_btl_esp_component;
	struct mca_btl_esp_frag *frag;
	opal_free_list_t *list;

	if (size <= ESP_FRAG_SMALL)
		list = &c->frags_small;
	else if (size <= mca_btl_esp_template.btl_eager_limit)
		list = &c->frags_eager;
	else if (size <= c->max_frag)
		list = &c->frags_max;
	else
		return NULL;
	frag = (struct mca_btl_esp_frag *)opal_free_list_get(list);
	if (!frag)
		return NULL;
	frag->list = list;
	frag->segments[0].seg_addr.pval = frag->buffer;
	frag->segments[0].seg_len = size;
	frag->base.des_segments = frag->segments;
	frag->base.des_segment_count = 1;
	frag->base.des_cbfunc = NULL;
	frag->base.order = MCA_BTL_NO_ORDER;
	return frag;
}

void mca_btl_esp_frag_put(struct mca_btl_esp_frag *frag)
{
	opal_free_list_return(frag->list, &frag->base.super);
}

/* Make the header of a fragment, before its first byte is sent. */
void mca_btl_esp_frag_start(struct mca_btl_esp_frag *frag, uint8_t tag)
{
	size_t size = 0;

	for (size_t i = 0; i < frag->base.des_segment_count; i++)
		size += frag->base.des_segments[i].seg_len;
	frag->hdr = (struct mca_btl_esp_hdr){ .size = size, .tag = tag };
	frag->sent = 0;
	frag->total = sizeof(frag->hdr) + ESP_PADDED(size);
}

/* Make the header of a put: SIZE bytes of the user's at FROM, for the peer's memory at TO. */
void mca_btl_esp_frag_start_put(struct mca_btl_esp_frag *frag, void *from, uint64_t to,
				size_t size)
{
	*(struct mca_btl_esp_put *)frag->buffer = (struct mca_btl_esp_put){ to, size };
	mca_btl_esp_frag_start(frag, ESP_TAG_PUT);
	frag->segments[1].seg_addr.pval = from;
	frag->segments[1].seg_len = size;
	frag->base.des_segment_count = 2;
	frag->total += ESP_PADDED(size);
}

/* Fill IOV (ESP_FRAG_IOVS) with the parts that are to be sent yet. Returns their number. */
int mca_btl_esp_frag_gather(struct mca_btl_esp_frag *frag, struct iovec *iov)
{
	struct iovec all[ESP_FRAG_IOVS];
	size_t skip = frag->sent, pad = frag->total - sizeof(frag->hdr);
	int n = 0, used = 0;

	all[n++] = (struct iovec){ &frag->hdr, sizeof(frag->hdr) };
	for (size_t i = 0; i < frag->base.des_segment_count; i++) {
		all[n++] = (struct iovec){ frag->base.des_segments[i].seg_addr.pval,
					   frag->base.des_segments[i].seg_len };
		pad -= frag->base.des_segments[i].seg_len;
	}
	all[n++] = (struct iovec){ (void *)mca_btl_esp_padding, pad };

	for (int i = 0; i < n; i++) {
		if (skip >= all[i].iov_len) {
			skip -= all[i].iov_len;
			continue;
		}
		iov[used].iov_base = (char *)all[i].iov_base + skip;
		iov[used++].iov_len = all[i].iov_len - skip;
		skip = 0;
	}
	return used;
}

/*
 * Give a fragment back to the PML, because the kernel has all of it. The caller holds no endpoint's
 * lock.
 */
void mca_btl_esp_frag_sent(struct mca_btl_esp_frag *frag)
{
	struct mca_btl_base_endpoint_t *ep = frag->ep;
	uint32_t flags = frag->base.des_flags;

	/* Its owner may free it in the callback. */
	if (flags & MCA_BTL_DES_SEND_ALWAYS_CALLBACK)
		frag->base.des_cbfunc(&ep->module->super, ep, &frag->base, OPAL_SUCCESS);
	if (flags & MCA_BTL_DES_FLAGS_BTL_OWNERSHIP)
		mca_btl_esp_frag_put(frag);
}
