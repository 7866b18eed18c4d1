#!/usr/bin/env bash
# Fuzzes the freestanding C of control/ and lab/disk/ with libFuzzer under
# ASan and UBSan, and prints which code that executed.
#
#   scripts/fuzz.sh [TARGET...]     control, bets and disk, if none is named
#   scripts/fuzz.sh --probe         is everything here that this needs?
#
# FUZZ_SECONDS   time per target, 60
# CLANG          the compiler; by default the first clang found that has libFuzzer
#
# libFuzzer, not AFL++: it comes with the same compiler as the sanitizers and the
# coverage, runs in one process without touching the machine's core pattern or
# scaling governor, and its harness is a plain function that a test without any
# fuzzer can call, too.
#
# Nothing is installed. Inputs that reached new code are kept in target/fuzz/ for
# the next run; an input that fails is named and kept beside them.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly seconds=${FUZZ_SECONDS:-60}
readonly out=target/fuzz
# The same flags as in crates/luc-cc.
readonly freestanding=(-std=gnu11 -ffreestanding -Wall -Wextra -Wno-unused-parameter -Werror)
readonly hosted=(-std=gnu11 -Wall -Wextra -Werror)

say() { printf 'fuzz: %s\n' "$*"; }
die() { printf 'fuzz: %s\n' "$*" >&2; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

sources_of() {
	case $1 in
	control) echo control/*.c ;;
	bets) echo control/luc_bets.c control/luc_log.c ;;
	disk) echo lab/disk/*.c ;;
	*) die "no target is called '$1'; there are: control, bets, disk" ;;
	esac
}

# Numbers of transactions and tasks wrap by design, in that file alone. All
# other arithmetic saturates: a wrap elsewhere is a bug.
wraps() { [ "$1" = control/luc_returns.c ]; }

links_fuzzer() {
	printf '#include <stddef.h>\nint LLVMFuzzerTestOneInput(const unsigned char *d, size_t n) { return !d && n; }\n' |
		"$1" -x c -fsanitize=fuzzer,address,undefined - -o "$out/probe" 2>/dev/null
}

find_clang() {
	local name names=(clang clang-{25..14})
	if [ -n "${CLANG:-}" ]; then names=("$CLANG"); fi
	for name in "${names[@]}"; do
		if have "$name" && links_fuzzer "$name"; then
			echo "$name"
			return
		fi
	done
	return 1
}

# llvm-cov and llvm-profdata read the files of their own version.
tool() {
	local version=${clang##*-}
	if [ "$version" != "$clang" ] && have "$1-$version"; then echo "$1-$version"; else echo "$1"; fi
}

# build NAME TARGET FLAG...: target/fuzz/NAME, the product freestanding as it
# is in the kernel.
build() {
	local name=$1 target=$2 file object objects=() extra
	shift 2
	mkdir -p "$out/$name.o"
	for file in $(sources_of "$target"); do
		object=$out/$name.o/$(basename "$file" .c).o
		extra=()
		if wraps "$file"; then extra=(-fno-sanitize=unsigned-integer-overflow); fi
		"$clang" -O2 -g "${freestanding[@]}" "$@" "${product[@]}" "${extra[@]}" -c "$file" -o "$object"
		objects+=("$object")
	done
	object=$out/$name.o/harness.o
	"$clang" -O2 -g "${hosted[@]}" "$@" "${harness[@]}" -c "fuzz/$target.c" -o "$object"
	"$clang" "$@" "${product[@]}" -fsanitize=fuzzer "$object" "${objects[@]}" -o "$out/$name"
}

fuzz() {
	local target=$1 log=$out/$1.log corpus=$out/corpus-$1
	local product=(-fsanitize=integer,local-bounds) harness=()
	mkdir -p "$corpus"
	build "$target" "$target" -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
	say "$target: $seconds s"
	if ! "$out/$target" -max_total_time="$seconds" -max_len=512 -timeout=20 -print_final_stats=1 \
		-artifact_prefix="$out/$target-" "$corpus" "fuzz/seeds/$target" 2>"$log"; then
		grep -E 'does not hold|runtime error|ERROR: |SUMMARY|Test unit written' "$log" >&2 || tail -n 20 "$log" >&2
		die "$target: failed, see $log; repeat with $out/$target FILE"
	fi
	awk -v t="$target" '/number_of_executed_units/ { n = $2 } /average_exec_per_sec/ { s = $2 }
		END { printf "fuzz: %s: %d executions, %d per second\n", t, n, s }' "$log"
}

# Measures which code the corpus reaches, without sanitizers, whose checks are branches, too.
coverage() {
	local target=$1 profile=$out/$1.profdata
	local product=(-fprofile-instr-generate -fcoverage-mapping)
	# Code in headers is counted where it is used.
	local harness=("${product[@]}")
	build "$target-cov" "$target" -fsanitize=fuzzer-no-link
	LLVM_PROFILE_FILE=$out/$target.profraw \
		"$out/$target-cov" -runs=0 "$out/corpus-$target" "fuzz/seeds/$target" 2>"$out/$target-cov.log" ||
		die "$target: the corpus fails without sanitizers, see $out/$target-cov.log"
	"$(tool llvm-profdata)" merge -o "$profile" "$out/$target.profraw"
	"$(tool llvm-cov)" export -format=lcov -instr-profile "$profile" "$out/$target-cov" 2>/dev/null >"$out/$target.lcov"
	# One line per file, then the lines and branches never taken.
	awk -F '[:,]' -v root="$PWD/" '
		function percent(a, b) { return b ? sprintf("%5.1f%%", 100 * a / b) : "  none" }
		/^SF:/ { file = substr($0, 4); sub(root, "", file); never = ""; lines = hit = ways = taken = 0 }
		/^DA:/ { lines++; if ($3 > 0) hit++; else never = never " " $2 }
		/^BRDA:/ { ways++; if ($5 != "-" && $5 > 0) taken++; else never = never " " $2 "b" }
		/^end_of_record/ && file ~ /^(control|lab)\// {
			printf "fuzz:   %-28s lines %s of %3d, branches %s of %3d\n", file,
				percent(hit, lines), lines, percent(taken, ways), ways
			if (never) printf "fuzz:     never:%s\n", never
			L += lines; H += hit; W += ways; T += taken
		}
		END { printf "fuzz:   %-28s lines %s of %3d, branches %s of %3d\n", "all", percent(H, L), L, percent(T, W), W }
	' "$out/$target.lcov"
}

mkdir -p "$out"
clang=$(find_clang) ||
	die "no clang with libFuzzer and sanitizers; install clang, libclang-rt-dev and llvm, or run scripts/deps.sh --fuzz"
for needed in llvm-profdata llvm-cov; do
	have "$(tool "$needed")" || die "$(tool "$needed") not found; install llvm, or run scripts/deps.sh --fuzz"
done
if [ "${1:-}" = --probe ]; then exit; fi
if [ $# = 0 ]; then set -- control bets disk; fi
for target in "$@"; do
	sources_of "$target" >/dev/null
done
for target in "$@"; do
	fuzz "$target"
	coverage "$target"
done
