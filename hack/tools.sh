#!/usr/bin/env bash
# Puts the tools that this repository uses into bin/: programs that are installed already where their version fits, and the rest built from
# their pinned Go modules (hack/tools/*).
#
# They are built, and not downloaded, so that a Go module proxy is all that tests, demo and image need. Where downloads are possible, the
# ordinary ways are: 'setup-envtest' or 'kind' for etcd, the API server and kubectl; the releases of OpenTofu, KWOK, Pulumi and golangci-lint;
# 'tofu providers mirror' for the providers of the mirror, and the real providers in place of hack/tools/schema-provider; 'pulumi plugin
# install' for Pulumi's plugins.
#
#   hack/tools.sh              every tool but the linter and Kueue
#   hack/tools.sh --for SET    what a make target needs, such as demo or e2e (hack/tools.sh --sets lists them)
#   hack/tools.sh TOOL ...     only these (hack/tools.sh --list names them)
#   hack/tools.sh --files      the file of each tool below bin/, after its name and a bar; hack/image puts some of them into the image
#
# Tools for another platform: set GOOS, GOARCH and BIN_DIR.
#
# A tool is built once: its stamp in bin/.stamps holds a hash of the module's files, the flags and the Go version.
# Released programs whose version fits (see 'releases' below) are taken instead, by a link in bin/: from the folder KUBEBUILDER_ASSETS and the
# file TOFU, and for what is not built yet, from PATH. Providers are always built. TOOLS_FROM_PATH=no takes none and builds everything.
# While a tool is built, a line says so every 30 seconds (TOOLS_PROGRESS_SECONDS).
set -euo pipefail

die() {
  printf 'tools: %s\n' "$*" >&2
  exit 1
}

command -v go >/dev/null || die "Go is not on PATH; install the version that go.mod names"
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
bin=${BIN_DIR:-$root/bin}
stamps=$bin/.stamps
{ read -r os && read -r arch && read -r go_version; } < <(go env GOOS GOARCH GOVERSION)
kubectl_provider=gavinbunney/kubectl/1.19.0/${os}_${arch}
vsphere_provider=hashicorp/vsphere/1.26.0/${os}_${arch}
schemas=schemas/registry.opentofu.org/hashicorp
pulumi_bridge=pulumi-plugins/resource-terraform-provider-v3.128.0
libvirt_provider=dmacvicar/libvirt/0.7.6/${os}_${arch}
openstack_provider=terraform-provider-openstack/openstack/1.54.1/${os}_${arch}
nutanix_provider=nutanix/nutanix/1.9.5/${os}_${arch}

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
provider-nutanix|provider-nutanix|.|mirror/registry.opentofu.org/$nutanix_provider/terraform-provider-nutanix_v1.9.5|
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
helm|helm|helm.sh/helm/v3/cmd/helm|helm|-X helm.sh/helm/v3/internal/version.version=v3.22.0
operator-verify|operator-verify|github.com/operator-framework/api/cmd/operator-verify|operator-verify|
kueue|kueue|sigs.k8s.io/kueue/cmd/kueue|kueue|-X sigs.k8s.io/kueue/pkg/version.GitVersion=v0.14.0
golangci-lint|golangci-lint|github.com/golangci/golangci-lint/v2/cmd/golangci-lint|golangci-lint|
TOOLS
}

# tags_of TOOL prints the build tags of a tool: promtool goes without the clouds that Prometheus discovers targets in.
tags_of() {
  case $1 in
    promtool) printf 'remove_all_sd' ;;
  esac
}

# set | its tools, by patterns of their names. A test in hack/verify compares the sets with what the code behind a make target uses.
sets() {
  local cluster='etcd kube-apiserver kube-controller-manager kube-scheduler kubectl kwok'
  local pulumi='pulumi pulumi-language-yaml pulumi-terraform-provider'
  cat <<SETS
tools|!(golangci-lint|kueue)
demo|$cluster tofu provider-kubectl
demo-gardener|$cluster tofu provider-kubectl
test|!(golangci-lint|kueue)
test-modules|tofu provider-* schema-* $pulumi
e2e|$cluster tofu provider-kubectl provider-vsphere provider-openstack vcsim $pulumi promql-selectors
e2e-pulumi|$cluster tofu provider-kubectl $pulumi promql-selectors
e2e-upgrade|$cluster tofu provider-kubectl
e2e-libvirt|$cluster tofu provider-kubectl provider-libvirt
e2e-openstack|$cluster tofu provider-kubectl provider-openstack
e2e-gardener|$cluster tofu provider-kubectl
e2e-jobs|$cluster tofu provider-kubectl kueue
chaos|$cluster tofu provider-kubectl provider-openstack $pulumi
bench|$cluster tofu provider-kubectl $pulumi
bench-check|$cluster tofu provider-kubectl $pulumi
profile|$cluster tofu provider-kubectl $pulumi
fmt|golangci-lint tofu
lint|golangci-lint
verify|golangci-lint tofu
SETS
}

# tool | how it prints its version | what is before the version, a regular expression | the releases that fit
releases() {
  cat <<'RELEASES'
etcd|--version|etcd Version: |3.6.*
kube-apiserver|--version|Kubernetes v|1.36.*
kube-controller-manager|--version|Kubernetes v|1.36.*
kube-scheduler|--version|Kubernetes v|1.36.*
kubectl|version --client|Client Version: v|1.36.*
kwok|--version|kwok version v|0.8.*
tofu|version|[A-Za-z]+ v|>= 1.9.0
pulumi|version|v|>= 3.206.0
helm|version --short|v|>= 3.14.0
RELEASES
}

# tool | seconds that it took on two processors, in the order of the catalogue and from empty caches (hack/measure-first.sh). What comes
# before fills the caches, so that kubectl alone takes longer. A tool without a row counts for a minute.
durations() {
  cat <<'DURATIONS'
etcd|40
kube-apiserver|180
kube-controller-manager|51
kube-scheduler|4
kubectl|18
kwok|58
tofu|158
provider-kubectl|68
provider-vsphere|36
provider-libvirt|19
provider-openstack|38
provider-nutanix|40
schema-aws|12
schema-azurerm|1
schema-google|1
vcsim|30
pulumi|210
pulumi-language-yaml|24
pulumi-language-go|4
pulumi-terraform-provider|98
golangci-lint|60
DURATIONS
}

tools=()                                         # what is asked for, in the order of the catalogue
declare -A module_of package_of file_of flags_of # the catalogue
declare -A way                                   # of a tool: keep, take or build
declare -A taken version                         # the program that is taken, and its version
declare -A wanted                                # the fingerprint of what is built
unfit=()                                         # why programs were not taken, a line each

# row TABLE KEY prints the row of a key, without the key.
row() {
  local key rest
  while IFS='|' read -r key rest; do
    if [[ $key == "$2" ]]; then printf '%s\n' "$rest"; fi
  done < <("$1")
}

load_catalogue() {
  local tool module package file flags
  while IFS='|' read -r tool module package file flags; do
    module_of[$tool]=$module package_of[$tool]=$package file_of[$tool]=$file flags_of[$tool]=$flags
  done < <(catalogue)
}

# choose WORD ... fills in tools by the command line.
choose() {
  local patterns=() pattern tool
  if [[ ${1:-} == --for ]]; then
    [[ $# -eq 2 && -n $(row sets "$2") ]] || die "--for takes the name of one set of tools, not '${*:2}'; --sets lists them"
    read -ra patterns <<<"$(row sets "$2")"
  elif [[ $# -eq 0 ]]; then
    read -ra patterns <<<"$(row sets tools)"
  else
    for tool in "$@"; do
      [[ -n ${module_of[$tool]:-} ]] || die "no tool is called '$tool'; --list names them"
    done
    patterns=("$@")
  fi
  while IFS='|' read -r tool _; do
    for pattern in "${patterns[@]}"; do
      # shellcheck disable=SC2053 # a pattern
      if [[ $tool == $pattern ]]; then tools+=("$tool") && break; fi
    done
  done < <(catalogue)
}

# fingerprint MODULE-FOLDER FLAGS
fingerprint() {
  {
    printf '%s %s %s/%s\n' "$2" "$go_version" "$os" "$arch"
    cat "$root/hack/tools/$1/go.mod" "$root/hack/tools/$1/go.sum"
    find "$root/hack/tools/$1" -name '*.go' -o -name '*.json' | LC_ALL=C sort | xargs -r cat
  } | sha256sum | cut -d' ' -f1
}

# version_of TOOL FILE prints the version that a program says it has.
version_of() {
  local how before arguments output line
  IFS='|' read -r how before _ <<<"$(row releases "$1")"
  read -ra arguments <<<"$how"
  output=$(cd / && env -i HOME="$stamps" PATH="$PATH" PULUMI_SKIP_UPDATE_CHECK=true timeout 30 "$2" "${arguments[@]}" 2>/dev/null </dev/null) || return 1
  while IFS= read -r line; do
    if [[ $line =~ ^$before([0-9]+\.[0-9]+\.[0-9]+([-+][^[:space:]]*)?) ]]; then
      printf '%s\n' "${BASH_REMATCH[1]}"
      return
    fi
  done <<<"$output"
  return 1
}

# fits RULE VERSION; builds of others (v1.36.2+k3s1) fit, pre-releases do not.
fits() {
  local core=${2%%+*} least=${1#>= }
  [[ $core != *-* ]] || return 1
  # shellcheck disable=SC2053 # a pattern
  [[ $1 == '>= '* ]] || { [[ $core == $1 ]] && return; return 1; }
  [[ ${core%%.*} == "${least%%.*}" && $(printf '%s\n' "$least" "$core" | sort -V | head -n 1) == "$least" ]]
}

# named TOOL prints the file that the caller's variables name for it.
named() {
  if [[ $1 == tofu && -n ${TOFU:-} ]]; then realpath -s -- "$TOFU"; fi
  if [[ -x ${KUBEBUILDER_ASSETS:-/nonexistent}/$1 ]]; then realpath -s -- "$KUBEBUILDER_ASSETS/$1"; fi
}

# found TOOL prints the files of PATH that are called like it.
found() { type -aP "$1" | grep '^/' || true; }

# ours FILE reports whether a file is one of bin/, or a link to one.
ours() {
  local real
  real=$(realpath -m -- "$bin")
  [[ $(realpath -m -- "${1%/*}") == "$real" || $(realpath -m -- "$1") == "$real"/* ]]
}

# take TOOL named|found chooses the first program that fits.
take() {
  local file known rule seen=' '
  [[ ${TOOLS_FROM_PATH:-yes} == yes && -n $(row releases "$1") ]] || return 1
  rule=$(row releases "$1" | cut -d'|' -f3)
  while IFS= read -r file; do
    if ours "$file" || [[ $seen == *" $(realpath -m -- "$file") "* ]]; then continue; fi
    seen+="$(realpath -m -- "$file") "
    known=$(version_of "$1" "$file") || known=
    if [[ -n $known ]] && fits "$rule" "$known"; then
      way[$1]=take taken[$1]=$file version[$1]=$known
      return
    fi
    [[ -z $known ]] && known='says no version' || known="is $known"
    unfit+=("$1: $file $known; a release $rule is needed")
  done < <("$2" "$1")
  return 1
}

# decide TOOL chooses where it comes from.
decide() {
  local file=$bin/${file_of[$1]}
  wanted[$1]=$(fingerprint "${module_of[$1]}" "${package_of[$1]} ${flags_of[$1]}$(tags_of "$1")")
  if take "$1" named; then return; fi
  if [[ $1 == tofu && -n ${TOFU:-} && ${TOOLS_FROM_PATH:-yes} == yes ]] && ! ours "$TOFU"; then
    die "TOFU is not of use: ${unfit[-1]}; name another file, or unset it"
  fi
  if [[ -x $file && $(cat "$stamps/$1" 2>/dev/null) == "${wanted[$1]}" ]]; then
    way[$1]=keep
  elif ! take "$1" found; then
    way[$1]=build
  fi
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

# source_of FOLDER MODULE prints where the source of a tool's module is.
source_of() {
  (cd "$root/hack/tools/$1" && GOFLAGS=-mod=readonly go mod download "$2" && go list -m -f '{{.Dir}}' "$2")
}

# extras TOOL installs what belongs beside a binary: data of its own module, or a second name for it.
extras() {
  case $1 in
    kwok)
      local module
      module=$(source_of kwok sigs.k8s.io/kwok)
      mkdir -p "$bin/kwok-stages"
      local stage
      for stage in node/fast/node-initialize node/heartbeat-with-lease/node-heartbeat-with-lease pod/fast/pod-ready pod/fast/pod-delete; do
        install -m 0644 "$module/kustomize/stage/$stage.yaml" "$bin/kwok-stages/$(basename "$stage").yaml"
      done
      ;;
    kueue)
      local source part
      source=$(source_of kueue sigs.k8s.io/kueue)
      rm -rf "$bin/kueue-config"
      mkdir -p "$bin/kueue-config/components"
      for part in default components/crd components/rbac components/manager components/internalcert components/visibility components/webhook; do
        cp -r --no-preserve=mode "$source/config/$part" "$bin/kueue-config/$part"
      done
      ;;
    provider-kubectl) link_provider "$kubectl_provider" ;;
    provider-vsphere) link_provider "$vsphere_provider" ;;
    provider-libvirt) link_provider "$libvirt_provider" ;;
    provider-openstack) link_provider "$openstack_provider" ;;
    provider-nutanix) link_provider "$nutanix_provider" ;;
  esac
}

# install_taken TOOL puts a link to a program into bin/. Pulumi looks for the hosts of languages beside itself, links resolved, and shall
# find ours: a script starts it.
install_taken() {
  local file=$bin/${file_of[$1]} program=${taken[$1]}
  rm -f "$file" "$stamps/$1"
  if [[ $1 == pulumi ]]; then
    printf "#!/bin/sh\nexec '%s' \"\$@\"\n" "${program//\'/\'\\\'\'}" >"$file"
    chmod +x "$file"
  else
    ln -s "$program" "$file"
  fi
  extras "$1"
  printf 'tools: %s: using %s (%s)\n' "$1" "$program" "${version[$1]}"
}

# What the estimate is made of: seconds by the table that are to be built yet, that were built, and that those really took. The first half
# minute of the table counts as if it had been built at the speed of the machine's processors.
due=0 counted=0 took=0

duration() { local seconds; seconds=$(row durations "$1"); printf '%s' "${seconds:-60}"; }

# left SECONDS prints how long the rest takes, which has begun SECONDS ago.
left() {
  local processors expected seconds
  if ((due <= 0)); then printf 'all are built' && return; fi
  processors=$(nproc 2>/dev/null || echo 2)
  expected=$((60 / (processors < 8 ? processors : 8)))
  seconds=$((due * (expected + took) / (30 + counted) - $1))
  if ((seconds < 60)); then
    printf 'less than a minute left'
  else
    printf 'about %d min left' "$(((seconds + 59) / 60))"
  fi
}

clock() { printf '%d:%02d' "$(($1 / 60))" "$(($1 % 60))"; }

# build POSITION TOTAL TOOL
build() {
  local tool=$3 file=$bin/${file_of[$3]} log=$stamps/$3.log started=$SECONDS ticker status=0 interval=${TOOLS_PROGRESS_SECONDS:-30}
  printf '[%d/%d] %s: building %s; %s\n' "$1" "$2" "$tool" "${package_of[$tool]/#./hack/tools/${module_of[$tool]}}" "$(left 0)"
  mkdir -p "$(dirname "$file")"
  rm -f "$file" "$stamps/$tool"
  while sleep "$interval" >/dev/null 2>&1 9>&-; do # it outlasts the loop, and shall hold neither the output nor the lock
    printf '[%d/%d] %s: %s so far; %s\n' "$1" "$2" "$tool" "$(clock $((SECONDS - started)))" "$(left $((SECONDS - started)))"
  done &
  ticker=$!
  # shellcheck disable=SC2064 # it is known now
  trap "kill $ticker 2>/dev/null" EXIT
  (cd "$root/hack/tools/${module_of[$tool]}" &&
    CGO_ENABLED=0 GOFLAGS=-mod=readonly go build -trimpath -buildvcs=false -tags "$(tags_of "$tool")" -ldflags "-s -w ${flags_of[$tool]}" -o "$file" "${package_of[$tool]}") >"$log" 2>&1 || status=$?
  kill "$ticker" 2>/dev/null && wait "$ticker" 2>/dev/null || true
  trap - EXIT
  if ((status != 0)); then
    tail -n 20 "$log" >&2
    die "building $tool failed (module hack/tools/${module_of[$tool]}, full output in $log); fix the cause and run the same command again"
  fi
  extras "$tool"
  printf '%s\n' "${wanted[$tool]}" >"$stamps/$tool"
  due=$((due - $(duration "$tool"))) counted=$((counted + $(duration "$tool"))) took=$((took + SECONDS - started))
  printf '[%d/%d] %s: built in %d s; %s since the start, %s\n' "$1" "$2" "$tool" "$((SECONDS - started))" "$(clock $SECONDS)" "$(left 0)"
}

# alone waits until no other call of this script works in the same folder.
alone() {
  command -v flock >/dev/null || return 0
  exec 9>"$stamps/lock"
  if ! flock -n 9; then
    printf 'tools: waiting for another %s in %s\n' "${0##*/}" "$bin"
    flock 9
  fi
}

main() {
  case ${1:-} in
    --list)
      catalogue | cut -d'|' -f1
      return
      ;;
    --files)
      catalogue | cut -d'|' -f1,4
      return
      ;;
    --sets)
      sets
      return
      ;;
  esac
  [[ ${TOOLS_FROM_PATH:-yes} =~ ^(yes|no)$ ]] || die "TOOLS_FROM_PATH is '$TOOLS_FROM_PATH'; it is yes or no"
  local tool position=0 building=0 taking=0
  load_catalogue
  choose "$@"
  mkdir -p "$stamps"
  alone
  for tool in "${tools[@]}"; do
    decide "$tool"
    case ${way[$tool]} in
      take) taking=$((taking + 1)) ;;
      build) building=$((building + 1)) due=$((due + $(duration "$tool"))) ;;
    esac
  done
  for tool in "${tools[@]}"; do
    [[ ${way[$tool]} != take ]] || install_taken "$tool"
  done
  for tool in "${unfit[@]}"; do
    [[ ${way[${tool%%:*}]} == keep ]] || printf 'tools: %s\n' "$tool"
  done
  for tool in "${tools[@]}"; do
    [[ ${way[$tool]} != build ]] || build "$((position += 1))" "$building" "$tool"
  done
  [[ ! -d $bin/schemas || ! -d $bin/mirror ]] || link_mirror
  printf 'tools: %d are ready in %s: %d were there, %d taken, %d built\n' "${#tools[@]}" "$bin" "$((${#tools[@]} - taking - building))" "$taking" "$building"
}

main "$@"
