# A workload of known counts, sourced by trace.sh and by what it records.

# files DIRECTORY NAME COUNT: so many files of five writes, each made durable.
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
	# Nobody asked for this one.
	files /mnt/1 other 10 &
	wait
}
