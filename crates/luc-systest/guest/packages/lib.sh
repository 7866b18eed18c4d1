# Sourced by the steps on a server, after ../lib.sh.

# The firmware's characters stay on a line of their own.
echo

# lib.sh waits as busybox does.
usleep() {
	sleep "$(echo "$1" | sed 's/......$/.&/; s/^[0-9]*$/0.&/')"
}

export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8
# The host's clock starts long before the files were made, which make does not like.
date -s "@$(stat -c %Y /mnt/step.sh)" > /dev/null

# The packages, where apt may read them.
packages() {
	cp /mnt/luc.deb /mnt/luc-dkms.deb /tmp/
}

is_on() {
	luc status "$1" | grep -q steer
}

# All that lies on the disk, but for what every start, every apt and every day changes.
files() {
	find / -xdev \( -path /tmp -o -path /var/backups -o -path /var/cache -o -path /var/lib/apt \
		-o -path /var/log \) -prune -o -print | sed 's,^/usr/,/,' | sort -u
}

# What the step says last; the kernel's log is for the host to judge.
end() {
	echo "tell seconds: $(cut -d. -f1 /proc/uptime)"
	dmesg
	finish
}
