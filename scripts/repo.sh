#!/usr/bin/env bash
# repo.sh FOLDER DEB...: writes a signed apt repository into FOLDER, which any web server can serve.
#
# LUC_REPO_KEY names the gpg key to sign with. Without it a key is made, once, in out/repo-key: keep
# that folder, as servers trust this key from then on. At the end apt itself reads the repository,
# so one that it would refuse is a failure here.
set -euo pipefail

die() { printf 'repo: %s\n' "$*" >&2; exit 1; }

[ "$#" -ge 2 ] || die "usage: repo.sh FOLDER DEB..."
folder=$1
shift
for deb in "$@"; do [ -f "$deb" ] || die "$deb: no such package; run make deb first"; done

if [ -z "${LUC_REPO_KEY:-}" ]; then
	GNUPGHOME=$(realpath -m "$(dirname "$folder")/repo-key")
	export GNUPGHOME LUC_REPO_KEY="LUC packages"
	mkdir -p -m 0700 "$GNUPGHOME"
	gpg --batch --quiet --list-secret-keys "$LUC_REPO_KEY" >/dev/null 2>&1 ||
		gpg --batch --quiet --passphrase '' --quick-generate-key "$LUC_REPO_KEY" ed25519 sign never
fi

# Written beside the old one first, so that a server that reads it meanwhile sees no half-made one.
new=$folder.new
rm -rf "$new"
mkdir -p "$new"
cp -- "$@" "$new"
(
	cd "$new"
	apt-ftparchive packages . >Packages
	gzip -9nk Packages
	apt-ftparchive -o APT::FTPArchive::Release::Origin=LUC -o APT::FTPArchive::Release::Label=LUC \
		-o APT::FTPArchive::Release::Architectures=amd64 release . >../repo-release
	mv ../repo-release Release
	gpg --batch --quiet --yes --local-user "$LUC_REPO_KEY" --clearsign --output InRelease Release
	gpg --batch --quiet --yes --export "$LUC_REPO_KEY" >luc.gpg
	cat >luc.sources <<-END
		# Copy luc.gpg to /etc/apt/keyrings and this file to /etc/apt/sources.list.d, with the address
		# at which servers reach this folder.
		Types: deb
		URIs: ADDRESS
		Suites: ./
		Signed-By: /etc/apt/keyrings/luc.gpg
	END
)

# apt reads it with folders of its own, as it would on a server.
apt=$(mktemp -d)
trap 'rm -rf "$apt"' EXIT
# apt drops root's rights; the user that it runs as must be able to read this.
chmod 0755 "$apt"
mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
cp -r "$new" "$apt/repo"
chmod -R a+rX "$apt/repo"
printf 'deb [signed-by=%s] file:%s ./\n' "$apt/repo/luc.gpg" "$apt/repo" >"$apt/sources.list"
own=(-o Dir::Etc::SourceList="$apt/sources.list" -o Dir::Etc::SourceParts=/dev/null
	-o Dir::State::Lists="$apt/lists" -o Dir::Cache="$apt/cache" -o Dir::State::Status=/dev/null
	-o APT::Sandbox::User=root)
apt-get -q "${own[@]}" --error-on=any update >"$apt/log" 2>&1 ||
	{ cat "$apt/log" >&2; die "apt refuses the repository"; }
for deb in "$@"; do
	package=$(dpkg-deb -f "$deb" Package)
	apt-cache "${own[@]}" show "$package" >/dev/null 2>&1 || die "apt does not find $package in it"
done

rm -rf "$folder"
mv "$new" "$folder"
printf '%s: %s packages, signed by "%s"; %s/luc.sources says how servers use it\n' \
	"$folder" "$#" "$LUC_REPO_KEY" "$folder"
