# A kernel that does not trust the key that dkms has signed with, as with Secure Boot: `luc on` says
# so in one line.
. /mnt/lib.sh
. /mnt/server.sh

echo "tell $(uname -r), $(cat /proc/cmdline)"
echo "tell $(luc on / 2>&1)"
echo "tell $(modprobe luc 2>&1)"
echo "tell $(luc probe | grep 'module loading')"
check 4 "luc: kernel module luc: *is not signed by a key that this kernel trusts; *mok.pub*" luc on /
is "lines of that" 1 "$(luc on / 2>&1 | wc -l)"
check 0 "*luc.ko is signed; loading shows whether by a trusted key*" luc probe
within 100 "the service says that LUC stays off" sh -c 'systemctl status luc | grep "LUC stays off"'
yes "and runs on" systemctl is-active luc
end
