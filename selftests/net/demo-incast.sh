#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Second part of "make demo": 64 hosts send to one at the same moment, by ESP and by TCP, in
# simulated time (bench/incast.sh). Draws how full the switch's port was, over time.
# The figures are in build/demo-incast.json too.

SRC=${SRC:-.}
OUT=$SRC/build/demo-incast.json
N=64 ROUNDS=3
TMP=$(mktemp -d)
trap 'rm -rf "$TMP"' EXIT

cat <<END

  $N hosts send 256 KiB each to one host, all at the same moment, $ROUNDS times. They meet at a
  switch's port of 1 Gbit/s that can hold 86 frames and drops what is more (simulated time).

END
"$SRC/selftests/bench/incast.sh" -N $N -r $ROUNDS -p "esp dctcp cubic" -q "$TMP" >"$TMP/runs" 2>"$TMP/errors" ||
	{ cat "$TMP/errors" >&2; echo "demo-incast: incast.sh failed" >&2; exit 1; }

# The row of a protocol begins with its first frame at the port and has a character for STEP ms.
awk -v n=$N '
	function field(name,   v) {
		split(substr($0, index($0, "\"" name "\": ") + length(name) + 4), v, /[,}]/)
		gsub(/"/, "", v[1])
		return v[1]
	}
	FILENAME ~ /runs$/ {
		p[++protos] = field("proto")
		share[p[protos]] = field("goodput_share")
		drops[p[protos]] = field("port_drops")
		next
	}
	FNR == 1 {
		name = FILENAME
		sub(/.*\//, "", name)
		sub(/-.*/, "", name)
		first = -1
		before = 0
	}
	first < 0 && ($2 || $3 > before) { first = $1 }
	first >= 0 {
		ms = ($1 - first) * 1000
		at[name, ++samples[name]] = ms
		fill[name, samples[name]] = $2
		drop[name, samples[name]] = $3 - before
		if ($2 && ms > last[name])
			last[name] = ms
		if ($2 && ms > longest)
			longest = ms
	}
	{ before = $3 }
	END {
		if (!longest)
			exit 1
		step = longest / 60
		title["esp"] = "ESP"; title["dctcp"] = "TCP, DCTCP"; title["cubic"] = "TCP, CUBIC"
		printf "  %-11s %-61s %8s %8s\n", "", "the port, a character for " sprintf("%.1f", step) " ms", "used", "dropped"
		for (k = 1; k <= protos; k++) {
			row = ""
			name = p[k]
			i = 1
			for (c = 0; c * step <= last[name]; c++) {
				most = lost = 0
				for (; i <= samples[name] && at[name, i] < (c + 1) * step; i++) {
					if (fill[name, i] > most)
						most = fill[name, i]
					lost += drop[name, i]
				}
				row = row (lost ? "!" : most > 43 ? "#" : most ? "=" : ".")
			}
			printf "  %-11s %-61s %6.1f %% %8d\n", title[name], row, 100 * share[name], drops[name]
		}
	}' "$TMP/runs" "$TMP"/{esp,dctcp,cubic}-blocks-$N || exit 1
cat <<END

  =  frames wait there   #  it is more than half full   !  it drops frames   .  no frames wait
  used: share of what the port could have carried until the last block was in

END
cp "$TMP/runs" "$OUT"
