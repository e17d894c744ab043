#!/usr/bin/env bash
# Runs a command beside a libvirt of its own, and ends that libvirt afterwards.
#
#   hack/libvirt.sh COMMAND ...
#
# libvirtd and virtlogd run in namespaces of their own, so that they see no network, no configuration and no state of this machine's
# libvirt, and whatever they started ends with them. The command reaches them by the URI in LIBVIRT_DEFAULT_URI; a bridge is there, whose
# name is in LIBVIRT_BRIDGE, the folder LIBVIRT_DIR is where both sides see the same files, and LIBVIRT_NETNS is the network namespace of
# guests. It needs root; what is missing is installed from Debian's packages.
set -euo pipefail

readonly bridge=guests
readonly patience=30 # seconds until libvirtd responds

# program that must be there | Debian package that has it
programs() {
  cat <<PROGRAMS
libvirtd|libvirt-daemon
virtlogd|libvirt-daemon
virsh|libvirt-clients
qemu-system-$(uname -m)|$(qemu_package)
qemu-img|qemu-utils
ip|iproute2
unshare|util-linux
setpriv|util-linux
dnsmasq|dnsmasq-base
PROGRAMS
}

qemu_package() {
  case $(uname -m) in
    x86_64) echo qemu-system-x86 ;;
    aarch64) echo qemu-system-arm ;;
    *) echo qemu-system-misc ;;
  esac
}

# The driver is a plugin of libvirtd.
driver() { compgen -G '/usr/lib*/*/libvirt/connection-driver/libvirt_driver_qemu.so' || compgen -G '/usr/lib*/libvirt/connection-driver/libvirt_driver_qemu.so'; } >/dev/null

die() {
  printf 'libvirt: %s\n' "$*" >&2
  exit 1
}

missing() {
  local program package
  while IFS='|' read -r program package; do
    command -v "$program" >/dev/null || printf '%s\n' "$package"
  done < <(programs)
  driver || printf '%s\n' libvirt-daemon-driver-qemu
}

install_packages() {
  local packages
  mapfile -t packages < <(missing | LC_ALL=C sort -u)
  [[ ${#packages[@]} -gt 0 ]] || return 0
  command -v apt-get >/dev/null || die "these programs are missing: ${packages[*]} (by the names of Debian's packages); install them"
  printf 'libvirt: installing %s\n' "${packages[*]}"
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${packages[@]}" >/dev/null
  [[ -z $(missing) ]] || die "apt-get installed ${packages[*]}, but this is still missing: $(missing | tr '\n' ' ')"
}

# configure DIR writes what the daemons read.
configure() {
  mkdir -p "$1"/{etc,run,lib/libvirt,cache/libvirt,log/libvirt,socket,shared}
  cat >"$1/etc/qemu.conf" <<'CONF'
user = "root"
group = "root"
security_driver = "none"
cgroup_controllers = []
namespaces = []
remember_owner = 0
CONF
  cat >"$1/etc/libvirtd.conf" <<CONF
unix_sock_dir = "$1/socket"
unix_sock_rw_perms = "0700"
auth_unix_rw = "none"
auth_unix_ro = "none"
log_filters = "3:util 4:node_device"
CONF
  # The driver wants them to be there, and does not use them.
  cp /etc/passwd /etc/group "$1"
  grep -q ^libvirt-qemu: "$1/passwd" || echo 'libvirt-qemu:x:64055:64055::/nonexistent:/usr/sbin/nologin' >>"$1/passwd"
  grep -q ^libvirt-qemu: "$1/group" || echo 'libvirt-qemu:x:64055:' >>"$1/group"
  grep -q ^kvm: "$1/group" || echo 'kvm:x:64056:' >>"$1/group"
}

# inside DIR BRIDGE is the first process of the namespaces: it ends the orphans of domains, and with it everything ends.
inside() {
  mount --bind "$1/passwd" /etc/passwd
  mount --bind "$1/group" /etc/group
  mkdir -p /etc/libvirt
  mount --bind "$1/etc" /etc/libvirt
  mount --bind "$1/run" /run
  mount --bind "$1/lib" /var/lib
  mount --bind "$1/cache" /var/cache
  mount --bind "$1/log" /var/log
  mkdir -p /run/libvirt
  ip link set lo up
  ip link add name "$2" type bridge
  ip link set "$2" up
  virtlogd &
  libvirtd -f /etc/libvirt/libvirtd.conf &
  wait -n
  echo "libvirt: a daemon has ended by itself" >&2
}

# end PID DIR STATUS stops the daemons and all that they have started.
end() {
  trap - EXIT INT TERM
  kill -KILL "$1" 2>/dev/null || true
  wait "$1" 2>/dev/null || true
  rm -f "/run/libvirt/${2##*/}"
  if [[ $3 -eq 0 ]]; then
    rm -rf "$2"
  else
    printf 'libvirt: the logs of the daemons and of domains are kept in %s\n' "$2" >&2
  fi
  exit "$3"
}

main() {
  [[ $# -gt 0 ]] || die "say what to run: hack/libvirt.sh COMMAND ..."
  [[ $(id -u) -eq 0 ]] || die "a libvirt with networks needs root: run it as root, or in a container with --privileged"
  install_packages
  unshare --mount --net --pid --fork true || die "this machine lets even root make no namespaces: use one that does, such as a container with --privileged"
  local dir daemons status=0
  dir=$(mktemp -d "${TMPDIR:-/tmp}/machine-iac-libvirt-XXXXXX")
  configure "$dir"
  setpriv --pdeathsig KILL unshare --mount --net --pid --fork --kill-child --mount-proc \
    bash -euc "$(declare -f inside); inside \"\$@\"" inside "$dir" "$bridge" >"$dir/log/daemons.log" 2>&1 &
  daemons=$!
  # shellcheck disable=SC2064 # they are known now, and out of scope then
  trap "end $daemons '$dir' 130" EXIT INT TERM
  # The module takes sockets in /run/libvirt only.
  mkdir -p /run/libvirt
  ln -s "$dir/socket" "/run/libvirt/${dir##*/}"
  export LIBVIRT_DEFAULT_URI="qemu:///system?socket=/run/libvirt/${dir##*/}/libvirt-sock" LIBVIRT_BRIDGE=$bridge LIBVIRT_DIR=$dir/shared
  export LIBVIRT_NETNS=/proc/$daemons/ns/net
  local waited
  for ((waited = 0; waited < patience * 5; waited++)); do
    virsh uri >/dev/null 2>&1 && break
    kill -0 "$daemons" 2>/dev/null || break
    sleep 0.2
  done
  if ! virsh version; then
    tail -n 20 "$dir/log/daemons.log" >&2
    end "$daemons" "$dir" 1
  fi
  "$@" || status=$?
  end "$daemons" "$dir" "$status"
}

main "$@"
