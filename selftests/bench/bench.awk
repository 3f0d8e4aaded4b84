# SPDX-License-Identifier: GPL-2.0-only
#
# Part of "make bench": make a table from the lines "CASE METRIC UNIT PROTO VALUE" of all rounds,
# and write the same to the file json: {case, metric, unit, esp, peers, ratio, spread}. Figures are
# medians. "ratio" is the median over rounds of ESP's value divided by TCP's; "spread" has the
# lowest and the highest of these quotients.

function sorted(list, a,	n, i, j, t) {
	n = split(list, a, " ")
	for (i = 2; i <= n; i++)
		for (j = i; j > 1 && a[j - 1] + 0 > a[j] + 0; j--) {
			t = a[j]; a[j] = a[j - 1]; a[j - 1] = t
		}
	return n
}
function median(list,	a, n) {
	n = sorted(list, a)
	return n ? a[int((n + 1) / 2)] : ""
}
{
	key = $1 " " $2 " " $3
	if (!(key in seen)) {
		seen[key] = 1
		keys[++nkeys] = key
	}
	values[key, $4] = values[key, $4] " " $5
	known[$4] = 1
}
END {
	n = split("tcp native udp verbs ucx packet sctp tipc lo unix", all, " ")
	for (p = 1; p <= n; p++)
		if (all[p] in known)
			protos[++np] = all[p]
	printf "%-28s %-10s %-17s %10s", "case", "metric", "unit", "esp"
	for (p = 1; p <= np; p++)
		printf " %10s", protos[p]
	print "  esp/tcp"
	print "[" >json
	for (k = 1; k <= nkeys; k++) {
		key = keys[k]
		split(key, f, " ")
		if ((esp = median(values[key, "esp"])) == "")
			continue
		peers = ""
		printf "%-28s %-10s %-17s %10.5g", f[1], f[2], f[3], esp
		for (p = 1; p <= np; p++) {
			v = median(values[key, protos[p]])
			if (v != "")
				peers = peers (peers ? ", " : "") "\"" protos[p] "\": " v
			printf " %10s", v == "" ? "" : sprintf("%.5g", v)
		}
		n = split(values[key, "esp"], e, " ")
		m = split(values[key, "tcp"], t, " ")
		ratios = ""
		for (i = 1; i <= n && i <= m; i++)
			if (t[i] + 0)
				ratios = ratios " " e[i] / t[i]
		m = sorted(ratios, a)
		if (m)
			printf "  %.2f (%.2f ... %.2f)", median(ratios), a[1], a[m]
		print ""
		printf("%s{\"case\": \"%s\", \"metric\": \"%s\", \"unit\": \"%s\", \"esp\": %s, \"peers\": {%s}, \"ratio\": %s, \"spread\": %s}",
			comma, f[1], f[2], f[3], esp, peers,
			m ? median(ratios) : "null", m ? "[" a[1] ", " a[m] "]" : "null") >json
		comma = ",\n"
	}
	print "\n]" >json
}
