# Secure Boot, and the key that dkms has signed with is not enrolled: LUC stays off. The key is handed
# to the next boot.
. /mnt/lib.sh
. /mnt/server.sh

secure_boot
untrusted
check 0 "*is not enrolled" mokutil --test-key /var/lib/dkms/mok.pub
mokutil --generate-hash="$(cat /mnt/password)" > /tmp/hash
yes "imported" mokutil --import /var/lib/dkms/mok.pub --hash-file /tmp/hash
end
