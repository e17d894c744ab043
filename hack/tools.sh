#!/usr/bin/env bash
# Puts the tools that this repository uses into bin/. TOOLS says where they come from:
#
#   TOOLS=auto       what is installed and fits, else the release (hack/tools/releases.txt), else a build from the pinned module (the default)
#   TOOLS=download   the releases, and an error for one that cannot be had
#   TOOLS=build      everything is built from its pinned Go module (see folder_of), which needs a Go module proxy and nothing else; for CI
#
# What has no release row, such as providers, is always built.
#
#   hack/tools.sh              every tool but the linter, Kueue and the image's engine
#   hack/tools.sh --for SET    what a make target needs, such as demo or e2e (hack/tools.sh --sets lists them)
#   hack/tools.sh TOOL ...     only these (hack/tools.sh --list names them)
#   hack/tools.sh --files      the file of each tool below bin/, after its name and a bar; hack/image puts some of them into the image
#
# Tools for another platform: set GOOS, GOARCH and BIN_DIR.
#
# A tool is built once: its stamp in bin/.stamps holds a hash of the module's files, the flags and the Go version. Tools of one module are
# built by one call of Go, which compiles what they share once and links while it compiles. A line says so every 30 seconds
# (TOOLS_PROGRESS_SECONDS). Installed programs are looked for in the folder KUBEBUILDER_ASSETS, the file TOFU, and PATH; bin/ gets a link.
# A download that receives nothing for 15 seconds (TOOLS_STALL) fails.
set -euo pipefail

die() {
  printf 'tools: %s\n' "$*" >&2
  exit 1
}

trap 'exit 130' INT TERM # a build that is interrupted is not the next one's turn
command -v go >/dev/null || die "Go is not on PATH; install the version that go.mod names"
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
bin=${BIN_DIR:-$root/bin}
stamps=$bin/.stamps
releases=${TOOLS_RELEASES:-$root/hack/tools/releases.txt} # tests have a table of their own
{ read -r os && read -r arch && read -r go_version; } < <(go env GOOS GOARCH GOVERSION)
kubernetes='-X k8s.io/component-base/version.gitVersion=v1.37.2'
kubectl_provider=gavinbunney/kubectl/1.19.0/${os}_${arch}
vsphere_provider=hashicorp/vsphere/1.26.0/${os}_${arch}
schemas=schemas/registry.opentofu.org/hashicorp
pulumi_bridge=pulumi-plugins/resource-terraform-provider-v3.128.0
libvirt_provider=dmacvicar/libvirt/0.7.6/${os}_${arch}
openstack_provider=terraform-provider-openstack/openstack/1.54.1/${os}_${arch}
nutanix_provider=nutanix/nutanix/1.9.5/${os}_${arch}

# tool | module (see folder_of) | package | file under bin/ | ldflags
catalogue() {
  cat <<TOOLS
etcd|cluster|go.etcd.io/etcd/server/v3|etcd|
kube-apiserver|cluster|k8s.io/kubernetes/cmd/kube-apiserver|kube-apiserver|$kubernetes
kube-controller-manager|cluster|k8s.io/kubernetes/cmd/kube-controller-manager|kube-controller-manager|$kubernetes
kube-scheduler|cluster|k8s.io/kubernetes/cmd/kube-scheduler|kube-scheduler|$kubernetes
kubectl|cluster|k8s.io/kubernetes/cmd/kubectl|kubectl|$kubernetes
kubelet|cluster|k8s.io/kubernetes/cmd/kubelet|kubelet|$kubernetes
kubeadm|cluster|k8s.io/kubernetes/cmd/kubeadm|kubeadm|$kubernetes
kwok|cluster|sigs.k8s.io/kwok/cmd/kwok|kwok|
tofu|opentofu|github.com/opentofu/opentofu/cmd/tofu|tofu|-X github.com/opentofu/opentofu/version.dev=no
tofu-image|opentofu|github.com/opentofu/opentofu/cmd/tofu|image/tofu|-X github.com/opentofu/opentofu/version.dev=no
provider-kubectl|cluster|./provider-kubectl|mirror/registry.opentofu.org/$kubectl_provider/terraform-provider-kubectl_v1.19.0|
provider-vsphere|provider-vsphere|.|mirror/registry.opentofu.org/$vsphere_provider/terraform-provider-vsphere_v1.26.0|
provider-libvirt|provider-libvirt|.|mirror/registry.opentofu.org/$libvirt_provider/terraform-provider-libvirt_v0.7.6|
provider-openstack|provider-openstack|.|mirror/registry.opentofu.org/$openstack_provider/terraform-provider-openstack_v1.54.1|
provider-nutanix|provider-nutanix|.|mirror/registry.opentofu.org/$nutanix_provider/terraform-provider-nutanix_v1.9.5|
schema-aws|schema-provider|.|$schemas/aws/6.25.0/${os}_${arch}/terraform-provider-aws_v6.25.0|
schema-azurerm|schema-provider|.|$schemas/azurerm/5.2.0/${os}_${arch}/terraform-provider-azurerm_v5.2.0|
schema-google|schema-provider|.|$schemas/google/7.45.0/${os}_${arch}/terraform-provider-google_v7.45.0|
schema-kubectl|schema-provider|.|schemas/registry.opentofu.org/$kubectl_provider/terraform-provider-kubectl_v1.19.0|
schema-vsphere|schema-provider|.|schemas/registry.opentofu.org/$vsphere_provider/terraform-provider-vsphere_v1.26.0|
schema-libvirt|schema-provider|.|schemas/registry.opentofu.org/$libvirt_provider/terraform-provider-libvirt_v0.7.6|
schema-openstack|schema-provider|.|schemas/registry.opentofu.org/$openstack_provider/terraform-provider-openstack_v1.54.1|
schema-nutanix|schema-provider|.|schemas/registry.opentofu.org/$nutanix_provider/terraform-provider-nutanix_v1.9.5|
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

# source_change TOOL prints how its source is changed.
source_change() { [[ $1 != tofu ]] || declare -f lean_opentofu; }

# set | its tools, by patterns of their names
sets() {
  local cluster='etcd kube-apiserver kube-controller-manager kube-scheduler kubectl kwok'
  local pulumi='pulumi pulumi-language-yaml pulumi-terraform-provider'
  cat <<SETS
tools|!(golangci-lint|kubeadm|kubelet|kueue|tofu-image)
demo|$cluster tofu provider-kubectl
demo-gardener|$cluster tofu provider-kubectl
plugin|tofu schema-*
test|$cluster tofu provider-kubectl schema-* $pulumi
test-all|!(golangci-lint|kubeadm|kubelet|kueue|tofu-image)
test-modules|tofu provider-* schema-* $pulumi
e2e|$cluster tofu provider-kubectl provider-vsphere provider-openstack vcsim $pulumi promql-selectors
e2e-pulumi|$cluster tofu provider-kubectl $pulumi promql-selectors
e2e-upgrade|$cluster tofu provider-kubectl
e2e-libvirt|$cluster kubelet kubeadm tofu provider-kubectl provider-libvirt
e2e-openstack|$cluster tofu provider-kubectl provider-openstack
e2e-gardener|$cluster tofu provider-kubectl
e2e-jobs|$cluster tofu provider-kubectl kueue
life|$cluster tofu provider-* vcsim $pulumi
peers|$cluster tofu provider-kubectl provider-vsphere vcsim
chaos|$cluster tofu provider-kubectl provider-openstack $pulumi
bench|$cluster tofu provider-kubectl $pulumi
bench-check|$cluster tofu provider-kubectl $pulumi
profile|$cluster tofu provider-kubectl $pulumi
fmt|golangci-lint tofu
lint|golangci-lint
verify|golangci-lint tofu
SETS
}

# tool | how it prints its version | what is before the version, a regular expression | the versions that fit, by Kubernetes' own skew rules
releases() {
  cat <<'RELEASES'
etcd|--version|etcd Version: |3.6.* 3.7.*
kube-apiserver|--version|Kubernetes v|1.37.*
kube-controller-manager|--version|Kubernetes v|1.36.* 1.37.*
kube-scheduler|--version|Kubernetes v|1.36.* 1.37.*
kubectl|version --client|Client Version: v|1.36.* 1.37.* 1.38.*
kwok|--version|kwok version v|0.8.*
tofu|version|[A-Za-z]+ v|>= 1.9.0
pulumi|version|v|>= 3.206.0
helm|version --short|v|>= 3.14.0
RELEASES
}

# module | seconds that its tools took on two processors, from empty caches in this order (hack/measure-first.sh). A module without a row
# counts for a minute.
durations() {
  cat <<'DURATIONS'
cluster|370
opentofu|122
provider-vsphere|36
provider-libvirt|19
provider-openstack|38
provider-nutanix|40
schema-provider|14
vcsim|30
pulumi|149
pulumi-language-yaml|21
pulumi-language-go|4
pulumi-terraform-provider|92
golangci-lint|60
DURATIONS
}

set=                                             # the set that is asked for, if one is
tools=()                                         # what is asked for, in the order of the catalogue
declare -A module_of package_of file_of flags_of # the catalogue
declare -A way                                   # of a tool: keep, take, fetch or build
declare -A taken version                         # the installed program that is taken, and its version
declare -A wanted released                       # the fingerprints of what is built, and of what is downloaded
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
    set=$2
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

# folder_of MODULE prints the folder of a module of the catalogue, from the repository's root.
folder_of() {
  case $1 in
    provider-*) printf '%s' "providers/${1#provider-}" ;;
    vcsim) printf 'test/vcenter/vcsim' ;;
    *) printf '%s' "hack/tools/$1" ;;
  esac
}

# fingerprint MODULE FLAGS
fingerprint() {
  local folder
  folder=$root/$(folder_of "$1")
  {
    printf '%s %s %s/%s\n' "$2" "$go_version" "$os" "$arch"
    cat "$folder/go.mod" "$folder/go.sum"
    find "$folder" \( -name '*.go' -o -name '*.json' \) -print0 | LC_ALL=C sort -z | xargs -0 -r cat
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
  local core=${2%%+*} least=${1#>= } pattern patterns
  [[ $core != *-* ]] || return 1
  if [[ $1 == '>= '* ]]; then
    [[ ${core%%.*} == "${least%%.*}" && $(printf '%s\n' "$least" "$core" | sort -V | head -n 1) == "$least" ]]
    return
  fi
  read -ra patterns <<<"$1"
  for pattern in "${patterns[@]}"; do
    # shellcheck disable=SC2053 # a pattern
    if [[ $core == $pattern ]]; then return; fi
  done
  return 1
}

# named TOOL prints the file that the caller's variables name for it.
named() {
  if [[ $1 == tofu && -n ${TOFU:-} ]]; then realpath -s -- "$TOFU"; fi
  if [[ -x ${KUBEBUILDER_ASSETS:-/nonexistent}/$1 ]]; then realpath -s -- "$KUBEBUILDER_ASSETS/$1"; fi
}

# found TOOL prints the files of PATH that are called like it. Terraform serves as the demo's engine where there is no OpenTofu; tests are about both.
found() {
  type -aP "$1" | grep '^/' || true
  if [[ $1 == tofu && $set == demo ]]; then type -aP terraform | grep '^/' || true; fi
}

# ours FILE reports whether a file is one of bin/, or a link to one.
ours() {
  local real
  real=$(realpath -m -- "$bin")
  [[ $(realpath -m -- "${1%/*}") == "$real" || $(realpath -m -- "$1") == "$real"/* ]]
}

# take TOOL named|found chooses the first program that fits.
take() {
  local file known rule seen=' '
  [[ $TOOLS == auto && -n $(row releases "$1") ]] || return 1
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
  local file=$bin/${file_of[$1]} stamp
  stamp=$(cat "$stamps/$1" 2>/dev/null) || true
  wanted[$1]=$(fingerprint "${module_of[$1]}" "${package_of[$1]} ${flags_of[$1]}$(tags_of "$1")$(source_change "$1")")
  released[$1]=$(grep "^$1|${os}_$arch|" "$releases" || true)
  if take "$1" named; then return; fi
  if [[ $1 == tofu && -n ${TOFU:-} && $TOOLS == auto ]] && ! ours "$TOFU"; then
    die "TOFU is not of use: ${unfit[-1]}; name another file, or unset it"
  fi
  if [[ -x $file && ($stamp == "${wanted[$1]}" || ($TOOLS != build && -n $stamp && $stamp == "${released[$1]}")) ]]; then
    way[$1]=keep
  elif ! take "$1" found; then
    way[$1]=build
    if [[ $TOOLS != build && -n ${released[$1]} ]]; then way[$1]=fetch; fi
  fi
}

# download TOOL FILE downloads a release, and fails if it hangs or has another checksum than the table.
download() {
  local url sum member archive=$2.archive
  command -v curl >/dev/null || { echo 'curl is not on PATH' >&2 && return 1; }
  IFS='|' read -r _ _ _ url sum member <<<"${released[$1]}"
  curl --fail --silent --show-error --location --connect-timeout 5 --speed-limit 1 --speed-time "${TOOLS_STALL:-15}" --max-time 300 --output "$archive" "$url" || return
  if ! sha256sum --check --status <<<"${sum#sha256:}  $archive"; then
    echo "$url: the checksum is not $sum" >&2
    return 1
  fi
  case $url in
    *.zip) unzip -p "$archive" "$member" >"$2" ;;
    *.tar.gz) tar --extract --gzip --to-stdout --file "$archive" "$member" >"$2" ;;
    *) mv "$archive" "$2" ;;
  esac && chmod +x "$2"
}

# fetch TOOL ... downloads releases, all at once. What cannot be downloaded is left to be built.
fetch() {
  local tool folder=$stamps/download
  rm -rf "$folder"
  mkdir -p "$folder"
  for tool in "$@"; do
    (download "$tool" "$folder/$tool" 2>"$folder/$tool.error" || rm -f "$folder/$tool") &
  done
  wait
  for tool in "$@"; do
    if [[ -x $folder/$tool ]]; then
      mkdir -p "$(dirname "$bin/${file_of[$tool]}")"
      rm -f "$bin/${file_of[$tool]}" "$stamps/$tool"
      mv "$folder/$tool" "$bin/${file_of[$tool]}"
      extras "$tool"
      printf '%s\n' "${released[$tool]}" >"$stamps/$tool"
      printf 'tools: %s: downloaded\n' "$tool"
    else
      printf 'tools: %s is not downloaded: %s\n' "$tool" "$(head -n 1 "$folder/$tool.error")"
      [[ $TOOLS == auto ]] || die "$tool could not be downloaded; TOOLS=auto builds it instead"
      way[$tool]=build
    fi
  done
  rm -rf "$folder"
}

# link_provider PROVIDER names a provider of the mirror for HashiCorp's terraform, which looks it up under its own default registry
# name, and follows links at this level only.
link_provider() {
  local version=${1%/*}
  rm -rf "$bin/mirror/registry.terraform.io/${version%/*}"
  mkdir -p "$bin/mirror/registry.terraform.io/$version"
  ln -sfn "../../../../registry.opentofu.org/$1" "$bin/mirror/registry.terraform.io/$1"
}

# link_mirror puts the real providers of bin/mirror into bin/schemas, each in place of its recorded schema, and names all that are there
# for HashiCorp's terraform too. Never the other way round: runs and the image take their providers from bin/mirror, and a recorded schema
# can create nothing.
link_mirror() {
  local package
  for package in "$bin"/mirror/registry.opentofu.org/*/*/*/*/terraform-provider-*; do
    package=${package%/*} package=${package#"$bin/mirror/"}
    if [[ ! -d $bin/mirror/$package || -L $bin/schemas/$package ]]; then continue; fi
    mkdir -p "$bin/schemas/${package%/*}"
    rm -rf "${bin:?}/schemas/$package"
    ln -s "../../../../../mirror/$package" "$bin/schemas/$package"
  done
  for package in "$bin"/schemas/registry.opentofu.org/*/*/*/*; do
    package=${package#"$bin/schemas/registry.opentofu.org/"}
    if [[ ! -d $bin/schemas/registry.opentofu.org/$package || -L $bin/schemas/registry.terraform.io/$package ]]; then continue; fi
    mkdir -p "$bin/schemas/registry.terraform.io/${package%/*}"
    ln -s "../../../../registry.opentofu.org/$package" "$bin/schemas/registry.terraform.io/$package"
  done
}

# list_mirror MIRROR writes the manifest of a mirror beside it, unless there is one that is newer than all it lists. The
# manager accepts the mirror's providers by it, which are no releases of a registry.
list_mirror() {
  [[ -d $bin/$1/registry.opentofu.org ]] || return 0
  if [[ -e $bin/$1.sha256 && -z $(find -L "$bin/$1" -type f -newer "$bin/$1.sha256") ]]; then return; fi
  (
    cd "$bin/$1"
    find -L registry.opentofu.org -type f -name 'terraform-provider-*' -print0 | LC_ALL=C sort -z | xargs -0 -r sha256sum
  ) >"$bin/$1.sha256.new"
  mv "$bin/$1.sha256.new" "$bin/$1.sha256"
}

# source_of MODULE DEPENDENCY prints where the source of a dependency is.
source_of() {
  (cd "$root/$(folder_of "$1")" && GOFLAGS=-mod=readonly go mod download "$2" && go list -m -f '{{.Dir}}' "$2")
}

# extras TOOL installs what belongs beside a binary: data of its own module, or a second name for it.
extras() {
  case $1 in
    kwok)
      local module
      module=$(source_of cluster sigs.k8s.io/kwok)
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

# compile MODULE FOLDER TOOL ... builds them into a folder, each under the name of its tool. More garbage than usual is left lying
# (GOGC), which makes a build a seventh faster, and needs some 2 GB of memory.
compile() {
  local module=$1 out=$2 tool flags='-s -w' packages=() lean=()
  cd "$root/$(folder_of "$module")"
  for tool in "${@:3}"; do
    packages+=("${package_of[$tool]}")
    if [[ -n ${flags_of[$tool]} && $flags != *"${flags_of[$tool]}"* ]]; then flags+=" ${flags_of[$tool]}"; fi
  done
  if [[ $3 == tofu ]]; then
    lean_opentofu "$out/source"
    lean=(-modfile "$out/source/tools.mod")
  fi
  # A name alone would be a package of the standard library, a slash at the end makes Go name each program itself.
  CGO_ENABLED=0 GOFLAGS=-mod=readonly GOGC=${GOGC:-400} go build "${lean[@]}" -trimpath -buildvcs=false -tags "$(tags_of "$3")" \
    -ldflags "$flags" -o "$out/programs/" "${packages[@]}"
  for tool in "${@:3}"; do # one package may be several tools: schema-*
    ln "$out/programs/$(program_of "${package_of[$tool]}")" "$out/$tool"
  done
}

# program_of PACKAGE prints what Go calls its program. It runs in the module's folder.
program_of() {
  local name=$1
  [[ $name != . ]] || name=$PWD
  [[ ! ${name##*/} =~ ^v[0-9]+$ ]] || name=${name%/*}
  printf '%s' "${name##*/}"
}

# lean_opentofu FOLDER copies OpenTofu's source without the state backends and key providers of clouds, whose SDKs are more than half of
# what it compiles, and writes a go.mod beside it that uses the copy. States of Machines come over HTTP; the image has all of it (tofu-image).
lean_opentofu() {
  local backends='backend(Azure|Consul|Cos|GCS|OSS|Pg|S3)\b' keys='(aws_kms|gcp_kms|azure_vault|openbao)'
  cp -r --no-preserve=mode "$(source_of opentofu github.com/opentofu/opentofu)" "$1"
  sed -i -E "/$backends/d" "$1/internal/backend/init/init.go"
  sed -i -E -e "/keyprovider\/$keys\"/d" -e "/RegisterKeyProvider\($keys\./,/^\t}/d" "$1/internal/encryption/default_registry.go"
  cp go.mod "$1/tools.mod"
  cp go.sum "$1/tools.sum"
  go mod edit -replace "github.com/opentofu/opentofu=$1" "$1/tools.mod"
}

# build POSITION TOTAL MODULE TOOL ...
build() {
  local module=$3 tools=("${@:4}") tool names folder log=$stamps/$3.log out=$stamps/build started=$SECONDS ticker status=0 interval=${TOOLS_PROGRESS_SECONDS:-30}
  printf -v names '%s, ' "${tools[@]}"
  names=${names%, }
  printf '[%d/%d] building %s; %s\n' "$1" "$2" "$names" "$(left 0)"
  rm -rf "$out"
  mkdir -p "$out/programs"
  while sleep "$interval" >/dev/null 2>&1 9>&-; do # it outlasts the loop, and shall hold neither the output nor the lock
    printf '[%d/%d] %s so far; %s\n' "$1" "$2" "$(clock $((SECONDS - started)))" "$(left $((SECONDS - started)))"
  done &
  ticker=$!
  # shellcheck disable=SC2064 # it is known now
  trap "kill $ticker 2>/dev/null" EXIT
  set +e # in a condition, bash would go on after a command that fails
  (
    set -e
    compile "$module" "$out" "${tools[@]}"
  ) >"$log" 2>&1
  status=$?
  set -e
  kill "$ticker" 2>/dev/null && wait "$ticker" 2>/dev/null || true
  trap - EXIT
  if ((status != 0)); then
    tail -n 20 "$log" >&2
    die "building $names failed (module $(folder_of "$module"), full output in $log); fix the cause and run the same command again"
  fi
  for tool in "${tools[@]}"; do
    folder=$(dirname "$bin/${file_of[$tool]}")
    if [[ -L $folder ]]; then rm "$folder"; fi # a recorded schema must not overwrite the real provider that link_mirror links
    mkdir -p "$folder"
    rm -f "$bin/${file_of[$tool]}" "$stamps/$tool"
    mv "$out/$tool" "$bin/${file_of[$tool]}"
    extras "$tool"
    printf '%s\n' "${wanted[$tool]}" >"$stamps/$tool"
  done
  rm -rf "$out"
  due=$((due - $(duration "$module"))) counted=$((counted + $(duration "$module"))) took=$((took + SECONDS - started))
  printf '[%d/%d] %s: built in %d s; %s since the start, %s\n' "$1" "$2" "$module" "$((SECONDS - started))" "$(clock $SECONDS)" "$(left 0)"
}

# build_all builds what is left to be built, module by module. Programs that differ in tags or source are built apart.
build_all() {
  local tool unit units=() position=0
  declare -A members=()
  for tool in "${tools[@]}"; do
    [[ ${way[$tool]} == build ]] || continue
    unit=${module_of[$tool]}$(tags_of "$tool")
    if [[ $tool == tofu-image ]]; then unit+=/$tool; fi
    if [[ -z ${members[$unit]:-} ]]; then
      units+=("$unit")
      due=$((due + $(duration "${module_of[$tool]}")))
    fi
    members[$unit]+=" $tool"
  done
  built=0
  for unit in "${units[@]}"; do
    # shellcheck disable=SC2086 # words
    set -- ${members[$unit]}
    build "$((position += 1))" "${#units[@]}" "${module_of[$1]}" "$@"
    built=$((built + $#))
  done
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
  TOOLS=${TOOLS:-auto}
  [[ $TOOLS =~ ^(auto|download|build)$ ]] || die "invalid TOOLS '$TOOLS': must be auto, download or build"
  local tool built taking=0 fetching=()
  load_catalogue
  choose "$@"
  mkdir -p "$stamps"
  alone
  for tool in "${tools[@]}"; do
    decide "$tool"
  done
  for tool in "${tools[@]}"; do
    case ${way[$tool]} in
      take) taking=$((taking + 1)) && install_taken "$tool" ;;
      fetch) fetching+=("$tool") ;;
    esac
  done
  for tool in "${unfit[@]}"; do
    [[ ${way[${tool%%:*}]} == keep ]] || printf 'tools: %s\n' "$tool"
  done
  if [[ ${#fetching[@]} -gt 0 ]]; then fetch "${fetching[@]}"; fi
  for tool in "${fetching[@]}"; do
    [[ ${way[$tool]} == build ]] || taking=$((taking + 1))
  done
  build_all
  [[ ! -d $bin/schemas ]] || link_mirror
  list_mirror mirror
  list_mirror schemas
  printf 'tools: %d are ready in %s: %d were there, %d taken, %d built\n' "${#tools[@]}" "$bin" "$((${#tools[@]} - taking - built))" "$taking" "$built"
}

main "$@"
