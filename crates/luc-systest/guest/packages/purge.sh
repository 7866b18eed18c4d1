# On the newer kernel LUC is on. Then it is purged, and nothing is left.
. /mnt/lib.sh
. /mnt/server.sh

echo "tell $(uname -r)"
within 100 "LUC is on after a kernel upgrade" is_on /
yes "purged" apt-get -q -y purge luc luc-dkms luc-lab
yes "the module is gone" gone /sys/module/luc
yes "no command is left" sh -c '! command -v luc && ! command -v luc-lab'
yes "files are made durable" dd if=/dev/zero of=/root/after bs=4k count=64 oflag=sync
rm -f /root/after

# As in piuparts: files that were not there before, belong to no package, and were not made for the
# newer kernel or by dkms for itself. Files with our name count in any case.
files > /var/log/after
sed 's,^/usr/,/,' /var/lib/dpkg/info/*.list | sort -u > /var/log/owned
left=$(comm -13 /var/log/before /var/log/after | comm -23 - /var/log/owned | awk '/luc/ ||
	!(/^\/lib\/modules\/[^\/]*\/modules\./ || /^\/boot\/initrd.img-/ || /^\/(initrd.img|vmlinuz)/ ||
	/^\/var\/lib\/(dpkg|systemd|initramfs-tools)\// || /^\/var\/lib\/dkms\/mok\./)')
is "what is left" "" "$left"
end
