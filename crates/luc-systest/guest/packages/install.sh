# The packages are installed on a server that never had LUC.
. /mnt/lib.sh
. /mnt/server.sh

files > /var/log/before
packages
yes "installed" apt-get -q -y install /tmp/luc.deb /tmp/luc-dkms.deb
yes "dkms has built it" sh -c 'dkms status luc | grep ": installed"'
check 0 "luc 0*" luc --version
yes "no laboratory with it" sh -c '! command -v luc-lab'
yes "the laboratory beside it" apt-get -q -y --no-install-recommends install /tmp/luc-lab.deb
check 0 "luc-lab 0*" luc-lab --version
for unit in luc luc-exporter; do
	check 1 disabled systemctl is-enabled $unit
	check 3 inactive systemctl is-active $unit
	level=$(systemd-analyze security $unit | sed -n 's/.*level for [^:]*: \([0-9.]*\) .*/\1/p')
	yes "$unit is exposed by $level, at most 3.0" awk "BEGIN { exit !($level + 0 > 0 && $level <= 3.0) }"
done
check 0 "no file system is named: LUC stays off*" luc service --check
check 0 "*" luc probe

printf '[[file_system]]\npath = "/"\n' >> /etc/luc/luc.toml
yes "enabled" systemctl enable --now luc
within 100 "LUC is on" is_on /
is_on / || journalctl -q -b -u luc -o cat | sed 's/^/tell /'
end
