# Blocks of metadata for which tasks wait: debugfs says what they hold, and whose inodes the commit
# had changed is known. trace.rs judges the shares.
. /t/lib.sh
disk=$(grep -o '^/dev/[a-z0-9]* /mnt/0 ' /proc/mounts | cut -d ' ' -f 1)

# The inodes of both files lie in one block.
: > /mnt/0/synced
: > /mnt/0/appended
sync -f /mnt/0

# appends FILE: a task appends to FILE while another one syncs its own without end.
cat > /tmp/appends.sh << 'END'
watched load syncs /mnt/0/synced 100000 0 1000 > /dev/null &
load=$!
for _ in $(seq 200); do
	echo x
	usleep 13000
done >> "$1"
kill -KILL $load
wait $load 2> /dev/null
true
END
cat > /tmp/creates.sh << 'END'
exec luc-lab bench create-fsync --threads 8 --seconds 1 --warmup-s 0 --keep /mnt/0 > /dev/null
END

record() { # name, script, argument
	yes "$1 is recorded" luc trace record -o "/tmp/$1" --on /mnt/0 -- sh "/tmp/$2.sh" "$3"
	luc trace summary --json "/tmp/$1" > "$LUC_OUT/$1.json" || bad "summary of $1"
	luc trace summary "/tmp/$1" | grep -E "blocks waited for|of the waits" | sed "s/^ */tell $1: /"
}
record others appends /mnt/0/appended
record own appends /mnt/0/synced
record creates creates

# Every block that was named, beside debugfs.
sync -f /mnt/0
dumpe2fs "$disk" > /tmp/groups 2> /dev/null
holds() { # block, inode: what it holds
	said=$(debugfs -R "imap <$2>" "$disk" 2> /dev/null)
	case $said in
	*"at block $1,"*) echo "inode-table" ;;
	*)
		inode=$(debugfs -R "icheck $1" "$disk" 2> /dev/null | sed -n "s/^$1\t\([0-9]*\)$/\1/p")
		if [ -n "$inode" ]; then
			debugfs -R "stat <$inode>" "$disk" 2> /dev/null | sed -n 's/.*Type: \([a-z]*\).*/\1/p'
		elif grep -q "Block bitmap at $1 " /tmp/groups; then
			echo block-bitmap
		elif grep -q "Inode bitmap at $1 " /tmp/groups; then
			echo inode-bitmap
		elif grep -q "Group descriptors at $1-" /tmp/groups; then
			echo group-descriptors
		fi
		;;
	esac
}
grep -ah '^#block ' /tmp/others /tmp/own /tmp/creates | sort -u > /tmp/named
while read -r _ _ block kind first _; do
	is "block $block" "$kind" "$(holds "$block" "${first:-1}")"
done < /tmp/named
for kind in inode-table inode-bitmap; do
	grep -q " $kind" /tmp/named && ok "a wait for: $kind" || bad "no wait for: $kind"
done
finish
