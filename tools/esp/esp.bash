# SPDX-License-Identifier: GPL-2.0-only
# bash completion of esp(8)

_esp_devices()
{
	local d

	for d in /sys/class/net/*/; do
		basename "$d"
	done
}

_esp()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	local words

	case $COMP_CWORD,${COMP_WORDS[1]},$prev in
	1,*)
		words='listen connect perf ping show kill dev run proxy help --help --version' ;;
	*,listen,-t | *,listen,--type | *,connect,-t | *,connect,--type | \
	*,show,-t | *,show,--type | *,kill,-t | *,kill,--type)
		words='stream seqpacket dgram' ;;
	*,show,-S | *,show,--state | *,kill,-S | *,kill,--state)
		words='estab syn-sent syn-recv fin-wait-1 fin-wait-2 time-wait unconn
			close-wait last-ack listen closing' ;;
	*,listen,*)
		words='--buffer --keep --type --verbose --timeout --help' ;;
	*,connect,*)
		words='--buffer --port --type --verbose --timeout --help' ;;
	*,perf,*)
		words='--server --one-off --tcp --client --time --bytes --length
			--parallel --reverse --latency --histogram --verify --interval
			--json --help' ;;
	*,ping,*)
		words='--count --interval --wait --deadline --size --mtu --quiet
			--json --help' ;;
	*,show,*)
		words='sockets stats dev --sockets --all --listening --extended
			--nonzero --state --type --port --peer --sk --json --help' ;;
	*,kill,*)
		words='--all --listening --state --type --port --peer --sk
			--extended --json --help' ;;
	2,dev,*)
		words='enable disable' ;;
	*,dev,*)
		words=$(_esp_devices) ;;
	*,run,*)
		words='--verbose --log --only --check --wait --help'
		[[ $cur = -* ]] || words=$(compgen -c -- "$cur") ;;
	*,proxy,*)
		words='--verbose --help' ;;
	2,help,*)
		words='listen connect perf ping show kill dev run proxy' ;;
	esac
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}

complete -F _esp esp
