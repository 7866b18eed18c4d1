# Sourced by the scripts about the lab's disk.
. /t/lib.sh
disks=/sys/kernel/config/lucdisk
[ -d $disks ] || insmod /t/lucdisk.ko

# put DISK ATTRIBUTE VALUE
put() {
	echo "$3" > "$disks/$1/$2" || bad "$1/$2 does not take '$3'"
}

get() { # disk, attribute
	cat "$disks/$1/$2"
}

# disk NAME ATTRIBUTE=VALUE...: makes it and switches it on.
disk() {
	made=$1
	mkdir "$disks/$made" || bad "cannot make $made"
	shift
	for pair in "$@"; do
		put "$made" "${pair%%=*}" "${pair#*=}"
	done
	put "$made" power 1
}

# undisk NAME...
undisk() {
	for name in "$@"; do
		put "$name" power 0
		rmdir "$disks/$name" || bad "cannot remove $name"
	done
}

# refused DISK ATTRIBUTE ERROR VALUE...: no value is taken, and the old one stays.
refused() {
	where=$1 attr=$2 error=$3
	shift 3
	before=$(cat "$disks/$where/$attr")
	for value in "$@"; do
		if said=$( (echo "$value" > "$disks/$where/$attr") 2>&1); then
			bad "$attr takes '$value'"
		else
			case $said in
			*"$error"*) ;;
			*) bad "$attr refuses '$value', but with: $said" ;;
			esac
		fi
	done
	is "$attr after $# refusals" "$before" "$(cat "$disks/$where/$attr")"
}

# The same file system, bit for bit, in every run.
mkfs() { # disk, further arguments
	made=$1
	shift
	/sbin/mke2fs -q -F -t ext4 -U 4c554300-0000-4000-8000-000000000001 \
		-E hash_seed=4c554300-0000-4000-8000-ffffffffffff,lazy_itable_init=0,nodiscard \
		"$@" "/dev/$made" 2> /tmp/mkfs.err || bad "mke2fs on $made"
}

mark() { # disk, text
	echo -n "$2" > "/dev/$1-log" || bad "mark $2"
}

# Index that the next entry of the record will have.
here() {
	get "$1" log_entries
}

sum() {
	cat "$@" | md5sum | cut -d ' ' -f 1
}

# noise BYTES SEED: the same bytes for the same seed.
noise() {
	seq $(($2 * 1000 + 1000000)) 999999999 2> /dev/null | head -c "$1"
}
