# Fsyncs that need no commit, on all processors; the lab counts the cache lines that they move.
. /t/lib.sh

calls() {
	yes "calls: $1" luc-lab bench scaling --threads "$(nproc)" --ops 400 --warmup-s 1 /mnt/0
}

calls stock
yes "on elsewhere" luc on /mnt/1
calls elsewhere
yes "off" luc off --all --unload
yes "on" luc on /mnt/0
calls LUC
yes "off" luc off --all --unload
finish
