# Functions for every script. Lines that a script prints are for luc-lab: `begin`, `end`,
# `NAME VALUE`, and `failed WHY`.
set -u
PATH=$(echo /usr/lib/postgresql/*/bin):$PATH:/usr/local/sbin:/usr/sbin:/sbin
SERVERS=

failed() {
	echo "failed $*"
	exit 1
}

finish() {
	trap - EXIT INT TERM
	for server in $SERVERS; do kill "$server" 2>/dev/null; done
	# luc-lab kills whatever has not ended after this time.
	tries=100
	for server in $SERVERS; do
		while kill -0 "$server" 2>/dev/null && [ $tries -gt 0 ]; do
			tries=$((tries - 1))
			sleep 0.1
		done
	done
	rmdir "/sys/fs/cgroup/$APP" 2>/dev/null
}
trap finish EXIT
trap 'exit 143' INT TERM

for need in $NEEDS; do
	if ! command -v "${need%%:*}" >/dev/null; then
		echo "missing ${need%%:*} ${need#*:}"
		exit 1
	fi
done
chmod 755 "$TMP"

# Runs a command as nobody, for servers that refuse root.
as_nobody() {
	if [ "$(id -u)" = 0 ]; then
		exec setpriv --reuid=65534 --regid=65534 --clear-groups -- "$@"
	fi
	exec "$@"
}

# Gives files to nobody, for such servers.
for_nobody() { if [ "$(id -u)" = 0 ]; then chown 65534:65534 "$@"; fi; }

# reason LOG: the line that says why a program gave up, or its last one.
reason() { tr '\r' '\n' <"$1" | grep -m 1 -iE 'no space left|fatal|\[ERROR\]' || tail -n 1 "$1"; }

# room MIB: fails unless the disk has this much room, for programs that do not say so.
room() {
	[ "$(df -Pk "$DIR" | mawk 'NR == 2 { print $4 }')" -ge $(($1 * 1024)) ] ||
		failed "the disk has less than $1 MiB of room"
}

# free PORT...: fails if a server listens on one of them, which would be measured instead.
free() {
	for port in "$@"; do
		! cat /proc/net/tcp /proc/net/tcp6 2>/dev/null |
			mawk -v port="$(printf ':%04X' "$port")" '
				$4 == "0A" && substr($2, length($2) - 4) == port { found = 1 }
				END { exit !found }' ||
			failed "port $port is taken: another server listens on it"
	done
}

# in_group COMMAND...: runs a server in a control group of its own, as a host's services are, if one
# of version 2 can be made.
in_group() {
	group=/sys/fs/cgroup/$APP
	mkdir "$group" 2>/dev/null || [ -d "$group" ] && echo 0 >"$group/cgroup.procs"
	exec "$@"
}

# serve NAME COMMAND...: starts a server whose messages go to $TMP/NAME.log.
serve() {
	log=$TMP/$1.log
	shift
	"$@" >"$log" 2>&1 &
	SERVER=$!
	SERVERS="$SERVERS $SERVER"
}

# await NAME COMMAND...: waits until the command succeeds.
await() {
	name=$1
	shift
	tries=600
	until "$@" >/dev/null 2>&1; do
		kill -0 "$SERVER" 2>/dev/null || failed "$name ended: $(reason "$TMP/$name.log")"
		tries=$((tries - 1))
		[ $tries -gt 0 ] || failed "$name did not answer within 60 s: $(reason "$TMP/$name.log")"
		sleep 0.1
	done
}

# run LOG COMMAND...: runs a command, or fails with its reason.
run() {
	log=$TMP/$1.log
	shift
	"$@" >"$log" 2>&1 || failed "$1: $(reason "$log")"
}

now_ms() { date +%s%3N; }

# per_s COUNT MS
per_s() { LC_ALL=C mawk "BEGIN { printf \"%.3f\", $1 * 1000 / $2 }"; }

# image FILES: makes $TMP/image.tar, of files of 16 KiB.
image() {
	mkdir "$TMP/image"
	head -c $(($1 * 16384)) /dev/zero | split -b 16384 -a 4 - "$TMP/image/file"
	tar -C "$TMP" -cf "$TMP/image.tar" image
	rm -r "$TMP/image"
}

# debs COUNT: makes that many packages of 20 files in $TMP/debs.
debs() {
	mkdir "$TMP/debs" "$TMP/deb" "$TMP/deb/DEBIAN"
	number=0
	while [ $number -lt "$1" ]; do
		number=$((number + 1))
		rm -rf "$TMP/deb/usr"
		mkdir -p "$TMP/deb/usr/lib/luc-$number"
		head -c 163840 /dev/zero | split -b 8192 - "$TMP/deb/usr/lib/luc-$number/file"
		printf 'Package: luc-%s\nVersion: 1\nArchitecture: all\nMaintainer: nobody <nobody@localhost>\nDescription: files\n' \
			$number >"$TMP/deb/DEBIAN/control"
		run dpkg-deb dpkg-deb --build -Znone "$TMP/deb" "$TMP/debs/$number.deb"
	done
}

# install FOLDER: installs these packages below a folder.
install_debs() {
	mkdir -p "$1/var/lib/dpkg/info" "$1/var/lib/dpkg/updates"
	: >"$1/var/lib/dpkg/status"
	: >"$1/var/lib/dpkg/available"
	run dpkg $WITH dpkg --root="$1" --force-all --log=/dev/null --install "$TMP"/debs/*.deb
}

# rounds MEASURE COUNT COMMAND: repeats a command, which makes COUNT things below $DIR/$round, until
# the time is over, and prints how many it made per second.
rounds() {
	round=0
	echo begin
	begin=$(now_ms)
	end=$begin
	while [ $((end - begin)) -lt $((TIME_S * 1000)) ]; do
		round=$((round + 1))
		"$3"
		end=$(now_ms)
	done
	echo end
	echo "$1 $(per_s $((round * $2)) $((end - begin)))"
}
