# SPDX-License-Identifier: GPL-2.0-only
#
# Sourced on the host: what brings bpftool and all that it is linked with into a
# guest of the lab, as options of `luc lab run`. BPFTOOL names another one.

bpftool_files() {
	program=${BPFTOOL:-$(PATH=$PATH:/usr/sbin command -v bpftool)}
	printf -- ' --file %s:/usr/sbin/bpftool' "$program"
	ldd "$program" | grep -o '/[^ ]*' | while read -r library; do
		printf -- ' --file %s:%s' "$library" "$library"
	done
}
