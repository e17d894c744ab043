#!/usr/bin/env bash
# lock.sh [ENGINE [MODULE ...]]: writes the checksums of a registry's releases into the lock files of modules, for the
# platforms of the image and the plugin. Versions stay. OpenTofu (bin/tofu, the default) writes those of
# registry.opentofu.org, terraform those of registry.terraform.io: the two build HashiCorp's providers apart. Needs a
# network, unless LOCK_MIRROR names a folder with packages.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

engine=$(realpath -s -- "$(type -P "${1:-bin/tofu}")")
modules=("${@:2}")
[[ ${#modules[@]} -gt 0 ]] || modules=(modules/*/ examples/modules/*/)
read -ra platforms <<<"${LOCK_PLATFORMS:-linux_amd64 linux_arm64 darwin_amd64 darwin_arm64}"
case $("$engine" version) in
  *'OpenTofu v'*) registry=registry.opentofu.org ;; # warnings may come before it
  *) registry=registry.terraform.io ;;
esac

# blocks ENTRY FILE prints the provider blocks of the registry (ENTRY is 1), or the others (0).
blocks() {
  awk -v RS= -v entry="$1" -v registry="provider \"$registry/" \
    '(index($0, registry) > 0) == entry { print $0 "\n" }' "$2"
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for module in "${modules[@]}"; do
  lock=${module%/}/.terraform.lock.hcl
  rm -rf "$scratch/root" && mkdir "$scratch/root"
  blocks 1 "$lock" | awk '
    /^provider / { source = $2 }
    / version / {
      printf "terraform {\n  required_providers {\n"
      printf "    p%d = { source = %s, version = %s }\n  }\n}\n", NR, source, $3
    }
  ' >"$scratch/root/main.tf"
  if [[ ! -s $scratch/root/main.tf ]]; then continue; fi
  "$engine" -chdir="$scratch/root" providers lock "${platforms[@]/#/-platform=}" \
    ${LOCK_MIRROR:+-fs-mirror="$LOCK_MIRROR"} >/dev/null
  # Blocks are in the order of their addresses, as engines write them.
  { blocks 0 "$lock" && blocks 1 "$scratch/root/.terraform.lock.hcl"; } |
    awk -v RS= '{ gsub(/\n/, "\001"); print }' | LC_ALL=C sort | sed '$!G' | tr '\001' '\n' >"$scratch/lock"
  cp "$scratch/lock" "$lock"
  printf '%s\n' "$lock"
done
