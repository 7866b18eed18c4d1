# Sourced by the steps on a server, after ../lib.sh.

# The firmware's characters stay on a line of their own.
echo

# lib.sh uses usleep, which only busybox has.
usleep() {
	sleep "$(echo "$1" | sed 's/......$/.&/; s/^[0-9]*$/0.&/')"
}

export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8
# The host's clock starts long before the files were made, which make does not like.
date -s "@$(stat -c %Y /mnt/step.sh)" > /dev/null

# Puts the packages where apt may read them.
packages() {
	cp /mnt/luc.deb /mnt/luc-dkms.deb /mnt/luc-lab.deb /tmp/
}

is_on() {
	luc status "$1" | grep -q steer
}

# LUC says this if the kernel does not trust the key that dkms has signed with.
untrusted() {
	echo "tell $(luc on / 2>&1)"
	echo "tell $(modprobe luc 2>&1)"
	echo "tell $(luc probe | grep 'module loading')"
	check 4 "luc: kernel module luc: *is not signed by a key that this kernel trusts; *mok.pub*" luc on /
	is "lines of that" 1 "$(luc on / 2>&1 | wc -l)"
	check 0 "*luc.ko is signed; loading it will show whether the kernel trusts the key*" luc probe
	within 100 "the service fails" systemctl is-failed luc
	yes "and says why" sh -c 'systemctl status luc | grep "not signed by a key"'
	is "its exit code" 4 "$(systemctl show --value --property ExecMainStatus luc)"
}

# Secure Boot by the firmware, not by the command line.
secure_boot() {
	check 0 "SecureBoot enabled" mokutil --sb-state
	yes "the kernel is locked down" grep -F '[integrity]' /sys/kernel/security/lockdown
}

# All files on the disk, except those that every boot, every run of apt and every day change.
files() {
	find / -xdev \( -path /tmp -o -path /var/backups -o -path /var/cache -o -path /var/lib/apt \
		-o -path /var/log \) -prune -o -print | sed 's,^/usr/,/,' | sort -u
}

# Ends a step; the host judges the kernel's log.
end() {
	echo "tell seconds: $(cut -d. -f1 /proc/uptime)"
	dmesg
	finish
}
