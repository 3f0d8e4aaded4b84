# SPDX-License-Identifier: GPL-2.0-only
#
# For bench-fabric.sh and sim-report.sh: print lines of cells, which tabs separate, as a table of
# reStructuredText. The first line has the headings. The variable is name, by which a document
# includes the table.

{
	for (i = 1; i <= NF; i++) {
		cell[NR, i] = $i
		if (length($i) > width[i])
			width[i] = length($i)
	}
	columns = NF > columns ? NF : columns
}

function rule(   i, s) {
	for (i = 1; i <= columns; i++) {
		s = sprintf("%" width[i] "s", "")
		gsub(/ /, "=", s)
		printf "%s%s", s, i < columns ? "  " : "\n"
	}
}

END {
	print ".. begin " name "\n"
	rule()
	for (r = 1; r <= NR; r++) {
		line = ""
		for (i = 1; i <= columns; i++)
			line = line sprintf("%-" width[i] "s", cell[r, i]) (i < columns ? "  " : "")
		sub(/ +$/, "", line)
		print line
		if (r == 1)
			rule()
	}
	rule()
	print "\n.. end " name "\n"
}
