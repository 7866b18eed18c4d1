# `luc guard` on a load that LUC does nothing for: a lone task on a disk of 200 ms a request. It is
# certified, as it loses nothing. A pair takes 24 s and two minutes pass between pairs.
. /t/lib.sh
. /t/guarding_lib.sh

load 1 /mnt/0
yes "LUC is on" luc on /mnt/0
guard
waits 40000 "certified" "grep -q 'certified: at least 0.99 of stock' /tmp/guard.said"
is "stance" '"stance": "certified"' "$(stance)"
luc status --json > "$LUC_OUT/certified.json"
kill -TERM $guard
wait $guard
no_load
yes "off" luc off --all
bench /mnt/0 1
finish
