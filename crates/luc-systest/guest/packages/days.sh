# After a reboot LUC is on. Then the service meets faults, under a load that its guard judges.
. /mnt/lib.sh
. /mnt/server.sh

said() { # how a line of the service ends
	journalctl -q -b -u luc -o cat | grep -q "^luc: service: $1\$"
}

pid() {
	systemctl show --value --property MainPID luc
}

within 100 "LUC is on after a reboot" is_on /
# In the sandbox, too, the guard counts sync calls by BPF.
within 200 "guarded, and not by throughput alone" said '/ (vda): guarded'
bench /root 2
luc-lab bench create-fsync --threads 4 --seconds 100000 --warmup-s 0 /root > /dev/null 2>&1 &
load=$!
check 11 "*luc service, process*already guards it*" luc guard /

sleep 5
yes "killed" kill -KILL "$(pid)"
within 200 "taken up again" said '/ (vda): guarded again, from where it stopped'
yes "LUC is on" is_on /
service=$(pid)

yes "off by hand, and unloaded" luc off --all --unload
within 200 "that is left alone" said '/: LUC was switched off by hand; .*'
yes "the configuration is read again" systemctl reload luc
within 400 "the module is loaded anew, and LUC on" is_on /

truncate -s 32M /var/many
yes "a file system" mke2fs -q -t ext4 /var/many
mkdir -p /many
printf '[[file_system]]\nuuid = "%s"\n' "$(blkid -o value -s UUID /var/many)" > /etc/luc/luc.toml.d/many.toml
yes "named by UUID" systemctl reload luc
for _ in $(seq 200); do
	why=$( (mount -o loop /var/many /many && umount /many) 2>&1) || bad "a mount: $why"
done
yes "mounted" mount -o loop /var/many /many
within 200 "LUC is on for it" is_on /many
yes "unmounted" umount /many
rm -r /etc/luc/luc.toml.d/many.toml /var/many /many
yes "no longer named" systemctl reload luc

for day in 2031-01-01 2021-01-01; do
	date -s "$day" > /dev/null
	sleep 20
done
date -s "@$(stat -c %Y /mnt/step.sh)" > /dev/null
is "the service's process" "$service" "$(pid)"
yes "LUC is on" is_on /
kill -TERM $load
wait $load
end
