# With Secure Boot and dkms's key not enrolled, LUC stays off. The next boot gets the key.
. /mnt/lib.sh
. /mnt/server.sh

secure_boot
untrusted
check 0 "*is not enrolled" mokutil --test-key /var/lib/dkms/mok.pub
mokutil --generate-hash="$(cat /mnt/password)" > /tmp/hash
yes "imported" mokutil --import /var/lib/dkms/mok.pub --hash-file /tmp/hash
end
