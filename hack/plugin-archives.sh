#!/usr/bin/env bash
# plugin-archives.sh VERSION OS/ARCH...: builds the kubectl plugin for each platform into an archive under dist/, with the program for shell
# completion and, but for Windows, the recorded schemas of the built-in modules' providers beside it. With an archive for each platform of install/krew/machine.yaml, it writes that file with the
# version and the archives' checksums as dist/machine.yaml.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=$1
shift
out=${DIST:-dist}
mkdir -p "$out"
rm -f "$out"/kubectl-machine-*.tar.gz "$out/machine.yaml" # of another version
manifest=$(sed "s|VERSION|$version|g" install/krew/machine.yaml | sed '/^#/d')
for platform in "$@"; do
  os=${platform%/*} arch=${platform#*/}
  archive=kubectl-machine-$os-$arch.tar.gz
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  export CGO_ENABLED=0 GOOS=$os GOARCH=$arch
  files=(kubectl-machine kubectl-machine-schemas kubectl_complete-machine LICENSE)
  if [[ $os == windows ]]; then
    files=(kubectl-machine.exe LICENSE) # kubectl finds no script there
  else
    go build -C hack/tools/schema-provider -trimpath -buildvcs=false -ldflags "-s -w" -o "$folder/kubectl-machine-schemas" .
  fi
  go build -trimpath -ldflags "-s -w -X main.version=$version" -o "$folder/${files[0]}" ./cmd/kubectl-machine
  cp LICENSE install/krew/kubectl_complete-machine "$folder"
  # The same input gives the same archive, so that anybody can check the checksum.
  tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -C "$folder" -c "${files[@]}" | gzip -n >"$out/$archive"
  rm -rf "$folder"
  sum=$(sha256sum "$out/$archive")
  word=$(tr '[:lower:]' '[:upper:]' <<<"SHA256_${os}_$arch")
  manifest=${manifest//$word/${sum%% *}}
  echo "$out/$archive"
done
if [[ $manifest == *SHA256_* ]]; then
  echo "plugin-archives: no $out/machine.yaml, since some of its platforms have no archive" >&2
  exit
fi
printf '%s\n' "$manifest" >"$out/machine.yaml"
echo "$out/machine.yaml"
