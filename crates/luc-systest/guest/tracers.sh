# Tracers of returns, a kretprobe and function_graph, at functions on the path of an fsync. A
# function then returns to the tracer, whatever called it; LUC must not take an urgent wait for one
# that was counted.
. /t/lib.sh

ON="on: /mnt/0 (nullb0, ext4): policy luc, steering, set point automatic"
TRACING=/sys/kernel/tracing

kretprobe_comes() { # function
	echo "r:returns/probe $1" > $TRACING/kprobe_events || bad "a kretprobe at $1"
	echo 1 > $TRACING/events/returns/probe/enable
}

kretprobe_hits() {
	awk '$1 == "probe" { print $2 }' $TRACING/kprobe_profile
}

kretprobe_goes() {
	echo 0 > $TRACING/events/returns/probe/enable
	echo > $TRACING/kprobe_events
}

graph_comes() { # function
	echo "$1" > $TRACING/set_ftrace_filter || bad "function_graph of $1"
	echo > $TRACING/trace
	echo function_graph > $TRACING/current_tracer || bad "function_graph"
}

graph_hits() {
	grep -c '[0-9] us' $TRACING/trace
}

graph_goes() {
	echo nop > $TRACING/current_tracer
	echo > $TRACING/set_ftrace_filter
}

# A syncfs waits for its commit and cannot be put off.
ten_urgent_waits() { # when
	before=$(counter nullb0 urgent_events)
	for i in 1 2 3 4 5 6 7 8 9 10; do
		echo $i > /mnt/0/urgent
		sync -f /mnt/0
	done
	is "urgent waits of ten syncfs, $1" 10 $(($(counter nullb0 urgent_events) - before))
}

# The first wait that LUC sees is one that the tracer returns from.
traced() { # kretprobe or graph, function
	"$1_comes" "$2"
	check 0 "$ON" luc on /mnt/0
	bench /mnt/0 8
	ten_urgent_waits "$1 at $2"
	hits=$("$1_hits")
	yes "$1 at $2 saw ${hits:-0} calls" [ "${hits:-0}" -gt 0 ]
	"$1_goes"
	bench /mnt/0 8
	ten_urgent_waits "without $1 at $2 again"
	check 0 "*module luc removed" luc off --all --unload
}

for tracer in kretprobe graph; do
	for function in jbd2_log_wait_commit jbd2_complete_transaction; do
		traced $tracer $function
	done
done
finish
