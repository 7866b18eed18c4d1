#!/usr/bin/env bash
# Takes LUC's controller apart: builds it without each of its parts in turn, and lets every
# build fight the arena. Prints a line per part and half of the arena's points.
#
#   scripts/ablation.sh [PART...]   all of them, if none is named; the whole is always first
#   scripts/ablation.sh --check     only: is each part where this script takes it out?
#
# DRAW    points of the arena, 100
#
# A build takes minutes, a half of the arena as long as `luc-lab campaign run arena --half even`
# says. Everything is kept below out/ablation/: a second run continues there.
#
# A restored file is newer than its build, so that cargo notices it.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly draw=${DRAW:-100} out=$PWD/out/ablation
source=$out/source

die() { printf 'ablation: %s\n' "$*" >&2; exit 1; }

# Name, file, the text that is replaced, and its replacement, with tabs between them.
parts() {
	cat <<-'EOF'
	table	control/batching_returns.c	return luc_max(in->expected_events, 0);	return 0;
	probe	control/batching_returns.c	return luc_min(commit >> PROBE_SHIFT, PROBE_MAX_NS);	return 0;
	debt	control/batching_returns.c	|| is_in_debt(s, in) 	
	bound	control/batching_returns.c	luc_s64 limit = commit - (commit >> MARGIN_SHIFT);	luc_s64 limit = 50 * 1000 * 1000;
	idle-journal	control/batching_returns.c	limit -= unused >> UNUSED_SHIFT;	limit -= 0;
	in-time	control/batching_returns.c	back_ns = luc_mul(luc_max(s->gap_ns, 0), expected_of(in));	back_ns = 0;
	lone-stream	control/batching_returns.c	in->same_task || 	
	last-batch	control/batching_returns.c	 || is_last_batch(s, in)	
	forgotten-gap	control/batching_returns.c	s->gap_ns >> GAP_FORGET_SHIFT	0
	trial	control/luc_trial.c	return s->trial_phase != LUC_TRIAL_FREE && s->trial_phase != LUC_TRIAL_STAY_FREE;	return 1;
	contended	control/copyout_contended.c	LUC_COPY_CONTENDED :	LUC_COPY_ALL :
	copy-out	abi/luc_knobs.h	LUC_COPYOUT_NR - 1, LUC_COPYOUT_CONTENDED,	LUC_COPYOUT_NR - 1, LUC_COPYOUT_OFF,
	EOF
}

# take_out FILE OLD NEW: OLD must be in exactly one place, or the sources have changed.
take_out() {
	local text old=$2
	text=$(<"$source/$1")
	local rest=${text#*"$old"}
	[[ $rest != "$text" && $rest != *"$old"* ]] ||
		die "$1: not in exactly one place: $old; mend the table in this script"
	printf '%s\n' "${text/"$old"/"$3"}" > "$source/$1"
}

copy_sources() {
	rm -rf "$source"
	mkdir -p "$source"
	git ls-files -z | xargs -0 cp -P --parents -t "$source"
}

# The arena with only LUC and stock: no other rule has these parts.
campaign() {
	sed -e '/^\[\[table\]\]/,$d' -e 's/^arms = .*/arms = ["stock", "luc"]/' "$source/campaigns/arena.toml"
	cat <<-'EOF'
	[[table]]
	title = "rate"
	block = "simulated"
	rows = []
	columns = [{ heading = "", points = ["count", "min", "p1", "p10", "p50", "mean"], arm = "luc", to = "stock", measure = "rate" }]

	[[table]]
	title = "p99"
	block = "simulated"
	rows = []
	columns = [{ heading = "", points = ["count", "p50", "p95", "max"], arm = "luc", to = "stock", measure = "sync_p99_ms" }]

	[[table]]
	title = "long"
	block = "long"
	rows = []
	columns = [{ heading = "", points = ["count", "min", "p10", "p50", "mean"], arm = "luc", to = "stock", measure = "rate" }]
	EOF
}

# fight PART: both halves of the arena and its long runs, with LUC's figures in each. Only C differs
# between builds, so an incremental one takes seconds. Functions called only by the part are unused.
fight() {
	local half
	(cd "$source" && CARGO_INCREMENTAL=1 CARGO_TARGET_DIR="$out/target" CFLAGS=-Wno-unused-function \
		cargo build --release --locked --quiet --bin luc-lab)
	for half in even odd; do
		measure "$1-$half" --only simulated --draw "$draw" --half "$half"
		printf '%-14s %-5s rate:%s\n%20s p99: %s\n' "$1" "$half" "$(row_of rate "$1-$half")" "" "$(row_of p99 "$1-$half")"
	done
	measure "$1-long" --only long --repeats 2
	printf '%-14s %-5s rate:%s\n' "$1" long "$(row_of long "$1-long")"
}

# measure NAME OPTION...
measure() {
	local dir=$out/$1
	"$out/target/x86_64-unknown-linux-gnu/release/luc-lab" campaign run "$out/arena.toml" "${@:2}" --out "$dir" \
		> "$dir.txt" 2>&1 || [[ -s $dir/report.txt ]] || die "$1: $(tail -n 1 "$dir.txt")"
}

# row_of TITLE NAME: the figures under a table of one row.
row_of() {
	awk -v title="$1" '$0 == title { in_it = 1 } in_it && /^ *[0-9]+ / { print; exit }' "$out/$2/report.txt"
}

# Each part is taken out of a copy; nothing is built.
check() {
	local name file old new parts=0
	source=$(mktemp -d)
	trap 'rm -rf "$source"' EXIT
	cp -r control abi "$source"
	while IFS=$'\t' read -r name file old new; do
		take_out "$file" "$old" "$new"
		cp "$file" "$source/$file"
		parts=$((parts + 1))
	done < <(parts)
	echo "ablation: $parts parts are where they were"
	exit
}

[[ ${1-} != --check ]] || check
for part in "$@"; do
	parts | cut -f1 | grep -qx -e "$part" || die "no part is called '$part'; there are: $(parts | cut -f1 | xargs)"
done
mkdir -p "$out"
wanted=" $* "
echo "without        half   points, min, p1, p10, p50 and mean of LUC's rate to stock's;"
echo "                      points, p50, p95 and max of its 99th percentile of a sync to stock's;"
echo "                      long runs: points, min, p10, p50 and mean of the rate"
copy_sources
campaign > "$out/arena.toml"
fight whole
while IFS=$'\t' read -r name file old new; do
	[[ $# -eq 0 || $wanted == *" $name "* ]] || continue
	take_out "$file" "$old" "$new"
	fight "$name"
	cp "$file" "$source/$file"
done < <(parts)
