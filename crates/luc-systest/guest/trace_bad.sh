# Where watching is impossible or hard: a clear line and an exit code, and nothing left behind.
. /t/lib.sh
. /t/trace_lib.sh

no_journal() {
	umount /mnt/1
	mkfs.ext4 -q -F -O ^has_journal /dev/nullb1 || bad "mkfs"
	mount -t ext4 /dev/nullb1 /mnt/1
}

# without CODE WHAT: no verb can watch, and none leaves a file.
without() {
	rm -f /tmp/none
	check "$1" "luc: *$2*" luc trace record -o /tmp/none --on /mnt/0 --seconds 1
	yes "no file of a recording that was none" test ! -e /tmp/none
	check "$1" "luc: *$2*" luc trace count --on /mnt/0 --seconds 1
	check "$1" "luc: *$2*" luc doctor /mnt/0 --seconds 1
}

hooked=$(wc -l < /sys/kernel/tracing/enabled_functions)

# A thousand threads, each with a file.
ulimit -n 4096
luc trace record -o /tmp/many --on /mnt/0 -- luc-lab bench create-fsync --threads 1000 --seconds 1 --warmup-s 0 /mnt/0 \
	> /tmp/many.bench 2> /tmp/many.said || bad "a thousand threads: $(cat /tmp/many.said)"
luc trace summary --json /tmp/many > "$LUC_OUT/many.json" || bad "summary of many"
yes "the doctor finds his way among them" sh -c 'luc doctor --from /tmp/many; case $? in 0 | 26 | 34 | 35) ;; *) false ;; esac'

# Ctrl-C, twice in a row, while much happens. The load outlasts a recorder that starts slowly.
luc-lab bench create-fsync --threads 16 --seconds 60 --warmup-s 0 /mnt/0 > /dev/null &
load=$!
luc trace record -o /tmp/twice --on /mnt/0 2> /dev/null &
recorder=$!
while [ ! -s /tmp/twice ]; do
	usleep 20000
done
usleep 300000
kill -INT $recorder
kill -INT $recorder
wait $recorder
kill -INT $load
wait $load
yes "its recording can be read" luc trace summary /tmp/twice
eventually "no hook is left" [ "$(wc -l < /sys/kernel/tracing/enabled_functions)" = "$hooked" ]

# Cut off, changed, and no recording at all.
head -c 100000 /tmp/many > /tmp/cut
check 0 "*note: /tmp/cut is damaged and was read only up to the damage*" luc trace summary /tmp/cut
(head -c 100000 /tmp/many; head -c 64 /dev/urandom; tail -c +100065 /tmp/many) > /tmp/changed
check 0 "*note: /tmp/changed is damaged and was read only up to the damage*" luc trace summary /tmp/changed
head -c 5000 /dev/urandom > /tmp/noise
check 24 "luc: trace /tmp/noise: *" luc trace summary /tmp/noise
sed '1s/clock=monotonic/clock=local/' /tmp/many > /tmp/clock
check 0 "*note: /tmp/clock was recorded with the clock 'local'*" luc trace summary /tmp/clock

# A file system that is not ext4; no journal.
check 6 "luc: *the file system is*" luc trace record -o /tmp/none --on /proc --seconds 1
no_journal
check 6 "luc: *journal*" luc doctor /mnt/1 --seconds 1
yes "a file system without journal is watched all the same" \
	luc trace record -o /tmp/plain --on /mnt/1 -- sh -c ". /t/trace_lib.sh; files /mnt/1 plain 3"
luc trace summary --json /tmp/plain > "$LUC_OUT/plain.json" || bad "summary of plain"

# No place for the recording; the load is ended, too.
mkdir -p /tmp/small
mount -t tmpfs -o size=64k tmpfs /tmp/small
check 24 "luc: *o space left*" luc trace record -o /tmp/small/x --on /mnt/0 -- \
	luc-lab bench create-fsync --threads 8 --seconds 20 --warmup-s 0 /mnt/0
umount /tmp/small

# No rights; types hidden; lockdown, which cannot be undone.
echo nobody:x:65534:65534::/:/bin/sh >> /etc/passwd
check 3 "luc: cannot trace with BPF*" start-stop-daemon -S -c 65534:65534 -x /bin/luc -- \
	trace record -o /tmp/none --on /mnt/0 --seconds 1
mount -t tmpfs tmpfs /sys/kernel/btf
without 24 "has no type information*CONFIG_DEBUG_INFO_BTF"
umount /sys/kernel/btf
echo confidentiality > /sys/kernel/security/lockdown
without 3 "cannot trace with BPF (the kernel is locked down*"
finish
