# Programs as people run them, and the counts of other tools: strace counts each sync call, jbd2
# each commit, fio its own syncs. truth.rs judges the numbers.
. /t/lib.sh

ROOT=/debian
mkdir -p $ROOT/proc $ROOT/data
mount -t proc none $ROOT/proc
mount --bind /dev $ROOT/dev
mount --bind /mnt/0 $ROOT/data
cp /usr/bin/busybox $ROOT/usr/bin/busybox
chroot $ROOT /usr/bin/busybox --install -s /usr/bin
ln -s /usr/bin/busybox $ROOT/bin/sh
printf 'root:x:0:0::/:/bin/sh\nperson:x:99:99::/tmp:/bin/sh\n' > $ROOT/etc/passwd
printf 'root:x:0:\nperson:x:99:\n' > $ROOT/etc/group
chmod 1777 $ROOT/tmp
ip link set lo up

cat > $ROOT/tmp/fio.sh << 'END'
exec fio --name=truth --directory=/data --size=1m --bs=4k --rw=randwrite --numjobs=3 \
	--fsync=4 --fdatasync=7 --output-format=json --output=/tmp/fio.json
END
cat > $ROOT/tmp/sqlite.sh << 'END'
for journal in delete truncate persist wal; do
	for row in 1 2 3 4 5; do
		echo "PRAGMA journal_mode=$journal; CREATE TABLE IF NOT EXISTS t(a); INSERT INTO t VALUES ($row);"
	done | sqlite3 /data/$journal.db > /dev/null || exit
done
END
cat > $ROOT/tmp/postgres.sh << 'END'
PATH=$PATH:$(echo /usr/lib/postgresql/*/bin)
mkdir /data/pg
chown person /data/pg
cat > /tmp/server.sh << 'INNER'
initdb --no-locale -E UTF8 -D /data/pg > /tmp/initdb.log || exit
pg_ctl -D /data/pg -o '-k /tmp -h ""' -l /tmp/server.log -w start > /dev/null || exit
pgbench -h /tmp -i -q postgres || exit
pgbench -h /tmp -c 4 -j 2 -t 25 postgres || exit
pg_ctl -D /data/pg -w -m fast stop > /dev/null
INNER
exec su -s /bin/sh person -c "PATH=$PATH sh /tmp/server.sh"
END

transactions() {
	sed -n 's/ transactions.*//p' /proc/fs/jbd2/nullb0-8/info
}

page() { # file: what the exporter serves now
	wget -q -O "$1" http://127.0.0.1:9797/metrics || bad "no page of the exporter"
}

# truth NAME: runs the program once, watched, and writes what is left to write.
truth() {
	out=$LUC_OUT/$1
	cat > /tmp/load.sh << END
chroot $ROOT strace -f -qq -y --seccomp-bpf -e trace=fsync,fdatasync -e signal=none -o /tmp/$1.strace sh /tmp/$1.sh || exit
sync -f /mnt/0
END
	sync -f /mnt/0
	page "$out-before"
	begin=$(transactions)
	yes "$1" luc trace count --json -o "$out-count.json" --on /mnt/0 -- \
		luc trace record -o "/tmp/$1.luc" --on /mnt/0 -- sh /tmp/load.sh
	end=$(transactions)
	page "$out-after"
	luc trace summary --json "/tmp/$1.luc" > "$out-summary.json" || bad "$1: summary"
	# Both are right: the doctor has found something to do, or nothing.
	luc doctor --json --from "/tmp/$1.luc" > "$out-doctor.json"
	case $? in 0 | 26 | 34 | 35) ;; *) bad "$1: doctor" ;; esac
	# Only each process's calls on the disk: PostgreSQL syncs the lock of its socket, too.
	awk '/ (fsync|fdatasync)\([0-9]+<\/data/ { calls[$1]++ }
		END { for (pid in calls) print pid, calls[pid] }' "$ROOT/tmp/$1.strace" > "$out-called"
	echo "$((end - begin))" > "$out-commits"
}

luc exporter > /dev/null 2> /tmp/exporter.err &
exporter=$!
within 200 "the exporter serves" wget -q -O /dev/null http://127.0.0.1:9797/metrics
for name in fio sqlite postgres; do
	truth $name
done
cp $ROOT/tmp/fio.json "$LUC_OUT/fio-own.json"
kill -TERM $exporter
wait $exporter
is "exit status of the exporter" 0 $?
umount $ROOT/data
finish
