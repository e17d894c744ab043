#!/usr/bin/env bash
# plugin-archives.sh VERSION OS/ARCH...: builds the kubectl plugin for each platform into an archive under dist/, and writes
# dist/machine.yaml: install/krew/machine.yaml with the version and the archives' checksums in it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=$1
shift
out=${DIST:-dist}
mkdir -p "$out"
rm -f "$out"/kubectl-machine-*.tar.gz # of another version
manifest=$(sed "s|VERSION|$version|g" install/krew/machine.yaml | sed '/^#/d')
for platform in "$@"; do
  os=${platform%/*} arch=${platform#*/}
  archive=kubectl-machine-$os-$arch.tar.gz
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  CGO_ENABLED=0 GOOS=$os GOARCH=$arch go build -trimpath -ldflags "-s -w -X main.version=$version" -o "$folder/kubectl-machine" ./cmd/kubectl-machine
  cp LICENSE "$folder"
  # The same input gives the same archive, so that anybody can check the checksum.
  tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -C "$folder" -c kubectl-machine LICENSE | gzip -n >"$out/$archive"
  rm -rf "$folder"
  sum=$(sha256sum "$out/$archive")
  word=$(tr '[:lower:]' '[:upper:]' <<<"SHA256_${os}_$arch")
  manifest=${manifest//$word/${sum%% *}}
  echo "$out/$archive"
done
printf '%s\n' "$manifest" >"$out/machine.yaml"
if grep -q SHA256_ "$out/machine.yaml"; then
  echo "plugin-archives: some platforms of $out/machine.yaml have no archive; name all of them" >&2
  exit 1
fi
echo "$out/machine.yaml"
