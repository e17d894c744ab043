#!/usr/bin/env bash
# Fails when the CRDs in install/ are not those of the version of github.com/openshift/api that the code is built with.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
"$root/hack/update-crds.sh" "$fresh"
for file in "$fresh"/*.yaml; do
  diff -u "$root/install/kubernetes/crds/$(basename "$file")" "$file" || {
    echo "install/kubernetes/crds/$(basename "$file") is not the one of go.mod's github.com/openshift/api; run hack/update-crds.sh" >&2
    exit 1
  }
done
