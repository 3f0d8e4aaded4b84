# SPDX-License-Identifier: GPL-2.0-only
#
# For speed.sh: from "perf script -F comm,ip,sym,dso" with call chains, where the
# instructions of a round trip or a byte went. Prints
#
#	split CASE UNIT PROTO layer LAYER VALUE
#	split CASE UNIT PROTO function NAME VALUE LAYER		the 15 most expensive
#
# The variables are name, unit, proto, and cost. cost is that of a run without perf; it is
# divided in proportion to the samples.
#
# A sample belongs to the layer of the innermost function in its chain that the table knows.
# So a lock, a memcpy(), RCU and the like count as their caller's. A function is counted where
# the sample was taken. Code that runs with interrupts off is sampled where they are switched on
# again: in the same function or its caller, and so nearly always in the same layer.

function layer_is(layer, functions) {
	layers[++rules] = layer
	pattern[rules] = "^_*(" functions ")"
}

BEGIN {
	# The first layer that matches counts.
	layer_is("idle", "do_idle|default_idle|pv_native_safe_halt|cpuidle|cpu_startup")
	layer_is("protocol", "esp_|sock_esp_|tcp_|udp_|ip_|ipv4_|inet_|packet_|tpacket_|neigh_|arp_|nf_|fib_|icmp_|" \
		"dst_|sk_dst|cubictcp|bictcp|bpf_tcp|sk_forced|run_bpf_filter|sk_filter")
	layer_is("copying", "copy_(to|from)_|copy_user|copyin|copyout|rep_movs|check_object_size|check_(heap|stack)_object|" \
		"virt_addr_valid|simple_copy|skb_copy_datagram|skb_datagram_iter|skb_do_copy|skb_copy_to|csum_and_copy|" \
		"iov_iter|copy_page|fault_in")
	layer_is("memory", "alloc_skb|skb_alloc|alloc_pages|kmem_cache|kmalloc|kvmalloc|kfree|kvfree|slab|allocate_slab|" \
		"get_page_from|free_(unref|tail|one|frozen|pages)|rmqueue|clear_page|skb_page_frag|sk_page_frag|page_frag|" \
		"napi_(alloc|consume|skb)|build_skb|skb_release|consume_skb|skb_free|folio|put_page|prep_(new|compound)|" \
		"memcg|obj_cgroup|get_partial|put_cpu_partial|refill|rmqueue|mod_(node|zone|lruvec|memcg)")
	layer_is("device", "dev_|netdev_|netif_skb|validate_xmit|veth_|eth_|skb_scrub|skb_gso|skb_mac_gso|skb_segment|" \
		"skb_checksum|skb_network_protocol|skb_csum|passthru_features|qdisc|sch_|noqueue|pfifo|fq_codel|harmonize|" \
		"skb_clone_tx|skb_tx_timestamp|is_skb_forwardable|xmit_|packet_xmit|skb_tx_|flow_dissect|skb_flow")
	layer_is("softirq", "net_rx_action|process_backlog|napi_|netif_|enqueue_to_backlog|get_rps|handle_softirqs|do_softirq|" \
		"raise_softirq|irq_exit|local_bh_enable|backlog|gro_|list_gro|deliver_skb|ksoftirqd|run_ksoftirqd|" \
		"net_timestamp|skb_defer|rps_")
	layer_is("scheduling", "schedule|finish_task|try_to_wake|wake_|ttwu|select_task|select_idle|enqueue_(task|entity)|" \
		"dequeue_(task|entity|entities)|pick_|update_(curr|load|rq|cfs|se|min|entity|deadline)|set_next|put_prev|" \
		"place_entity|sock_def_readable|sock_def_write|wait_woken|woken_|sk_wait_data|sk_stream_wait|prepare_to_wait|" \
		"finish_wait|add_wait|remove_wait|autoremove_wake|resched|switch_|context_switch|rseq_|cond_resched|ep_poll|" \
		"default_wake|check_preempt|wakeup_|sched_|reweight|avg_|psi_|cpuacct|skb_wait_for|preempt_|perf_event_task|" \
		"load_new_mm|prepare_task|pelt|native_load|raw_spin_rq|rq_")
	layer_is("timers", "hrtimer|mod_timer|timer_|del_timer|ktime_|read_tsc|tick_|usecs_to|run_timer|call_timer|enqueue_timer|" \
		"calc_wheel|get_nohz_timer|clockevents|lapic|native_apic|detach_if|rb_|timerqueue|get_jiffies")
	layer_is("calls", "do_syscall|entry_SYSCALL|syscall_|x64_sys|sys_|security_|apparmor|aa_|tomoyo|bpf_lsm|selinux|fdget|fput|" \
		"sockfd|move_addr|import_|exit_to_user|mem_cgroup_handle|blkcg|sock_(send|recv|write|read)|ksys|vfs_|" \
		"new_sync|rw_verify|fsnotify|ret_from|get_timespec|posix_get|put_timespec|landlock|irqentry_exit_to")
	layer_is("socket", "sk_|sock_|lock_sock|release_sock|skb_|sock|datagram_|reuseport|memory_pressure|kfree_skbmem")
	layer_is("interrupts", "sysvec_|asm_sysvec|irq|common_interrupt|handle_|perf_")
	order = "user calls copying socket protocol device softirq scheduling timers memory interrupts idle other"
}

# End a sample.
function count(	i, j, layer) {
	# leave out perf's own work, and wander() of speed.c
	if (depth && comm !~ /^perf/ && leaf != "wander") {
		layer = user ? "user" : "other"
		for (i = 1; layer == "other" && i <= depth; i++)
			for (j = 1; j <= rules; j++)
				if (chain[i] ~ pattern[j]) {
					layer = layers[j]
					break
				}
		samples++
		of_layer[layer]++
		of_function[leaf]++
		where[leaf, layer]++
	}
	depth = 0
}

/^[^ \t]/ {
	count()
	comm = $1
	next
}
NF >= 2 {
	# The compiler may have added a suffix to the name.
	f = $2
	sub(/\.(isra|part|constprop|cold).*/, "", f)
	if ($NF !~ /\[kernel|\[guest|\.ko\)|\[[a-z_0-9]+\]\)/ || $NF ~ /\[(unknown|vdso)\]/) {
		# The kernel's end of the chain.
		if (!depth) {
			user = 1
			leaf = $NF ~ /vdso/ ? "vdso" : f
			chain[depth = 1] = "-"
		}
		next
	}
	if (!depth) {
		user = 0
		leaf = f
	}
	chain[++depth] = f
}

END {
	count()
	if (samples < 500) {
		print "split.awk: only " samples + 0 " samples of " name " " proto >"/dev/stderr"
		exit 1
	}
	n = split(order, a, " ")
	for (i = 1; i <= n; i++)
		printf "split %s %s %s layer %s %.5g\n", name, unit, proto, a[i], of_layer[a[i]] * cost / samples
	for (i = 1; i <= 15; i++) {
		best = ""
		for (f in of_function)
			if (best == "" || of_function[f] > of_function[best] || (of_function[f] == of_function[best] && f < best))
				best = f
		if (best == "")
			break
		layer = ""
		for (j = 1; j <= n; j++)
			if (where[best, a[j]] > where[best, layer])
				layer = a[j]
		printf "split %s %s %s function %s %.5g %s\n", name, unit, proto, best, of_function[best] * cost / samples, layer
		delete of_function[best]
	}
}
