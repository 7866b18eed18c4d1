# After a reboot LUC is on, and stays on through an upgrade of the packages and one of the kernel.
. /mnt/lib.sh
. /mnt/server.sh

within 100 "LUC is on after a reboot" is_on /
bench /root 2
packages
before=$(systemctl show --value --property MainPID luc)
echo "tell seconds: $(cut -d. -f1 /proc/uptime)"
yes "upgraded" dpkg -i /tmp/luc.deb /tmp/luc-dkms.deb /tmp/luc-lab.deb
within 100 "LUC is on after an upgrade" is_on /
yes "the service is a new one" test "$before" != "$(systemctl show --value --property MainPID luc)"
yes "the configuration stays" grep -q '^path = "/"$' /etc/luc/luc.toml
echo "tell seconds: $(cut -d. -f1 /proc/uptime)"
yes "a newer kernel is installed" \
	apt-get -q -y --no-install-recommends --no-download -t "$(cat /mnt/suite)" install $(cat /mnt/kernel)
is "kernels that dkms has built for" 2 "$(dkms status luc | grep -c ': installed')"
end
