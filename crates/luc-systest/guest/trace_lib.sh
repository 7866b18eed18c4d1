# A workload of known counts, sourced by trace.sh and by the commands that it records.

# files DIRECTORY NAME COUNT: makes COUNT files of five writes, each made durable.
files() {
	i=0
	while [ $i -lt "$3" ]; do
		dd if=/dev/zero of="$1/$2-$i" bs=4096 count=5 conv=fsync 2> /dev/null
		i=$((i + 1))
	done
}

four_writers() {
	for w in 1 2 3 4; do
		files /mnt/0 $w 25 &
	done
	# No test asks for this one.
	files /mnt/1 other 10 &
	wait
}

# blocked_writers DIRECTORY: writers that commits block, many of them on metadata. Others wait
# because an operation that must read from the disk delays the locking of a transaction. That is
# chance, so the load runs until the kernel has seen one.
blocked_writers() {
	luc-lab bench write-delay --writers 16 --seconds 0.3 --warmup-s 0 "$1"
	mkdir -p "$1/many"
	(cd "$1/many" && touch $(seq 400))
	sync
	for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
		luc-lab bench create-fsync --threads 8 --seconds 0.5 --warmup-s 0 "$1" &
		load=$!
		while kill -0 $load 2> /dev/null; do
			echo 3 > /proc/sys/vm/drop_caches
			chmod 600 "$1"/many/* &
			chmod 640 "$1"/many/*
		done
		wait
		grep -q locked: /sys/kernel/tracing/trace && return
	done
}
