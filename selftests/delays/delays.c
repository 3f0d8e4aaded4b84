// SPDX-License-Identifier: GPL-2.0-only
/*
 * Provoke races by delays at random places of the module. "vm modules KERNEL delays" makes
 * the compiler put a call before each basic block of esp.ko (-fsanitize-coverage=trace-pc);
 * this module has the called function. So each step may be late, whatever it races against.
 * Not a part of ESP.
 *
 * A block that runs rarely would hardly ever wait. So a block waits more often the first
 * times that it runs than later.
 *
 *	insmod delays.ko [one_in=N] [longest=NS] [seed=S]
 *
 * A kernel with KCOV already has a function of this name, so no kernel of the tests may have
 * KCOV.
 */
#include <linux/delay.h>
#include <linux/hash.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/sched.h>

#define DELAYS_BITS	12	/* of the table of blocks */
#define DELAYS_OFTEN	64	/* a block that has run n times waits one in n + 64 times */
#define DELAYS_LONG	16	/* one delay in 16 may take @longest ... */
#define DELAYS_SHORT	32	/* ... any other at most a 32nd of @longest */

static unsigned int one_in = 1000;
module_param(one_in, uint, 0644);
MODULE_PARM_DESC(one_in, "a block waits one in so many times, 0: never");

static unsigned int longest = 4000000;
module_param(longest, uint, 0644);
MODULE_PARM_DESC(longest, "nanoseconds");

static unsigned int seed = 1;
module_param(seed, uint, 0444);
MODULE_PARM_DESC(seed, "of chance, which is each processor's own");

struct delays_cpu {
	u64		random;		/* xorshift64*, never 0 */
	unsigned long	count;
};

static DEFINE_PER_CPU(struct delays_cpu, delays_cpu);
static u32 seen[1 << DELAYS_BITS];	/* how often a block has run, roughly */

static int delays_get(char *buf, const struct kernel_param *kp)
{
	unsigned long n = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		n += READ_ONCE(per_cpu(delays_cpu, cpu).count);
	return sprintf(buf, "%lu\n", n);
}

static const struct kernel_param_ops count_ops = { .get = delays_get };
module_param_cb(count, &count_ops, NULL, 0444);
MODULE_PARM_DESC(count, "delays until now");

/* Draw a random number. If an interrupt comes in between, two draws are alike. */
static u32 draw(struct delays_cpu *d)
{
	u64 x = d->random;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	d->random = x;
	return (x * 0x2545f4914f6cdd1dull) >> 32;
}

static noinline void wait(struct delays_cpu *d)
{
	u32 limit = READ_ONCE(longest), ns;

	if (draw(d) % DELAYS_LONG)
		limit /= DELAYS_SHORT;
	ns = limit ? draw(d) % limit : 0;
	d->count++;
	ndelay(ns % 1000);
	udelay(ns / 1000);
	/* On uml-debug, which is preemptible, let other tasks run first. */
	if (preemptible()) {
		set_tsk_need_resched(current);
		set_preempt_need_resched();
		cond_resched();
	}
}

void __sanitizer_cov_trace_pc(void);

void __sanitizer_cov_trace_pc(void)
{
	u32 *times = &seen[hash_long(_RET_IP_, DELAYS_BITS)];
	struct delays_cpu *d = raw_cpu_ptr(&delays_cpu);
	u32 often = READ_ONCE(one_in), n = *times;

	if (!often)
		return;
	if (n + DELAYS_OFTEN < often) {
		*times = n + 1;
		often = n + DELAYS_OFTEN;
	}
	if (!(((u64)draw(d) * often) >> 32))
		wait(d);
}
EXPORT_SYMBOL_GPL(__sanitizer_cov_trace_pc);

static int __init delays_init(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		per_cpu(delays_cpu, cpu).random = (seed + 1ull) * 0x9e3779b97f4a7c15ull + cpu;
	return 0;
}

static void __exit delays_exit(void)
{
}

module_init(delays_init);
module_exit(delays_exit);
MODULE_DESCRIPTION("Delays at random places of ESP, for its tests");
MODULE_LICENSE("GPL");
