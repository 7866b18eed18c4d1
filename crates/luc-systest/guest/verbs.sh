#!/bin/sh
# Runs in a lab guest: every verb that talks to the kernel, and every way it can
# refuse, against the real module. Prints one line per check; FAIL lines fail
# the test. /mnt/0 is ext4, /mnt/1 ext4 mounted read-only, /mnt/2 ext2, /mnt/3
# ext4 without a journal, mounted with options.

check() { # expected exit code, text its output must hold, command...
	want=$1 text=$2
	shift 2
	said=$("$@" 2>&1)
	got=$?
	case $said in
	*"$text"*) ;;
	*) got="$got without '$text'" ;;
	esac
	if [ "$got" = "$want" ]; then
		echo "ok $want: $*"
	else
		echo "FAIL $*: exit $got, expected $want: $said"
	fi
}

unprivileged() {
	# Any user but root has no capabilities. The missing pid file keeps start-stop-daemon from
	# taking process 1, which is luc as well, for the daemon.
	busybox start-stop-daemon -S -c 65534:65534 -p /none -x /usr/bin/luc -- "$@"
}

echo 'nobody:x:65534:65534:nobody:/:/bin/sh' > /etc/passwd
mount -o remount,ro /mnt/1

# A folder of the host.
check 0 fentry.c ls /folder

# Nothing loaded.
check 0 "This machine can run LUC" luc probe
check 0 "the module is not loaded" luc status
check 9 "LUC is not on" luc off /mnt/0
check 9 "LUC is not on" luc set /mnt/0

# File systems that LUC cannot steer; nothing is loaded for them.
check 5 "no such file" luc on /mnt/nowhere
check 6 "the file system is tmpfs" luc on /tmp
check 6 "has no journal" luc on /mnt/2
check 6 "has no journal" luc on /mnt/3
check 0 "/mnt/3 ext4 rw,dirsync,noatime" grep " /mnt/3 " /proc/mounts
check 7 "read-only" luc on /mnt/1
check 10 "takes a number from" luc on /mnt/0 --set kp_milli=-1
check 10 "whole number" luc on /mnt/0 --set kp_milli=much
check 10 "no knob is named" luc on /mnt/0 --set speed=1
check 4 "no file" luc on /mnt/0 --module /nowhere/luc.ko
check 4 "was not built for" luc on /mnt/0 --module /other/luc.ko
check 3 "run it as root" unprivileged on /mnt/0
check 0 "the module is not loaded" luc status

# A workload file that drops caches between its preparation and its run, as public ones do.
cat > /tmp/between.f << 'END'
define fileset name=files,path=/x,entries=100,size=64k,prealloc
define process name=p { thread name=t,memsize=1m {
	flowop openfile name=o,filesetname=files,fd=1
	flowop readwholefile name=r,fd=1,iosize=64k
	flowop closefile name=x,fd=1 } }
create files
system "sync"
system "echo 3 > /proc/sys/vm/drop_caches"
psrun -10 1
END
check 0 "none every 10 s" luc-lab bench run /tmp/between.f --dir /mnt/0
check 1 0 sh -c 'luc-lab bench run /tmp/between.f --dir /mnt/0 2>&1 | grep -c "not dropped"'

# On, looked at, changed, off.
check 0 "policy luc, steering" luc on /mnt/0
check 8 "already on" luc on "$LUC_DISK0"
check 0 '"policy": "luc"' luc status --json
check 0 "kp_milli 900 (was 800)" luc set /mnt/0 kp_milli 900
check 10 "the old value is kept" luc set /mnt/0 kp_milli 999999
check 0 "900" luc set /mnt/0 kp_milli
check 3 "run it as root" unprivileged set /mnt/0 kp_milli 1
check 0 "900" luc set /mnt/0 kp_milli
check 0 "policy stock" luc set /mnt/0 policy stock
check 0 "mode observe (was steer)" luc set /mnt/0 mode observe
check 0 "observing only" luc status /mnt/0
check 11 "still on for" luc off --unload
check 3 "run it as root" unprivileged off /mnt/0
check 0 "off: /mnt/0" luc off /mnt/0
check 9 "LUC is not on" luc off /mnt/0

# The module itself refuses what the command line lets through.
for line in "" x 1:2:3 "9999:9" "$(cat /sys/class/block/nullb0/dev) kp_milli=x" \
	"$(cat /sys/class/block/nullb0/dev) kp_milli=-1"; do
	if (echo "$line" > /sys/fs/luc/attach) 2> /dev/null; then
		echo "FAIL the module took '$line'"
	else
		echo "ok attach refuses '$line'"
	fi
done

# A recording replays, and nothing of tracing stays behind.
luc on /mnt/0 > /dev/null
check 0 "0 lost" luc trace record -o /tmp/recording -- \
	luc-lab bench create-fsync --threads 8 --seconds 0.3 --warmup-s 0 /mnt/0
check 0 " 0 different" luc replay /tmp/recording
check 7 "exit status: 7" luc trace record -o /tmp/other -- sh -c 'exit 7'
check 0 " lost" luc trace record -o /tmp/other --seconds 1 -- sleep 60
luc trace record -o /tmp/other 2> /dev/null &
sleep 0.3
check 0 "luc-" ls /sys/kernel/tracing/instances
kill -TERM $!
wait $!
check 0 "" test -z "$(ls /sys/kernel/tracing/instances)"
luc trace record -o /tmp/other 2> /dev/null &
sleep 0.3
kill -KILL $!
wait $!
check 0 "luc-" ls /sys/kernel/tracing/instances
check 0 " lost" luc trace record -o /tmp/other --seconds 1
check 0 "" test -z "$(ls /sys/kernel/tracing/instances)"

# Unmounting switches off by itself.
cd /
umount /mnt/0
# A worker of the module removes the entry just after.
for _ in 1 2 3 4 5 6 7 8 9 10; do
	[ -e /sys/fs/luc/nullb0 ] && sleep 0.2
done
check 0 "for no file system" luc status
mount "$LUC_DISK0" /mnt/0
check 0 "module luc removed" luc off --all --unload

# Killed at any moment: on or off, never in between, and never stuck.
for ms in 1 2 4 8 12 16 24 32 48 64; do
	luc on /mnt/0 > /dev/null 2>&1 &
	usleep "${ms}000"
	kill -KILL $! 2> /dev/null
	wait $! 2> /dev/null
	luc off --all --unload > /dev/null || echo "FAIL off after a kill at $ms ms"
	[ -e /sys/fs/luc ] && echo "FAIL left behind after a kill at $ms ms"
done
# SIGTERM in the middle leaves nothing, with exit code 130, or LUC was already on.
for ms in 1 2 4 8 12 16 24 32 48 64; do
	luc on /mnt/0 > /dev/null 2>&1 &
	usleep "${ms}000"
	kill -TERM $! 2> /dev/null
	wait $!
	case $? in
	0) [ -e /sys/fs/luc/nullb0 ] || echo "FAIL on, but not on after TERM at $ms ms" ;;
	*) [ -e /sys/fs/luc ] && echo "FAIL left behind after TERM at $ms ms" ;;
	esac
	luc off --all --unload > /dev/null || echo "FAIL off after TERM at $ms ms"
done
echo "ok killed at twenty moments"
echo "end of checks"
