# Every watching verb on hosts that each lack one thing, which the kernel refuses or does not show.
# sight.rs judges the answers.
. /t/lib.sh

# host NAME COMMAND...: runs the verbs on the host that COMMAND makes of this one; the verbs that
# attach as `record` does, only if $LIVE_ON names the host.
host() {
	name=$1
	shift
	case " $LIVE_ON " in
	*" $name "*) live "$@" ;;
	esac
	said probe "$@" luc probe --json
	rm -f /tmp/host.luc
	said record "$@" luc trace record --seconds 2 --on /mnt/0 -o /tmp/host.luc
	if [ -s /tmp/host.luc ]; then
		said summary luc trace summary --json /tmp/host.luc
		said from luc doctor --json --from /tmp/host.luc
	fi
	ok "$name was asked"
}

live() {
	said doctor "$@" luc doctor --json --seconds 2 /mnt/0
	said top "$@" luc top --once --json --interval 0.5
	said exporter "$@" sh /tmp/exported.sh
	said count "$@" luc trace count --json --seconds 1 --on /mnt/0
	said status "$@" luc status --json --live
}

# said VERB COMMAND...: what it answers, what it remarks, and its exit code.
said() {
	verb=$1
	shift
	"$@" > "$LUC_OUT/$name.$verb.out" 2> "$LUC_OUT/$name.$verb.err"
	echo $? > "$LUC_OUT/$name.$verb.code"
}

# Prints the page of an exporter that has watched for a second.
cat > /tmp/exported.sh << 'END'
rm -f /tmp/host.prom
luc exporter --textfile /tmp/host.prom --interval 0.5 &
while [ ! -e /tmp/host.prom ] && kill -0 $! 2> /dev/null; do
	usleep 100000
done
usleep 1000000
cat /tmp/host.prom
kill -TERM $!
wait $!
END

hide() { # file or folder
	if [ -d "$1" ]; then
		mount -t tmpfs none "$1" || bad "cannot hide $1"
	else
		mount --bind /dev/null "$1" || bad "cannot hide $1"
	fi
}

show() {
	umount "$1" || bad "cannot show $1"
}

kprobes=/sys/bus/event_source/devices/kprobe
mount -t securityfs none /sys/kernel/security 2> /dev/null
yes "security modules" grep -q bpf /sys/kernel/security/lsm

setsid luc-lab bench create-fsync --threads 4 --seconds 999 /mnt/0 > /tmp/load.out 2>&1 &
load=$!

host all env
host no-fentry without fentry
hide $kprobes
host no-kprobes env
host no-functions without fentry
show $kprobes
sysctl -q kernel.ftrace_enabled=0 || echo 0 > /proc/sys/kernel/ftrace_enabled
host no-ftrace env
echo 1 > /proc/sys/kernel/ftrace_enabled
hide /proc/kallsyms
host no-kallsyms env
show /proc/kallsyms
umount /sys/kernel/debug/tracing 2> /dev/null
umount /sys/kernel/debug 2> /dev/null
umount /sys/kernel/tracing
host no-tracefs env
hide /sys/kernel/btf
host no-types env
show /sys/kernel/btf
host no-bpf without bpf
host filtered without permission
host no-rights without rights
host two-rights without others
echo integrity > /sys/kernel/security/lockdown
host integrity env
check 4 "*" luc on /mnt/0
echo confidentiality > /sys/kernel/security/lockdown
host confidentiality env

kill -0 $load || bad "the load ended too early: $(tail -n 3 /tmp/load.out)"
kill -KILL -$load
wait $load
finish
