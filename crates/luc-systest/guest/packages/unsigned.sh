# A kernel that does not trust the key that dkms has signed with, as with Secure Boot: `luc on` says
# so in one line.
. /mnt/lib.sh
. /mnt/server.sh

echo "tell $(uname -r), $(cat /proc/cmdline)"
untrusted
end
