// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory of stream and seqpacket sockets. It is charged to the socket (sk_rmem_alloc,
 * sk_wmem_queued, sk_forward_alloc) and to all sockets together (net.esp.mem), under the
 * socket's lock. Rule 20 sets the bounds: grant.c. dgram.c charges the same account.
 */
#include "esp.h"
#include "memory.h"

#define ESP_CHARGE	(256 * 1024)	/* bytes that are charged ahead */
#define ESP_ROOM_PRESSED	4	/* packets that a socket grants under memory pressure */

long esp_mem[3] __read_mostly;
atomic_long_t esp_memory_allocated ____cacheline_aligned_in_smp;
struct percpu_counter esp_sockets_allocated ____cacheline_aligned_in_smp;
unsigned long esp_memory_pressure;

/* Is memory ample? Bytes that sockets charge ahead, or keep, must not cause pressure. */
static bool mem_is_ample(void)
{
	return atomic_long_read(&esp_memory_allocated) <=
	       READ_ONCE(esp_mem[0]) / 2;
}

/* Is a large transfer under way? It will use, or use again, the memory charged now. */
static bool mem_charges_ahead(struct sock *sk)
{
	return esp_sk(sk)->grant.recv_announced ||
	       READ_ONCE(sk->sk_wmem_queued) >= 65536;
}

/**
 * esp_mem_uncharge() - Uncharge memory that a socket no longer uses
 * @sk:		socket; its owner calls, or esp_rfree() when no reference is left
 * @size:	bytes
 *
 * A page stays charged for the next message: otherwise each message would charge and
 * uncharge it for all sockets. In the middle of a large transfer, more stays charged. If
 * all sockets together use much memory, nothing stays charged.
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

/* Charge more memory for esp_mem_schedule(): the memory charged already is not enough. */
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

/* Charge a received packet like skb_set_owner_r(); esp_mem_uncharge() takes it back. */
void esp_set_owner_r(struct sk_buff *skb, struct sock *sk)
{
	skb_orphan(skb);
	skb->sk = sk;
	skb->destructor = esp_rfree;
	atomic_add(skb->truesize, &sk->sk_rmem_alloc);
	sk_mem_charge(sk, skb->truesize);
}

#ifdef CONFIG_MEMCG
/* Accounts of a socket that only finds the current task's cgroup; they have no bounds. */
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
 * esp_mem_nobodys() - Charge a new socket to no cgroup until it is accepted
 * @sk:	socket that nothing has been charged for, and that no other context can find yet
 *
 * In a listener's backlog, or where a task brings a frame itself (tun), sk_alloc() has
 * taken the cgroup of a task that has nothing to do with the socket.
 */
void esp_mem_nobodys(struct sock *sk)
{
#ifdef CONFIG_MEMCG
	mem_cgroup_put(sk->sk_memcg);
	sk->sk_memcg = NULL;
#endif
}

/**
 * esp_mem_accept() - Charge an accepted socket's memory to the current task
 * @sk:	socket that the task accepts; the caller owns it
 *
 * The socket was charged to no cgroup: esp_mem_nobodys(). The task's memory cgroup is
 * charged for the memory that the socket uses so far, and for later memory. The kernel
 * tells modules no task's cgroup, but charges the sockets that the task makes.
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
#endif

	sock_owned_by_me(sk);
#ifdef CONFIG_MEMCG
	if (!mem_cgroup_sockets_enabled)
		return true;
	task = sk_alloc(sock_net(sk), esp_family, GFP_KERNEL, &task_prot, 0);
	if (!task)
		return false;
	if (task->sk_memcg) {
		bytes = sk_mem_pages(sk->sk_forward_alloc + sk->sk_wmem_queued +
				     atomic_read(&sk->sk_rmem_alloc)) << PAGE_SHIFT;
		/* net.esp.mem has been charged for it already */
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
 * esp_grant_room() - Count the packets that the receive buffer has memory for
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
	if (READ_ONCE(esp_memory_pressure))	/* each socket gets less */
		n = min_t(u32, n, ESP_ROOM_PRESSED);
	/* an empty buffer takes one packet, whatever the size of either */
	return n ? n : !atomic_read(&sk->sk_rmem_alloc);
}
