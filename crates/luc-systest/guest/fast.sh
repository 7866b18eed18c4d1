# A file system with fast commits: they are counted apart and left alone.
. /t/lib.sh

luc on /mnt/0 > /dev/null
yes "fsyncs by fast commits" \
	luc-lab bench create-fsync --threads 4 --bytes 4096 --seconds 1 --warmup-s 0 --keep /mnt/0
fast=$(counter nullb0 fast_commits)
yes "$fast fast commits counted" [ "$fast" -gt 100 ]
full=$(counter nullb0 commits)
yes "$full full commits are the smaller part" [ "$full" -lt "$((fast / 4))" ]
is "commits that were held" 0 "$(counter nullb0 commits_held)"
# Eight tasks append records and sync each, as message queues do.
yes "appends" luc-lab bench fsync-storm --threads 8 --op append --bytes 4096 --seconds 1 \
	--drain-s 0 --dir /mnt/0
more=$(($(counter nullb0 fast_commits) - fast))
yes "$more fast commits of appends counted" [ "$more" -gt 50 ]
is "commits of appends that were held" 0 "$(counter nullb0 commits_held)"
check 0 "*fast *sync events served by fast commits*" luc status /mnt/0
# The doctor tells their share, and does not trust a verdict on the rest.
luc-lab bench create-fsync --threads 4 --bytes 4096 --seconds 1000 --warmup-s 0 /mnt/0 \
	> /dev/null 2>&1 &
load=$!
timeout 300 luc doctor --seconds 5 /mnt/0 > /tmp/doctor 2>&1
kill -KILL $load
yes "the doctor tells the share of fast commits" \
	grep -q "[0-9] fast commits, .*% of all commits, cannot be traced" /tmp/doctor
yes "its confidence is low" grep -q "confidence: low" /tmp/doctor
wait $load 2> /dev/null
# A full commit on demand is urgent and gets through.
yes "sync of the whole file system" timeout 20 sync -f /mnt/0
check 0 "*module luc removed" luc off --all --unload
bench /mnt/0 4
finish
