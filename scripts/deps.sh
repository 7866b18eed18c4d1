#!/usr/bin/env bash
# Installs what `make demo` and `make test` need on Debian or Ubuntu; with
# --kernel also what `luc-lab debug-kernel` needs, with --fuzz only what
# `make fuzz` needs, with --slurm only what the tests of campaigns on a cluster need, with
# --deb only what `make deb` needs besides a compiler, with --repo only what `make repo` needs.
#
# Only what is missing is installed, from the machine's own package sources; out/deps.log has
# the output of apt.
# Where they offer no QEMU that counts instructions correctly, QEMU alone comes from the
# backports of the same release, from the same mirror.
set -euo pipefail

readonly QEMU_MIN=8.2
RUST_MIN=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$(dirname "$0")/../Cargo.toml")
readonly RUST_MIN
LOG=$(dirname "$0")/../out/deps.log
readonly LOG

say() { printf 'deps: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }
at_least() { [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]; }

as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	elif have sudo; then
		sudo "$@"
	else
		die "cannot install packages: neither root nor sudo; as root, run: $*"
	fi
}

updated=no
apt_get() {
	mkdir -p "$(dirname "$LOG")"
	as_root env DEBIAN_FRONTEND=noninteractive apt-get -q "$@" >>"$LOG" 2>&1
}

apt_install() {
	have apt-get || die "apt-get not found: install by hand: $*"
	say "installing: $*"
	if [ "$updated" = no ]; then
		apt_get update || die "apt-get update failed; see $(realpath "$LOG")"
		updated=yes
	fi
	apt_get install -y --no-install-recommends "$@" ||
		die "apt-get cannot install these packages; see $(realpath "$LOG")"
}

qemu_version() { qemu-system-x86_64 --version 2>/dev/null | sed -n '1s/.*version \([0-9.]*\).*/\1/p'; }
rust_version() { "$1" --version 2>/dev/null | awk '{print $2}'; }
candidate() { apt-cache policy "$1" 2>/dev/null | awk '/Candidate:/ {print $2}'; }

# The line of apt's sources that serves this release, with another suite.
backports_line() {
	local codename=$1
	apt-get indextargets --format '$(REPO_URI) $(SIGNED_BY) $(CODENAME) $(COMPONENT)' 'Created-By: Packages' |
		awk -v code="$codename" '$(NF-1) == code && $NF == "main" {
			# A source without the option shows its name instead of a path.
			by = $2 ~ /^\// ? " [signed-by=" $2 "]" : ""
			print "deb" by " " $1 " " code "-backports main"; exit }'
}

install_qemu() {
	local offered
	offered=$(candidate qemu-system-x86)
	# The version between the epoch and the Debian revision.
	offered=${offered#*:}
	offered=${offered%%[+-]*}
	if at_least "${offered:-0}" "$QEMU_MIN"; then
		apt_install qemu-system-x86
		return
	fi
	local codename line list
	codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
	line=$(backports_line "$codename")
	[ -n "$line" ] || die "QEMU ${offered:-of this release} miscounts instructions; install $QEMU_MIN or newer and set LUC_QEMU to it"
	list=$(mktemp --suffix=.list)
	printf '%s\n' "$line" >"$list"
	# A separate list for one command: the machine's own sources stay as they are.
	as_root install -m 0644 "$list" /etc/apt/sources.list.d/luc-backports.list
	rm -f "$list"
	updated=no
	(apt_install -t "$codename-backports" qemu-system-x86) ||
		{ as_root rm -f /etc/apt/sources.list.d/luc-backports.list; die "no newer QEMU in $codename-backports"; }
	as_root rm -f /etc/apt/sources.list.d/luc-backports.list
	apt_get update
}

# Debian keeps a current compiler for web browsers beside its release's own.
install_rust() {
	local package
	for package in cargo cargo-web; do
		have apt-cache && at_least "$(candidate "$package")" "$RUST_MIN" || continue
		if [ "$package" = cargo ]; then
			apt_install cargo rustc
		else
			apt_install cargo-web rustc-web
		fi
		return
	done
	die "no Rust $RUST_MIN or newer in the package sources; install it and put cargo on PATH"
}

# A clang with its fuzzer and sanitizers, and the tools that read its coverage.
if [ "${1:-}" = --fuzz ]; then
	if ! "$(dirname "$0")/fuzz.sh" --probe 2>/dev/null; then apt_install clang libclang-rt-dev llvm; fi
	exit
fi

# The Slurm that the tests start by themselves. The services of its packages are neither
# started nor enabled here.
if [ "${1:-}" = --slurm ]; then
	# Daemons are in folders that a user's PATH lacks.
	PATH=$PATH:/usr/sbin:/sbin
	if have munged && have slurmctld && have slurmd && have sbatch; then exit; fi
	policy=/usr/sbin/policy-rc.d
	own=no
	if [ ! -e "$policy" ]; then
		own=yes
		printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" >/dev/null
		as_root chmod 0755 "$policy"
	fi
	status=0
	(apt_install munge slurmctld slurmd slurm-client) || status=$?
	if [ "$own" = yes ]; then as_root rm -f "$policy"; fi
	if [ -d /run/systemd/system ]; then as_root systemctl disable munge slurmctld slurmd >>"$LOG" 2>&1 || true; fi
	exit "$status"
fi

missing=()
need() { have "$1" || missing+=("$2"); }

if [ "${1:-}" = --deb ]; then
	need dh debhelper
	need dh_dkms dh-dkms
	need lintian lintian
	need jq jq
	if [ "${#missing[@]}" -gt 0 ]; then apt_install "${missing[@]}"; fi
	exit
fi

if [ "${1:-}" = --repo ]; then
	need apt-ftparchive apt-utils
	need gpg gpg
	if [ "${#missing[@]}" -gt 0 ]; then apt_install "${missing[@]}"; fi
	exit
fi

need gcc build-essential
need gcc-12 gcc-12
need make make
need xz xz-utils
need zstd zstd
need mke2fs e2fsprogs
need dmsetup dmsetup
need mkfs.xfs xfsprogs
need mkfs.btrfs btrfs-progs
need mkfs.f2fs f2fs-tools
need modinfo kmod
need mmdebstrap mmdebstrap
need bc bc
need ldd libc-bin
need clang clang
need pkg-config pkg-config
need pahole dwarves
[ -e /usr/share/keyrings/debian-archive-keyring.gpg ] || missing+=(debian-archive-keyring)
[ -e /usr/include/libelf.h ] || missing+=(libelf-dev)
if [ "${1:-}" = --kernel ]; then
	need flex flex
	need bison bison
	need pahole dwarves
	need patch patch
fi
if [ "${#missing[@]}" -gt 0 ]; then apt_install "${missing[@]}"; fi

if ! have qemu-system-x86_64 || ! at_least "$(qemu_version)" "$QEMU_MIN"; then install_qemu; fi
if ! have cargo || ! at_least "$(rust_version rustc)" "$RUST_MIN"; then install_rust; fi
