#!/usr/bin/env bash
# Builds the tools that this repository uses from their pinned Go modules (hack/tools/*) into bin/.
#
# They are built, and not downloaded, so that a Go module proxy is all that tests, demo and image need. Where downloads are possible, the
# ordinary ways are: 'setup-envtest' or 'kind' for etcd, the API server and kubectl; the releases of OpenTofu, KWOK, Pulumi and golangci-lint;
# 'tofu providers mirror' for the providers of the mirror, and the real providers in place of hack/tools/schema-provider; 'pulumi plugin
# install' for Pulumi's plugins. Tools that are installed already can be used through the variables below.
#
#   hack/tools.sh              every tool that the tests, the demo and the benchmarks need
#   hack/tools.sh TOOL ...     only these (hack/tools.sh --list names them)
#
# A tool is built once: its stamp in bin/.stamps holds a hash of the module's files, the flags and the Go version.
# An already installed tool is used instead where its variable says so: KUBEBUILDER_ASSETS (a folder with etcd,
# kube-apiserver and kubectl) and TOFU (a file).
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
bin=${BIN_DIR:-$root/bin}
stamps=$bin/.stamps
os=$(go env GOOS)
arch=$(go env GOARCH)
go_version=$(go env GOVERSION)
kubectl_provider=gavinbunney/kubectl/1.19.0/${os}_${arch}
vsphere_provider=hashicorp/vsphere/1.26.0/${os}_${arch}
schemas=schemas/registry.opentofu.org/hashicorp
pulumi_bridge=pulumi-plugins/resource-terraform-provider-v3.128.0
libvirt_provider=dmacvicar/libvirt/0.7.6/${os}_${arch}
openstack_provider=terraform-provider-openstack/openstack/1.54.1/${os}_${arch}

# tool | module folder | package | file under bin/ | ldflags
catalogue() {
  cat <<TOOLS
etcd|etcd|go.etcd.io/etcd/server/v3|etcd|
kube-apiserver|kubernetes|k8s.io/kubernetes/cmd/kube-apiserver|kube-apiserver|-X k8s.io/component-base/version.gitVersion=v1.36.3
kube-controller-manager|kubernetes|k8s.io/kubernetes/cmd/kube-controller-manager|kube-controller-manager|-X k8s.io/component-base/version.gitVersion=v1.36.3
kube-scheduler|kubernetes|k8s.io/kubernetes/cmd/kube-scheduler|kube-scheduler|-X k8s.io/component-base/version.gitVersion=v1.36.3
kubectl|kubernetes|k8s.io/kubernetes/cmd/kubectl|kubectl|-X k8s.io/component-base/version.gitVersion=v1.36.3
kwok|kwok|sigs.k8s.io/kwok/cmd/kwok|kwok|
tofu|opentofu|github.com/opentofu/opentofu/cmd/tofu|tofu|-X github.com/opentofu/opentofu/version.dev=no
provider-kubectl|provider-kubectl|.|mirror/registry.opentofu.org/$kubectl_provider/terraform-provider-kubectl_v1.19.0|
provider-vsphere|provider-vsphere|.|mirror/registry.opentofu.org/$vsphere_provider/terraform-provider-vsphere_v1.26.0|
provider-libvirt|provider-libvirt|.|mirror/registry.opentofu.org/$libvirt_provider/terraform-provider-libvirt_v0.7.6|
provider-openstack|provider-openstack|.|mirror/registry.opentofu.org/$openstack_provider/terraform-provider-openstack_v1.54.1|
schema-aws|schema-provider|.|$schemas/aws/6.25.0/${os}_${arch}/terraform-provider-aws_v6.25.0|
schema-azurerm|schema-provider|.|$schemas/azurerm/5.2.0/${os}_${arch}/terraform-provider-azurerm_v5.2.0|
schema-google|schema-provider|.|$schemas/google/7.45.0/${os}_${arch}/terraform-provider-google_v7.45.0|
vcsim|vcsim|.|vcsim|
pulumi|pulumi|github.com/pulumi/pulumi/pkg/v3/cmd/pulumi|pulumi|-X github.com/pulumi/pulumi/sdk/v3/go/common/version.Version=v3.255.0
pulumi-language-yaml|pulumi-language-yaml|github.com/pulumi/pulumi-yaml/cmd/pulumi-language-yaml|pulumi-language-yaml|-X github.com/pulumi/pulumi-yaml/pkg/version.Version=v1.38.1
pulumi-language-go|pulumi-language-go|.|pulumi-language-go|
pulumi-terraform-provider|pulumi-terraform-provider|github.com/pulumi/pulumi-terraform-bridge/v3/dynamic|$pulumi_bridge/pulumi-resource-terraform-provider|-X github.com/pulumi/pulumi-terraform-bridge/v3/dynamic/version.version=v3.128.0
promtool|promtool|github.com/prometheus/prometheus/cmd/promtool|promtool|
promql-selectors|promtool|.|promql-selectors|
golangci-lint|golangci-lint|github.com/golangci/golangci-lint/v2/cmd/golangci-lint|golangci-lint|
TOOLS
}

default_tools=(etcd kube-apiserver kube-controller-manager kube-scheduler kubectl kwok tofu provider-kubectl provider-vsphere provider-libvirt
  provider-openstack schema-aws schema-azurerm schema-google vcsim pulumi pulumi-language-yaml pulumi-language-go
  pulumi-terraform-provider promtool promql-selectors)

# tags_of TOOL prints the build tags of a tool: promtool goes without the clouds that Prometheus discovers targets in.
tags_of() {
  case $1 in
    promtool) printf 'remove_all_sd' ;;
  esac
}

die() {
  printf 'tools: %s\n' "$*" >&2
  exit 1
}

# fingerprint MODULE-FOLDER FLAGS
fingerprint() {
  {
    printf '%s %s %s/%s\n' "$2" "$go_version" "$os" "$arch"
    cat "$root/hack/tools/$1/go.mod" "$root/hack/tools/$1/go.sum"
    find "$root/hack/tools/$1" -name '*.go' -o -name '*.json' | LC_ALL=C sort | xargs -r cat
  } | sha256sum | cut -d' ' -f1
}

# borrowed TOOL prints the path of a tool that the caller brings along, if any.
borrowed() {
  case $1 in
    etcd | kube-apiserver | kubectl) [[ -n ${KUBEBUILDER_ASSETS:-} && $KUBEBUILDER_ASSETS != "$bin" && -x $KUBEBUILDER_ASSETS/$1 ]] && printf '%s' "$KUBEBUILDER_ASSETS/$1" ;;
    tofu) [[ -n ${TOFU:-} && -x $TOFU ]] && printf '%s' "$TOFU" ;;
    *) return 1 ;;
  esac
}

# link_provider PROVIDER names a provider of the mirror for HashiCorp's terraform, which looks it up under its own default registry
# name, and follows links at this level only.
link_provider() {
  local version=${1%/*}
  rm -rf "$bin/mirror/registry.terraform.io/${version%/*}"
  mkdir -p "$bin/mirror/registry.terraform.io/$version"
  ln -sfn "../../../../registry.opentofu.org/$1" "$bin/mirror/registry.terraform.io/$1"
}

# link_mirror names every provider of the mirror in bin/schemas too, so that this one has all that modules are checked with. What it has
# besides can make nothing, and so is never in the mirror itself, which runs and the image take their providers from.
link_mirror() {
  local package
  for package in "$bin"/mirror/registry.opentofu.org/*/*/*/*; do
    package=${package#"$bin/mirror/"}
    mkdir -p "$bin/schemas/${package%/*}"
    ln -sfn "../../../../../mirror/$package" "$bin/schemas/$package"
  done
}

# extras TOOL installs what belongs beside a binary: data of its own module, or a second name for it.
extras() {
  case $1 in
    kwok)
      local module
      module=$(cd "$root/hack/tools/kwok" && go list -m -f '{{.Dir}}' sigs.k8s.io/kwok)
      mkdir -p "$bin/kwok-stages"
      local stage
      for stage in node/fast/node-initialize node/heartbeat-with-lease/node-heartbeat-with-lease pod/fast/pod-ready pod/fast/pod-delete; do
        install -m 0644 "$module/kustomize/stage/$stage.yaml" "$bin/kwok-stages/$(basename "$stage").yaml"
      done
      ;;
    provider-kubectl) link_provider "$kubectl_provider" ;;
    provider-vsphere) link_provider "$vsphere_provider" ;;
    provider-libvirt) link_provider "$libvirt_provider" ;;
    provider-openstack) link_provider "$openstack_provider" ;;
  esac
}

# build POSITION TOTAL TOOL
build() {
  local entry tool module package file ldflags wanted own started log
  entry=$(catalogue | grep "^$3|") || die "no tool is called '$3'; --list names them"
  IFS='|' read -r tool module package file ldflags <<<"$entry"
  if own=$(borrowed "$tool"); then
    ln -sfn "$own" "$bin/$file"
    rm -f "$stamps/$tool"
    printf '[%d/%d] %-24s using %s\n' "$1" "$2" "$tool" "$own"
    return
  fi
  wanted=$(fingerprint "$module" "$package $ldflags$(tags_of "$tool")")
  if [[ -x $bin/$file && $(cat "$stamps/$tool" 2>/dev/null) == "$wanted" ]]; then
    printf '[%d/%d] %-24s up to date\n' "$1" "$2" "$tool"
    return
  fi
  printf '[%d/%d] %-24s building %s ...\n' "$1" "$2" "$tool" "$package"
  started=$SECONDS
  log=$stamps/$tool.log
  mkdir -p "$(dirname "$bin/$file")"
  rm -f "$bin/$file"
  if ! (cd "$root/hack/tools/$module" &&
    CGO_ENABLED=0 GOFLAGS=-mod=readonly go build -trimpath -buildvcs=false -tags "$(tags_of "$tool")" -ldflags "-s -w $ldflags" -o "$bin/$file" "$package") >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    die "building $tool failed (module hack/tools/$module, full output in $log); fix the cause and run 'make tools' again"
  fi
  extras "$tool"
  printf '%s\n' "$wanted" >"$stamps/$tool"
  printf '[%d/%d] %-24s built in %d s\n' "$1" "$2" "$tool" "$((SECONDS - started))"
}

main() {
  if [[ ${1:-} == --list ]]; then
    catalogue | cut -d'|' -f1
    return
  fi
  command -v go >/dev/null || die "Go is not on PATH; install the version that go.mod names"
  local tools=("$@") position=0 tool
  [[ $# -gt 0 ]] || tools=("${default_tools[@]}")
  mkdir -p "$stamps"
  for tool in "${tools[@]}"; do
    position=$((position + 1))
    build "$position" "${#tools[@]}" "$tool"
  done
  [[ ! -d $bin/schemas || ! -d $bin/mirror ]] || link_mirror
}

main "$@"
