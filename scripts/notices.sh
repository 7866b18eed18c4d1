#!/usr/bin/env bash
# notices.sh PROGRAM TARGET LIBRARY...: prints the licence texts of all third-party code that is
# linked into a program: crates, and static libraries by the names of their packages. Most of the
# licences ask for that in every copy. Equal texts are printed once.
set -euo pipefail

readonly PROGRAM=$1 TARGET=$2
shift 2

texts=$(mktemp -d)
trap 'rm -r "$texts"' EXIT

# keep NAME FILE...: records that NAME is licensed under these texts.
keep() {
	local name=$1 file sum
	shift
	for file in "$@"; do
		sum=$(sha256sum < "$file" | cut -d' ' -f1)
		cp "$file" "$texts/$sum.text"
		printf '%s\n' "$name" >> "$texts/$sum.names"
	done
}

cargo metadata --locked --format-version 1 --filter-platform "$TARGET" |
	jq -r '.packages[] | select(.source) | "\(.name) \(.version)\t\(.manifest_path)\t\(.license)"' |
	sort > "$texts/all"
cargo tree --locked -p "$PROGRAM" -e normal,no-proc-macro --target "$TARGET" --prefix none -f '{p}' |
	awk '{ print $1, substr($2, 2) }' | sort -u > "$texts/linked"

while IFS=$'\t' read -r name manifest licence; do
	dir=$(dirname "$manifest")
	mapfile -t found < <(find "$dir" -maxdepth 2 -type f -size -64k \
		\( -iname 'licen[sc]e*' -o -iname 'copying*' -o -iname 'notice*' \) ! -name '*.rs' | sort)
	[ ${#found[@]} -gt 0 ] || printf '%s: %s\n' "$name" "$licence" >> "$texts/without"
	keep "$name" "${found[@]}"
done < <(awk -F'\t' 'NR == FNR { linked[$0]; next } $1 in linked' "$texts/linked" "$texts/all")
for library in "$@"; do
	keep "$library $(dpkg-query -W -f '${Version}' "$library")" "/usr/share/doc/$library/copyright"
done

cat <<END
$PROGRAM has parts that were written elsewhere. These are they, with the terms that each comes under.

END
[ ! -s "$texts/without" ] || printf 'Crates that bring no text of their licence:\n%s\n\n' "$(cat "$texts/without")"
wc -l "$texts"/*.names | sed '$d' | sort -k1,1nr -k2 | while read -r _ names; do
	printf '==== %s\n\n' "$(sort -u "$names" | paste -sd, | sed 's/,/, /g')"
	cat "${names%.names}.text"
	printf '\n'
done
