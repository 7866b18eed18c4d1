# Sourced by the scripts about `luc guard`, after lib.sh.

load() { # threads, directory
	luc-lab bench create-fsync --threads "$1" --seconds 100000 --warmup-s 0 "$2" > /dev/null 2>&1 &
	load=$!
}

no_load() {
	kill -KILL $load
	wait $load 2> /dev/null
}

guard() {
	luc guard >> /tmp/guard.said 2>&1 &
	guard=$!
}

# waits SECONDS WHAT COMMAND...: it succeeds within this time.
waits() {
	left=$1 what=$2
	shift 2
	while [ "$left" -gt 0 ]; do
		sh -c "$1" && { ok "$what"; return; }
		sleep 5
		left=$((left - 5))
	done
	bad "$what: not in time; $(tail -n 3 /tmp/guard.said)"
}

stance() {
	luc status --json | grep -o '"stance": "[a-z_]*"' | head -n 1
}
