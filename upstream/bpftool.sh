# SPDX-License-Identifier: GPL-2.0-only
#
# Sourced on the host: options of `luc-lab run` that bring bpftool and its libraries
# into a guest. BPFTOOL names another one.

bpftool_files() {
	program=${BPFTOOL:-$(PATH=$PATH:/usr/sbin command -v bpftool)}
	printf -- ' --file %s:/usr/sbin/bpftool' "$program"
	ldd "$program" | grep -o '/[^ ]*' | while read -r library; do
		printf -- ' --file %s:%s' "$library" "$library"
	done
}
