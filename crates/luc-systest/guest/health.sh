# A file system that takes no writes: every verb names the fault, and none judges or steers it.
. /t/lib.sh
bad_blocks=/sys/kernel/config/nullb/nullb0/badblocks
error=/sys/fs/ext4/nullb0/trigger_fs_error

# each_names WORD SHORT WORDS [NAME ALL]: LUC is on for /mnt/0, which has this fault. ALL is the
# start of what `doctor --all` says.
each_names() {
	word=$1 short=$2 words=$3 name=${4:-nullb0} all=${5:-/mnt/0: $words*1 of 1 file systems takes}
	check 36 "luc: /mnt/0: $words*" luc on /mnt/0
	check 36 "luc: /mnt/0: $words*" timeout 10 luc doctor --seconds 1 /mnt/0
	check 36 "$all no writes*" \
		timeout 10 luc doctor --all --seconds 1
	check 36 "*\"health\": \"$word\"*" timeout 10 luc doctor --all --seconds 1 --json
	check 36 "luc: /mnt/0: $words*" timeout 10 luc try --minutes 0.05 /mnt/0
	check 36 "luc: $name: $words*" timeout 10 luc guard /mnt/0
	check 36 "*health *$words*" luc status /mnt/0
	check 36 "*\"health\": \"$word\"*" luc status --json
	check 0 "*/mnt/0 * on, but $short*" luc probe
	check 0 "*$short*/mnt/0: $words*" luc top --once --interval 0.2
	check 0 "*luc_file_system_fault{*fault=\"$word\"} 1*" luc exporter --once
	check 0 "off: *" luc off /mnt/0
	check 36 "luc: /mnt/0: $words*" luc on /mnt/0
	check 0 "*/mnt/0 * cannot: $short*" luc probe
}

repair() {
	umount /mnt/0 || bad "umount"
	e2fsck -fy /dev/nullb0 > /tmp/fsck.out 2>&1
	[ $? -le 1 ] && ok "repaired" || bad "e2fsck: $(tail -n 3 /tmp/fsck.out)"
	mount -t ext4 -o errors=remount-ro /dev/nullb0 /mnt/0 || bad "mount"
	check 0 "on: *" luc on /mnt/0
}

check 0 "on: *" luc on /mnt/0
check 0 "*policy *steering*" luc status /mnt/0
check 0 "*\"health\": \"sound\"*" luc status --json
check 0 "*luc_file_system_fault{*fault=\"frozen\"} 0*" luc exporter --once

# Frozen, with a writer that waits; a guard and a service stand aside until the thaw.
luc guard > /tmp/guard 2>&1 &
guard=$!
within 400 "guarded" grep -q "^/mnt/0 (nullb0): guarded" /tmp/guard
yes "freeze" fsfreeze --freeze /mnt/0
echo x > /mnt/0/x &
writer=$!
within 400 "the guard stands aside" grep -q "it is frozen, so writers wait; .*; not guarded" /tmp/guard
kill -TERM $guard
wait $guard
each_names frozen frozen "it is frozen, so writers wait; "
mkdir -p /etc/luc
printf '[[file_system]]\npath = "/mnt/0"\nguard = false\n' > /etc/luc/luc.toml
luc service > /tmp/service 2>&1 &
service=$!
within 400 "the service waits" grep -q "/mnt/0: frozen; LUC stays off there" /tmp/service
yes "the writer waits" kill -0 $writer
yes "thaw" fsfreeze --unfreeze /mnt/0
within 400 "the service goes on" grep -q "/mnt/0: LUC is on" /tmp/service
wait $writer
is "exit code of the writer" 0 $?
kill -TERM $service
wait $service
is "exit code of the service" 0 $?

# An error, where errors=remount-ro.
repair
echo 1 > $error
each_names journal_aborted "journal aborted" "it takes no writes, because its journal is aborted"

# An error while the doctor watches.
repair
luc doctor --seconds 2 /mnt/0 > /tmp/doctor 2>&1 &
usleep 1000000
echo 1 > $error
wait $!
is "exit code of the doctor" 36 $?
yes "its only line" grep -q "^luc: /mnt/0: it takes no writes, because its journal" /tmp/doctor

# Forced shutdowns: with and without a flush of the journal.
for flags in 0 1 2; do
	repair
	yes "shutdown $flags" /t/shutdown $flags /mnt/0
	each_names shut_down "shut down" "it takes no writes, because it was shut down by force"
done

# The disk fails at the start of the journal.
repair
block=$(debugfs -R "bmap <8> 0" /dev/nullb0 2> /dev/null)
range="$((block * 8))-$((block * 8 + 511))"
echo "+$range" > $bad_blocks || bad "badblocks"
luc-lab bench create-fsync --threads 2 --seconds 5 --warmup-s 0 /mnt/0 > /dev/null 2>&1
each_names journal_aborted "journal aborted" "it takes no writes, because its journal is aborted"
echo "-$range" > $bad_blocks
repair
check 0 "*policy *steering*" luc status /mnt/0

# Device mapper keeps all requests waiting, by default with the file system frozen.
check 0 "off: *" luc off /mnt/0
umount /mnt/0 || bad "umount"
yes "create" dmsetup create slow \
	--table "0 $(cat /sys/class/block/nullb0/size) linear /dev/nullb0 0"
mount -t ext4 /dev/dm-0 /mnt/0 || bad "mount"
for how in "" --nolockfs; do
	check 0 "on: *" luc on /mnt/0
	yes "suspend $how" dmsetup suspend $how slow
	each_names suspended suspended "/dev/mapper/slow is suspended, so writers wait; " dm-0
	yes "resume" dmsetup resume slow
done
umount /mnt/0 || bad "umount"
yes "remove" dmsetup remove slow
mount -t ext4 /dev/nullb0 /mnt/0 || bad "mount"
check 0 "on: *" luc on /mnt/0

# The file system on whose file it lies is frozen, and then full.
check 0 "off: *" luc off /mnt/0
umount /mnt/0 || bad "umount"
mkdir -p /mnt/outer
mount -t ext4 /dev/nullb0 /mnt/outer || bad "mount"
dd if=/dev/zero of=/mnt/outer/image bs=1M seek=24 count=0 2> /dev/null
losetup /dev/loop0 /mnt/outer/image || bad "losetup"
/sbin/mke2fs -q -F -b 4096 -J size=4 /dev/loop0 || bad "mke2fs"
mount -t ext4 /dev/loop0 /mnt/0 || bad "mount"
check 0 "on: *" luc on /mnt/0
yes "freeze below" fsfreeze --freeze /mnt/outer
each_names fault_below "fault below" \
	"it lies on a file of /mnt/outer, which has a fault: it is frozen, so writers wait; " loop0 \
	"*/mnt/0: it lies on a file of /mnt/outer, which has a fault: *2 of 2 file systems take"
yes "thaw below" fsfreeze --unfreeze /mnt/outer
check 0 "on: *" luc on /mnt/0
dd if=/dev/zero of=/mnt/outer/all bs=64k 2> /dev/null
luc-lab bench create-fsync --threads 2 --seconds 5 --warmup-s 0 /mnt/0 > /dev/null 2>&1
full="its journal is aborted (*), and /mnt/outer, on which it lies, has no free space; make room"
each_names journal_aborted "journal aborted" "it takes no writes, because $full there, then " loop0 \
	"*/mnt/0: it takes no writes, because $full there, then *1 of 2 file systems takes"
umount /mnt/0 || bad "umount"
losetup -d /dev/loop0
rm /mnt/outer/all /mnt/outer/image
umount /mnt/outer || bad "umount"
mount -t ext4 /dev/nullb0 /mnt/0 || bad "mount"
check 0 "on: *" luc on /mnt/0

# Not mounted here: another namespace holds it.
unshare -m sh -c 'mount --make-rprivate / 2> /dev/null
	until [ -e /tmp/done ]; do usleep 100000; done' &
other=$!
usleep 500000
umount /mnt/0 || bad "umount"
check 0 "nullb0 (*), not mounted here*" luc status
check 9 "luc: /mnt/0: LUC is not on *luc status*" luc off /mnt/0
device=$(cat /sys/class/block/nullb0/dev)
check 0 "*batching*" luc set nullb0 batching off
check 0 "*batching*" luc set "$device" batching returns
check 0 "*nullb0*" luc status /dev/nullb0
check 0 "*no fsync pressure*" luc doctor --seconds 1 nullb0
for name in nullb0 /dev/nullb0 "$device"; do
	check 0 "off: *(nullb0)*" luc off "$name"
	check 0 "on: *(nullb0, ext4)*" luc on "$name"
done
check 0 "off: *" luc off --all
touch /tmp/done
wait $other
eventually "the file system goes" gone /sys/fs/ext4/nullb0
check 5 "luc: nullb0: *" luc off nullb0
mount -t ext4 /dev/nullb0 /mnt/0
bench /mnt/0 2
finish
