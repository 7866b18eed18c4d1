# Sourced by the guest scripts: one line of output for each check.

# No script keeps a file system busy by its working directory.
cd /

# Arguments of `luc on`: once a write was delayed, every buffer is copied for ever.
always_copy="--set copyout=published --set copyout_threshold_permille=0 --set copyout_clean_runs=1000000"

ok() {
	echo "ok $*"
}

# One line, as only lines that begin so are shown.
bad() {
	echo "FAIL $*" | tr '\n' ' '
	echo
}

# check CODE LINE COMMAND...: the command ends with this exit code and its
# output is exactly this line, where * stands for anything.
check() {
	want=$1 line=$2
	shift 2
	said=$("$@" 2>&1)
	got=$?
	case $said in
	$line) ;;
	*) got="$got, but it does not say '$line'" ;;
	esac
	if [ "$got" = "$want" ]; then
		ok "$want: $*"
	else
		bad "$*: exit $got, expected $want: $said"
	fi
}

# is WHAT WANT GOT
is() {
	if [ "$2" = "$3" ]; then
		ok "$1 is $2"
	else
		bad "$1 is '$3', expected '$2'"
	fi
}

# yes WHAT COMMAND...: the command succeeds.
yes() {
	what=$1
	shift
	if "$@" > /tmp/yes.out 2>&1; then
		ok "$what"
	else
		bad "$what: exit $?: $(tail -n 3 /tmp/yes.out)"
	fi
}

# within TRIES WHAT COMMAND...: it succeeds in one of TRIES tries, 50 ms apart.
within() {
	tries=$1 what=$2
	shift 2
	for _ in $(seq "$tries"); do
		"$@" > /dev/null 2>&1 && { ok "$what"; return; }
		usleep 50000
	done
	bad "$what: not in $tries tries"
}

# eventually WHAT COMMAND...: it succeeds within a second.
eventually() {
	within 20 "$@"
}

gone() {
	[ ! -e "$1" ]
}

knob() { # directory, name: as `luc set` shows its value
	luc set "$1" "$2" | sed -n "s/^$2  *\([^ ]*\).*/\1/p"
}

counter() { # file system, name
	cat "/sys/fs/luc/$1/counters/$2"
}

# Stock behaviour afterwards: files can be made durable, module or not.
bench() { # directory, threads
	yes "create-fsync in $1 with $2 threads" \
		luc-lab bench create-fsync --threads "$2" --seconds 0.2 --warmup-s 0 "$1"
}

finish() {
	echo "end of checks"
}
