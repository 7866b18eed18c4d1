# Another module owns the function that LUC needs most.
. /t/lib.sh

yes "the other one loads" insmod /t/blocker.ko
bench /mnt/0 8
check 11 "luc: jbd2_journal_commit_transaction: owned by a BPF program or a livepatch; stop that first *" \
	luc on /mnt/0
yes "LUC is not left loaded" gone /sys/fs/luc
insmod /lib/luc/luc.ko
check 11 "luc: jbd2_journal_commit_transaction: owned by *" luc on /mnt/0
is "hooks left" "" "$(grep ' attached' /sys/fs/luc/hooks)"
yes "the hook's state is shown" grep -q "^jbd2_journal_commit_transaction busy$" /sys/fs/luc/hooks
check 13 "*jbd2_journal_commit_transaction*" luc probe
bench /mnt/0 8
yes "the other one leaves" rmmod blocker
check 0 "on: /mnt/0 *" luc on /mnt/0
# And the other way round: who comes second is refused.
insmod /t/blocker.ko 2> /dev/null && bad "two direct calls on one function"
bench /mnt/0 8
check 0 "*module luc removed" luc off --all --unload
bench /mnt/0 8
finish
