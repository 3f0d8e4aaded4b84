# SPDX-License-Identifier: BSD-3-Clause
# bash completion of am(1)

_am()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	local words

	case $COMP_CWORD,${COMP_WORDS[1]},$prev in
	1,*)
		words='logp calibrate help --help --version' ;;
	*,logp,--figures)
		mapfile -t COMPREPLY < <(compgen -d -- "$cur")
		return ;;
	*,logp,-p | *,logp,--protocol)
		words='raw nway oneway amvia amudp' ;;
	*,logp,*)
		words='--serve --protocol --credits --messages --rounds --sizes
			--timeout --figures --json --help' ;;
	*,calibrate,*)
		words='--most --messages --rounds --size --within --timeout
			--json --help' ;;
	2,help,*)
		words='logp calibrate' ;;
	esac
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}

complete -F _am am
