# A load that LUC changes nothing for, until LUC is certified to lose nothing. A slower disk would
# leave less to compute, but windows of so few calls that a hundred pairs would decide nothing.
. /t/lib.sh
. /t/guarding_lib.sh

load 1 /mnt/0
yes "a trial" sh -c "luc try /mnt/0 --minutes 40 --json > $LUC_OUT/lone.json"
no_load
bench /mnt/0 1
finish
