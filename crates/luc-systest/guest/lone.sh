# A load that LUC does nothing for, until it is certified: it loses nothing. A slower disk would give
# less to compute, and windows of so few calls that the hundred pairs would decide nothing.
. /t/lib.sh
. /t/guarding_lib.sh

load 1 /mnt/0
yes "a trial" sh -c "luc try /mnt/0 --minutes 40 --json > $LUC_OUT/lone.json"
no_load
bench /mnt/0 1
finish
