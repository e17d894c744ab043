#!/usr/bin/env bash
# Copies the Machine API's CRDs out of the very version of github.com/openshift/api that the code is built with.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
target=${1:-$root/install/kubernetes/crds}
source=$(cd "$root" && go list -m -f '{{.Dir}}' github.com/openshift/api)/machine/v1beta1/zz_generated.crd-manifests

install -m 0644 "$source/0000_10_machine-api_01_machines-Default.crd.yaml" "$target/machines.yaml"
install -m 0644 "$source/0000_10_machine-api_01_machinesets-Default.crd.yaml" "$target/machinesets.yaml"
install -m 0644 "$source/0000_10_machine-api_01_machinehealthchecks.crd.yaml" "$target/machinehealthchecks.yaml"
