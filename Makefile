# SPDX-License-Identifier: GPL-2.0-only
#
# Start here. Two commands are all a newcomer needs:
#
#   make demo    a stock Debian kernel, in a VM on virtual time, without and with LUC
#   make test    unit, property, end-to-end and kernel tests, on one kernel; with LONG=1 also
#                those that take minutes each
#
# and more for those who work on it:
#
#   make test-all  everything on every kernel, those of `make debug` included
#   make check   the fast part of the tests: no root, no VM, no network except for crates;
#                `make lint` runs the format check and clippy alone
#   make bench   the full table of figures (hours; `luc-lab campaign run bench` takes parts of it)
#   make fuzz    ASan, UBSan and libFuzzer on the C of control/ and lab/disk/, FUZZ_SECONDS
#                (60) each; needs clang and says so
#   make debug   a kernel that checks itself: builds it once and runs LUC on it
#   make reproduction  the documents' sweep, from where docs/ keeps it on, and its page
#   make torture power cuts by the thousand, with LUC and without (about an hour), and
#                the two above
#   make install install-dkms   on a real server; see README.md; install-lab for luc-lab
#   make deb     the packages luc, luc-dkms and luc-lab, in out/; make rpm: luc alone
#   make repo    those packages as a signed apt repository, in out/repo, for many servers

CARGO      ?= cargo
PREFIX     ?= /usr/local
TARGET     := x86_64-unknown-linux-gnu
# Debian's libraries that are linked into both programs.
STATIC_LIBRARIES := libc6-dev libelf-dev zlib1g-dev
# A line for every test that was skipped.
export LUC_SKIPS := $(CURDIR)/target/skips
# A line for every test in a virtual machine: how long it took.
export LUC_TIMES := $(CURDIR)/target/times
LUC        := target/$(TARGET)/release/luc
LAB        := target/$(TARGET)/release/luc-lab
# 6.12-races, for data races, can be added.
DEBUG_KERNELS := 6.12-debug
VERSION    := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
TELL_SKIPS := if [ -s $(LUC_SKIPS) ]; then cat $(LUC_SKIPS); fi; \
	echo "tests skipped: $$(cat $(LUC_SKIPS) 2>/dev/null | wc -l)"
TELL_SLOWEST := if [ -s $(LUC_TIMES) ]; then echo "slowest:"; sort -rn $(LUC_TIMES) | head -n 10; fi
# The programs that virtual machines run: those that are installed or, where somebody waits for the
# result, those that `make check` has compiled.
TESTED     = $(if $(LONG)$(EVERY),$(LUC),target/$(TARGET)/debug/luc)
# --workspace: with the features that `make check` compiled.
SYSTEST    = LUC_BIN=$(CURDIR)/$(TESTED) $(CARGO) test --workspace --locked --features luc-systest/lab \
	--test system --
# Any text: tests that take minutes each, too.
export LUC_LONG := $(LONG)
# More than processors: the slowest tests wait for time to pass.
export RUST_TEST_THREADS ?= 4
# --include-ignored: all tests, on every kernel.
EVERY      ?=
TORTURE_DEBUG := $(LAB) torture --kernels 6.12-debug --only "ordered luc" --cuts 40
REPRODUCTION := out/reproduction
KEPT_CELLS := docs/reproduction-cells.tar.xz
DKMS_DIR   := $(DESTDIR)/usr/src/luc-$(VERSION)
ZSH_DIR    ?= $(PREFIX)/share/zsh/site-functions

all: programs

deps:
	@scripts/deps.sh

# Cargo knows what is out of date; make does not.
programs:
	@$(CARGO) build --release --locked --bin luc --bin luc-lab

# Cargo draws its progress only on a terminal.
demo:
	@echo "step 1 of 3: packages that are missing (about 1 minute, if any)" >&2
	@scripts/deps.sh
	@echo "step 2 of 3: compiling (about 2 minutes on two cores the first time)" >&2
	@$(CARGO) build --profile demo --locked $$(test -t 2 || echo --quiet) --bin luc --bin luc-lab
	@echo "step 3 of 3: measuring (about 3 minutes on two cores)" >&2
	@target/$(TARGET)/demo/luc-lab demo --out out/demo

bench: deps
	@$(MAKE) --no-print-directory programs
	@$(LAB) campaign run bench --out out/bench

# The cells kept in docs/ count, whichever version measured them. Missing ones are measured. All are
# kept and reported.
reproduction: deps
	@$(MAKE) --no-print-directory programs
	@mkdir -p $(REPRODUCTION) && tar -xJf $(KEPT_CELLS) -C $(REPRODUCTION)
	@$(LAB) reproduce -o $(REPRODUCTION) --any-version --markdown docs/reproduction.md
	@tar -C $(REPRODUCTION) --sort=name --owner=0 --group=0 --mtime=@0 -cf - cells | xz -9 > $(KEPT_CELLS)

# Installs all that the three parts need.
torture: deps
	@scripts/deps.sh --fuzz
	@$(MAKE) --no-print-directory programs
	@$(LAB) torture
	@$(MAKE) --no-print-directory fuzz
	@$(MAKE) --no-print-directory debug

fuzz:
	@scripts/fuzz.sh

debug: TESTED = $(LUC)
debug: debug-kernels
	CI=true $(SYSTEST) --include-ignored "[debug]"
	@$(TORTURE_DEBUG)

debug-kernels: deps
	@scripts/deps.sh --kernel
	@$(MAKE) --no-print-directory programs
	@for kernel in $(DEBUG_KERNELS); do $(LAB) debug-kernel $$kernel || exit; done

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --all-features --locked -- -D warnings

unit:
	@mkdir -p target && rm -f $(LUC_SKIPS)
	$(CARGO) test --workspace --locked

check: lint unit
	@$(TELL_SKIPS)

test: deps unit
	@scripts/deps.sh --slurm
	@$(if $(filter $(LUC),$(TESTED)),$(MAKE) --no-print-directory programs)
	@rm -f $(LUC_TIMES)
	$(SYSTEST) --test-threads 2 $(EVERY)
	@$(TELL_SLOWEST)
	@$(TELL_SKIPS)

test-all: debug-kernels repo
	@$(MAKE) --no-print-directory test EVERY=--include-ignored PROPTEST_RNG_SEED=$$(date +%s)
	@$(TORTURE_DEBUG)

module:
	$(MAKE) -C kmod

# Run this as root after `make` as yourself: root need not have a compiler.
install:
	$(call INSTALL,$(LUC),luc)
	$(LUC) man --section 5 --out $(DESTDIR)$(PREFIX)/share/man/man5

install-lab:
	$(call INSTALL,$(LAB),luc-lab)

# Installs a program, its man pages and its completions.
define INSTALL
@test -x $(1) || { echo "install: $(1) is not built; run make first" >&2; exit 1; }
install -D -m 0755 $(1) $(DESTDIR)$(PREFIX)/bin/$(2)
$(1) man --out $(DESTDIR)$(PREFIX)/share/man/man1
install -d $(DESTDIR)$(PREFIX)/share/bash-completion/completions
$(1) completions bash > $(DESTDIR)$(PREFIX)/share/bash-completion/completions/$(2)
install -d $(DESTDIR)$(ZSH_DIR)
$(1) completions zsh > $(DESTDIR)$(ZSH_DIR)/_$(2)
install -d $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d
$(1) completions fish > $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/$(2).fish
endef

# Keeps what an administrator wrote in luc.toml.
install-config:
	install -d $(DESTDIR)/etc/luc/luc.toml.d
	test -e $(DESTDIR)/etc/luc/luc.toml || $(LUC) service --template > $(DESTDIR)/etc/luc/luc.toml

# Installs the licence texts that every copy of PROGRAM must come with.
PROGRAM ?= luc
install-notices:
	install -d $(DESTDIR)$(PREFIX)/share/doc/$(PROGRAM)
	scripts/notices.sh $(PROGRAM) $(TARGET) $(STATIC_LIBRARIES) \
		> $(DESTDIR)$(PREFIX)/share/doc/$(PROGRAM)/notices

# The units run $(PREFIX)/bin/luc.
install-service: install install-config
	install -d $(DESTDIR)/etc/systemd/system
	for unit in luc luc-exporter; do \
		sed 's,/usr/bin/luc,$(PREFIX)/bin/luc,' packaging/$$unit.service \
			> $(DESTDIR)/etc/systemd/system/$$unit.service || exit; \
	done

install-dkms: dkms-sources
	dkms install luc/$(VERSION)

# Leaves out the files that `make module` has built there.
dkms-sources:
	install -d $(DKMS_DIR)
	tar -cf - --exclude-from=.gitignore --owner=0 --group=0 --mode=u=rwX,go=rX kmod control abi \
		| tar -xf - -C $(DKMS_DIR)
	mv $(DKMS_DIR)/kmod/dkms.conf $(DKMS_DIR)/dkms.conf

# debian/ is where packaging tools look for it.
DEBS = out/luc_*.deb out/luc-dkms_*.deb out/luc-lab_*.deb
deb:
	@scripts/deps.sh --deb
	@$(MAKE) --no-print-directory programs
	@rm -f $(DEBS)
	@mkdir -p out
	@LUC_DEBS=out debian/rules clean binary
	@lintian --fail-on error,warning $(DEBS)
	@ls -l $(DEBS)

repo: deb
	@scripts/deps.sh --repo
	@scripts/repo.sh out/repo $(DEBS)

rpm:
	@command -v cargo-generate-rpm > /dev/null \
		|| { echo "rpm: cargo-generate-rpm not found: cargo install cargo-generate-rpm" >&2; exit 1; }
	@$(MAKE) --no-print-directory programs
	@rm -rf out/rpm out/luc-*.rpm
	@$(MAKE) --no-print-directory install install-config install-notices DESTDIR=out/rpm PREFIX=/usr
	@strip out/rpm/usr/bin/luc
	@$(CARGO) generate-rpm -p crates/luc --target $(TARGET) --output out
	@ls -l out/luc-*.rpm

clean:
	$(CARGO) clean
	$(MAKE) -C kmod clean || true
	rm -rf out

.PHONY: all programs deps demo bench reproduction fuzz debug debug-kernels torture lint unit check test test-all repo \
	module install install-lab install-config install-notices install-service install-dkms \
	dkms-sources deb rpm clean
