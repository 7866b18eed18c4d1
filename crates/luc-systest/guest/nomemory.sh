# Allocations fail: some or all of those for copies, in blocks of a page and in jbd2's own slab, and
# each allocation of an attach in turn.
. /t/lib.sh
debug=/sys/kernel/debug

# only_luc ATTRIBUTE PERCENT: allocations fail if the module is on the stack.
only_luc() {
	text=$(awk '$4 == "[luc]" && tolower($2) == "t" { print $1 }' /proc/kallsyms | sort)
	[ "$text" ] || bad "no symbols of luc"
	first=${text%%[!0-9a-f]*} last=${text##*[!0-9a-f]}
	echo "0x${first%???}000" > "$debug/$1/require-start"
	# Nothing else is on the last page of the module's code.
	echo "0x${last%???}fff" > "$debug/$1/require-end"
	echo 32 > "$debug/$1/stacktrace-depth"
	echo -1 > "$debug/$1/times"
	echo 0 > "$debug/$1/verbose"
	# Allocations of the module that may wait for memory must fail, too.
	echo N > "$debug/$1/ignore-gfp-wait"
	echo "$2" > "$debug/$1/probability"
}

never() {
	for attribute in failslab fail_page_alloc; do
		echo 0 > $debug/$attribute/probability
	done
}

# tries DISK: copies that were made or failed.
tries() {
	echo $(($(counter "nullb$1" copies) + $(counter "nullb$1" copies_failed)))
}

# enough DISK: a load until copy-out has tried often enough; copy-out pauses at times.
enough() {
	goal=$(($(tries "$1") + 30)) rounds=0
	while load "$1" && [ "$(tries "$1")" -lt $goal ] && [ $rounds -lt 20 ]; do
		rounds=$((rounds + 1))
	done
}

load() { # number of the disk
	yes "load on disk $1" luc-lab bench write-delay --writers 16 --fsync-streams 4 --think-us 2000 \
		--seconds "$SECONDS_EACH" --warmup-s 0 "/mnt/$1"
}

echo 0 > $debug/fail_page_alloc/min-order
for disk in 0 1; do
	luc on /mnt/$disk --policy copyout $always_copy > /dev/null
	enough $disk
	copies=$(counter nullb$disk copies)
	yes "$copies copies" test "$copies" -gt 0
	is "copies that failed" 0 "$(counter nullb$disk copies_failed)"
	for percent in 30 100; do
		only_luc failslab $percent
		only_luc fail_page_alloc $percent
		# Read these only now: the last load's journal was still being written.
		before=$(counter nullb$disk copies) failed=$(counter nullb$disk copies_failed)
		enough $disk
		# And these before the faults end, for the same reason.
		failed=$(($(counter nullb$disk copies_failed) - failed))
		copies=$(($(counter nullb$disk copies) - before))
		never
		yes "at $percent%, $failed copies of $((failed + copies)) failed" test $failed -gt 0
		[ $percent = 100 ] && is "copies made without memory" 0 $copies
		[ $percent = 30 ] && yes "some copies went through" test $copies -gt 0
	done
	load $disk
done
check 0 "*module luc removed" luc off --all --unload

# The Nth allocation of an attach fails, for each N at first and then in growing steps. The attach
# succeeds all the same, or it is refused and nothing stays behind.
insmod /lib/luc/luc.ko
only_luc failslab 0
only_luc fail_page_alloc 0
device=$(cat /sys/class/block/nullb0/dev)
# Builtins only: the setting counts for the task that makes it, which must attach itself.
cat > /tmp/attach << 'END'
echo "$1" > /proc/self/fail-nth
echo "$2" > /sys/fs/luc/attach
status=$?
read -r left < /proc/self/fail-nth
echo 0 > /proc/self/fail-nth
echo "$status ${left:-none}"
END
n=1 refused=0 taken=0
while said=$(sh /tmp/attach $n "$device" 2> /dev/null) && [ $n -lt 1000 ]; do
	case $said in
	"0 0") taken=$((taken + 1)) ;;
	"0 "*) break ;;
	*)
		refused=$((refused + 1))
		[ -e /sys/fs/luc/nullb0 ] && bad "allocation $n failed, and yet it is there"
		grep -q " attached" /sys/fs/luc/hooks && bad "allocation $n failed, and hooks are left"
		;;
	esac
	if [ -e /sys/fs/luc/nullb0 ]; then
		echo "$device" > /sys/fs/luc/detach || bad "detach after allocation $n"
	fi
	n=$((n + 1 + n / 20))
done
yes "an attach has fewer than $n allocations; without one of $refused it is refused, of $taken it is not" \
	test $refused -gt 5 -a "$n" -lt 1000
yes "the last one had them all" test -e /sys/fs/luc/nullb0
load 0
echo "$device" > /sys/fs/luc/detach || bad "detach of the last one"
yes "rmmod" rmmod luc

# The same while the module is loaded, at random.
range=$(awk 'found { print $1; exit } $3 == "do_one_initcall" { print $1; found = 1 }' /proc/kallsyms | xargs)
for attribute in failslab fail_page_alloc; do
	echo "0x${range% *}" > $debug/$attribute/require-start
	echo "0x${range#* }" > $debug/$attribute/require-end
	echo 4 > $debug/$attribute/probability
done
loaded=0 refused=0
for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30; do
	if insmod /lib/luc/luc.ko 2> /dev/null; then
		loaded=$((loaded + 1))
		rmmod luc || bad "rmmod in turn $n"
	else
		refused=$((refused + 1))
	fi
	[ -e /sys/fs/luc ] && bad "sysfs after turn $n"
done
never
yes "$loaded loads, $refused refused" test $loaded -gt 0 -a $refused -gt 0
check 0 "on: *" luc on /mnt/0
load 0
check 0 "*module luc removed" luc off --all --unload
finish
