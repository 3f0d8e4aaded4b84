// SPDX-License-Identifier: GPL-2.0-only
/*
 * Overdue packets: when does a link stop waiting for what a host was granted? See overdue.h.
 */
#include "overdue.h"

/**
 * esp_overdue_init() - Initialize the overdue packets of a queue: there are none
 * @o:	overdue packets
 */
void esp_overdue_init(struct esp_overdue *o)
{
	INIT_LIST_HEAD(&o->holders);
	o->tokens = 0;
}

/**
 * esp_overdue_granted() - Take note that packets were granted to a host
 * @o:		overdue packets of the queue
 * @h:		bucket of the host
 * @n:		packets
 * @due:	when to look at what has arrived, ns, if the host had nothing outstanding
 */
void esp_overdue_granted(struct esp_overdue *o, struct esp_host *h, u32 n, u64 due)
{
	h->newer += n;
	if (!list_empty(&h->hold))
		return;
	h->due = due;
	list_add_tail(&h->hold, &o->holders);
}

static void overdue_set(struct esp_overdue *o, struct esp_host *h, u32 overdue)
{
	o->tokens += overdue - h->overdue;
	h->overdue = overdue;
}

/**
 * esp_overdue_look() - Look at the hosts that are due
 * @o:		overdue packets of the queue
 * @now:	ns
 * @patience:	time from one look at a host to the next, ns; see esp_budget_due()
 *
 * Return: the time until the next host is due, ns; 0: there is none
 */
u32 esp_overdue_look(struct esp_overdue *o, u64 now, u64 patience)
{
	struct esp_host *h;
	u32 n;

	while (!list_empty(&o->holders)) {
		h = list_first_entry(&o->holders, struct esp_host, hold);
		if ((s64)(h->due - now) > 0)
			return min_t(u64, h->due - now, ESP_STALE_NS);
		n = max(atomic_read(&h->outstanding), 0);
		/* tokens come back in the order in which they were given, as far as this goes */
		overdue_set(o, h, n - min(n, h->newer));
		h->newer = 0;
		list_del_init(&h->hold);
		if (n) {
			h->due = now + patience;
			list_add_tail(&h->hold, &o->holders);
		}
	}
	return 0;
}

/**
 * esp_overdue_forget() - Forget a host
 * @o:	overdue packets of the queue
 * @h:	bucket of the host
 */
void esp_overdue_forget(struct esp_overdue *o, struct esp_host *h)
{
	overdue_set(o, h, 0);
	list_del_init(&h->hold);
}
