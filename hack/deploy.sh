#!/usr/bin/env bash
# Installs the image of dist/image into a cluster: make deploy IMAGE=registry.example/machine-iac-operator:dev pushes it, and
# installs it into the cluster of the current context; make deploy KIND=name loads it into the nodes of that kind cluster.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
image=${1-} cluster=${2-} version=${3-}
kubectl=(kubectl)
command -v kubectl >/dev/null || kubectl=(bin/kubectl)

if [[ -n $cluster ]]; then
  image=${image:-machine-iac-operator:$version}
  go run ./hack/image archive "$image" dist/image.tar
  kind load image-archive dist/image.tar --name "$cluster"
  kubectl+=(--context "kind-$cluster")
elif [[ -n $image ]]; then
  image=$(go run ./hack/image push "$image") # by its digest, so that a tag that is pushed again is rolled out
else
  echo "say where the image goes: make deploy IMAGE=registry.example/machine-iac-operator:dev, or KIND=name" >&2
  exit 1
fi

status=machineapioperators/machine-api
"${kubectl[@]}" get --ignore-not-found -o name -f install/kubernetes/namespace.yaml | grep -q . ||
  "${kubectl[@]}" create -f install/kubernetes/namespace.yaml
"${kubectl[@]}" kustomize install/kubernetes | sed "s|image: machine-iac-operator:latest\$|image: $image|" |
  "${kubectl[@]}" apply -f -
"${kubectl[@]}" wait --for=create --timeout=2m "$status"
"${kubectl[@]}" wait --for=condition=Available --timeout=10m "$status"
