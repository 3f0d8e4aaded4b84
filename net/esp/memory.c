// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory of stream and seqpacket sockets, as it is charged: to the socket
 * (sk_rmem_alloc, sk_wmem_queued, sk_forward_alloc) and to all of them
 * (net.esp.mem). Under the socket's lock; bounds are rule 20's, grant.c.
 */
#include "esp.h"
#include "memory.h"

#define ESP_CHARGE	(256 * 1024)	/* bytes that are charged ahead */
#define ESP_ROOM_PRESSED	4	/* packets of a socket, under memory pressure */

long esp_mem[3] __read_mostly;
atomic_long_t esp_memory_allocated ____cacheline_aligned_in_smp;
struct percpu_counter esp_sockets_allocated ____cacheline_aligned_in_smp;
unsigned long esp_memory_pressure;

/* What sockets charge ahead, or keep, is to be no reason for memory pressure. */
static bool mem_is_ample(void)
{
	return atomic_long_read(&esp_memory_allocated) <=
	       READ_ONCE(esp_mem[0]) / 2;
}

/* In the middle of much: what is charged now will be used, or used again. */
static bool mem_charges_ahead(struct sock *sk)
{
	return esp_sk(sk)->grant.recv_announced ||
	       READ_ONCE(sk->sk_wmem_queued) >= 65536;
}

/**
 * esp_mem_uncharge() - memory that a socket no longer uses
 * @sk:		socket; its owner calls
 * @size:	bytes
 *
 * A page stays charged for the next message, or each would be charged and
 * uncharged for all sockets; more in the middle of much. Not if sockets have
 * much together.
 */
void esp_mem_uncharge(struct sock *sk, int size)
{
	sk_forward_alloc_add(sk, size);
	if (mem_is_ample() &&
	    (sk->sk_forward_alloc < 2 * (int)PAGE_SIZE ||
	     (sk->sk_forward_alloc < 2 * ESP_CHARGE && mem_charges_ahead(sk))))
		return;
	sk_mem_reclaim(sk);
}

/* For esp_mem_schedule(), if what is charged already is not enough. */
bool esp_mem_charge_more(struct sock *sk, struct sk_buff *skb, int size)
{
	int all = size;

	if (size < ESP_CHARGE && mem_charges_ahead(sk) && mem_is_ample())
		all = ESP_CHARGE;
	if (skb)
		return sk_rmem_schedule(sk, skb, all) ||
		       sk_rmem_schedule(sk, skb, size);
	return sk_wmem_schedule(sk, all) || sk_wmem_schedule(sk, size);
}

static void esp_rfree(struct sk_buff *skb)
{
	struct sock *sk = skb->sk;

	atomic_sub(skb->truesize, &sk->sk_rmem_alloc);
	esp_mem_uncharge(sk, skb->truesize);
}

/* As skb_set_owner_r(), for esp_mem_uncharge()'s sake. */
void esp_set_owner_r(struct sk_buff *skb, struct sock *sk)
{
	skb_orphan(skb);
	skb->sk = sk;
	skb->destructor = esp_rfree;
	atomic_add(skb->truesize, &sk->sk_rmem_alloc);
	sk_mem_charge(sk, skb->truesize);
}

#ifdef CONFIG_MEMCG
/* Of a socket that only tells whom new ones are charged to; without bounds of its own. */
static atomic_long_t task_allocated;
static DEFINE_PER_CPU(int, task_fw_alloc);
static long task_mem[] = { LONG_MAX, LONG_MAX, LONG_MAX };
static int task_buf_min = SOCK_MIN_RCVBUF;

static struct proto task_prot = {
	.name			= "ESP-MEMCG",
	.owner			= THIS_MODULE,
	.obj_size		= sizeof(struct sock),
	.memory_allocated	= &task_allocated,
	.per_cpu_fw_alloc	= &task_fw_alloc,
	.sysctl_mem		= task_mem,
	.sysctl_wmem		= &task_buf_min,
	.sysctl_rmem		= &task_buf_min,
};
#endif

/**
 * esp_mem_nobodys() - a new socket is charged to nobody, till it is accepted
 * @sk:	socket that nothing has been charged for; the caller owns it
 *
 * In a listener's backlog, or where a task brings a frame itself (tun), sk_alloc() has
 * taken the cgroup of a task that has nothing to do with it.
 */
void esp_mem_nobodys(struct sock *sk)
{
#ifdef CONFIG_MEMCG
	mem_cgroup_put(sk->sk_memcg);
	sk->sk_memcg = NULL;
#endif
}

/**
 * esp_mem_accept() - what a socket uses is charged to the current task
 * @sk:	socket that it accepts; the caller owns it
 *
 * It was charged to nobody, esp_mem_nobodys(): a memory cgroup is charged for what has
 * come so far, and for what comes. The kernel tells modules no task's cgroup, but
 * charges the sockets that it makes.
 *
 * Return: false if the cgroup's limit is reached, or there is no memory at all;
 * nothing has changed then
 */
bool esp_mem_accept(struct sock *sk)
{
	bool ok = true;
#ifdef CONFIG_MEMCG
	struct sock *task;
	int bytes;

	if (!mem_cgroup_sockets_enabled)
		return true;
	task = sk_alloc(sock_net(sk), esp_family, GFP_KERNEL, &task_prot, 0);
	if (!task)
		return false;
	if (task->sk_memcg) {
		bytes = sk_mem_pages(sk->sk_forward_alloc + sk->sk_wmem_queued +
				     atomic_read(&sk->sk_rmem_alloc)) << PAGE_SHIFT;
		/* for all sockets it is charged already */
		ok = !bytes || __sk_mem_schedule(task, bytes, SK_MEM_RECV);
		if (ok) {
			WARN_ON_ONCE(sk->sk_memcg);	/* esp_mem_nobodys() */
			sk->sk_memcg = task->sk_memcg;	/* with its reference */
			task->sk_memcg = NULL;
			__sk_mem_reclaim(task, bytes);
		}
	}
	sk_free(task);
#endif
	return ok;
}

/**
 * esp_grant_room() - packets for which the receive buffer has memory left
 * @esp:	socket; the caller need not own it
 *
 * Return: packets, each as large as the largest one seen
 */
u32 esp_grant_room(struct esp_opt *esp)
{
	struct sock *sk = &esp->sk;
	int room = READ_ONCE(sk->sk_rcvbuf) - atomic_read(&sk->sk_rmem_alloc) -
		   data_race(READ_ONCE(sk->sk_backlog.len));	/* sk_add_backlog() */
	u32 n = 0;

	if (room > 0)
		n = room / READ_ONCE(esp->grant.rcv_est);
	if (READ_ONCE(esp_memory_pressure))	/* all sockets are to have less */
		n = min_t(u32, n, ESP_ROOM_PRESSED);
	/* an empty buffer takes a packet, however small the one, large the other */
	return n ? n : !atomic_read(&sk->sk_rmem_alloc);
}
