# With Secure Boot and the key enrolled, the service has LUC on.
. /mnt/lib.sh
. /mnt/server.sh

secure_boot
check 1 "*is already enrolled" mokutil --test-key /var/lib/dkms/mok.pub
within 100 "LUC is on with Secure Boot" is_on /
is "signer" "DKMS module signing key" "$(modinfo -F signer luc)"
# An E would mean that the signature did not count.
is "taint" O "$(cat /sys/module/luc/taint)"
bench /root 2
end
