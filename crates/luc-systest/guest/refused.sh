# Requests that the module itself refuses; /mnt/0 is ext4 without a journal.
. /t/lib.sh
dev=$(cat /sys/class/block/nullb0/dev)

# The errno by which the module refuses a write to attach.
refuses() { # words it says, line
	said=$( (echo "$2" > /sys/fs/luc/attach) 2>&1)
	case $said in
	*"$1"*) ok "attach '$2': $1" ;;
	*) bad "attach '$2' says '$said', expected '$1'" ;;
	esac
}

check 6 "luc: /mnt/0: * has no journal; LUC steers ext4 and ext3 journals only" luc on /mnt/0
insmod /lib/luc/luc.ko
refuses "Link has been severed" "$dev"
refuses "No such device" 4000:9
refuses "No such device" "$(grep ' /sys ' /proc/self/mountinfo | cut -d ' ' -f 3)"
for line in "" x 1 1: :1 1:2:3 "-1:0" "1:99999999999" "$dev x" "$dev kp_milli=" \
	"$dev kp_milli=x" "$dev speed=1" "$dev mode=2" "9999:9"; do
	refuses "Invalid argument" "$line"
done
refuses "out of range" "$dev kp_milli=-1"
refuses "out of range" "$dev setpoint_events=1000001"
for file in attach detach; do
	head -c 5000 /dev/zero | tr '\0' 1 > /tmp/long
	cat /tmp/long > /sys/fs/luc/$file 2> /dev/null && bad "$file takes 5000 digits"
done
(echo "$dev" > /sys/fs/luc/detach) 2> /dev/null && bad "detach of what is not attached"
is "mode of attach" 200 "$(stat -c %a /sys/fs/luc/attach)"
is "mode of detach" 200 "$(stat -c %a /sys/fs/luc/detach)"
is "hooks left" "" "$(grep " attached" /sys/fs/luc/hooks)"
check 9 "luc: /mnt/0: LUC is not on for this file system; *" luc off /mnt/0
bench /mnt/0 4
yes "rmmod" rmmod luc
finish
