#!/usr/bin/env bash
# Runs a command beside an OpenStack of its own, and ends that OpenStack afterwards.
#
#   hack/openstack.sh COMMAND ...
#
# Keystone, Glance, Placement, Nova, Neutron and Cinder of Debian's packages run on ports of loopback that were free, with a MariaDB and a
# RabbitMQ of their own. All their data is in one folder, and all their processes are in one namespace and end together. Nova has its fake
# virt driver, so that servers are records without a guest; what else is not as in a cloud is in hack/openstack/README.md. The command finds
# a clouds.yaml by OS_CLIENT_CONFIG_FILE, with the clouds "admin" and "openstack". It needs root; what is missing is installed from Debian's
# packages.
set -euo pipefail

parts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/openstack
readonly parts
# How many seconds the cloud may take to start: about 60 on two idle cores.
readonly patience=${OPENSTACK_PATIENCE:-900}

# file that must be there | Debian package that has it
files() {
  local part
  for part in keystone glance placement nova neutron cinder; do
    echo "/usr/lib/python3/dist-packages/$part/__init__.py|python3-$part"
  done
  cat <<'FILES'
/usr/lib/python3/dist-packages/pymysql/__init__.py|python3-pymysql
/usr/lib/python3/dist-packages/waitress/__init__.py|python3-waitress
/usr/lib/rabbitmq/bin/rabbitmq-server|rabbitmq-server
/usr/sbin/mariadbd|mariadb-server-core
/usr/bin/mariadb|mariadb-client-core
/usr/bin/mariadb-install-db|mariadb-server-core
/usr/bin/setpriv|util-linux
FILES
}

die() {
  printf 'openstack: %s\n' "$*" >&2
  exit 1
}

missing() {
  local file package
  while IFS='|' read -r file package; do
    [[ -e $file ]] || printf '%s\n' "$package"
  done < <(files)
}

# The packages are the programs without what runs them as services of the machine: nothing is configured and no database is made. RabbitMQ's
# has a service, which is not started.
install_packages() {
  local packages policy=/usr/sbin/policy-rc.d made=
  mapfile -t packages < <(missing | LC_ALL=C sort -u)
  [[ ${#packages[@]} -gt 0 ]] || return 0
  command -v apt-get >/dev/null || die "these are missing: ${packages[*]} (by the names of Debian's packages); install them"
  printf 'openstack: installing %s, and what they depend on\n' "${packages[*]}"
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq
  if [[ ! -e $policy ]]; then
    made=yes
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod +x "$policy"
  fi
  local status=0
  apt-get install -qq -y --no-install-recommends -o Dpkg::Options::=--force-confold "${packages[@]}" >/dev/null || status=$?
  [[ -z $made ]] || rm -f "$policy"
  [[ $status -eq 0 ]] || die "apt-get could not install ${packages[*]}"
  apt-get clean
  [[ -z $(missing) ]] || die "apt-get installed ${packages[*]}, but this is still missing: $(missing | tr '\n' ' ')"
}

# free_ports COUNT prints ports of loopback that nothing listens on, outside of the range that the kernel takes ports for clients from: until the
# services start, nobody gets them by chance.
free_ports() {
  /usr/bin/python3 - "$1" <<'PYTHON'
import random, socket, sys
free = []
for port in random.sample(range(11000, 20000), 1000):
    try:
        free.append(socket.create_server(("127.0.0.1", port)))
    except OSError:
        continue
    if len(free) == int(sys.argv[1]):
        break
print(*[each.getsockname()[1] for each in free])
PYTHON
}

# end PID DIR STATUS stops all services and what they have started.
end() {
  trap - EXIT INT TERM
  kill -KILL "$1" 2>/dev/null || true
  wait "$1" 2>/dev/null || true
  if [[ $3 -eq 0 && -z ${OPENSTACK_KEEP:-} ]]; then
    rm -rf "$2"
  else
    printf 'openstack: the logs are kept in %s/log, and all data beside it\n' "$2" >&2
  fi
  exit "$3"
}

main() {
  [[ $# -gt 0 ]] || die "say what to run: hack/openstack.sh COMMAND ..."
  [[ $(id -u) -eq 0 ]] || die "packages and namespaces need root: run it as root, or in a container with --privileged"
  install_packages
  unshare --mount --pid --fork true || die "this machine lets even root make no namespaces: use one that does, such as a container with --privileged"
  local dir services status=0
  dir=$(mktemp -d "${TMPDIR:-/tmp}/machine-iac-openstack-XXXXXX")
  mkdir "$dir/log"
  setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child --mount-proc \
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 HOME="$dir" PYTHONDONTWRITEBYTECODE=1 \
    bash "$parts/services.sh" "$dir" "$(free_ports 9)" >"$dir/log/services.log" 2>&1 &
  services=$!
  # shellcheck disable=SC2064 # they are known now, and out of scope then
  trap "end $services '$dir' 130" EXIT INT TERM
  local waited
  for ((waited = 0; waited < patience * 5; waited++)); do
    [[ ! -e $dir/ready ]] && kill -0 "$services" 2>/dev/null || break
    sleep 0.2
  done
  if [[ ! -e $dir/ready ]]; then
    tail -n 20 "$dir/log/services.log" >&2
    printf 'openstack: the cloud has not started within %s seconds, or a part of it has ended\n' "$patience" >&2
    end "$services" "$dir" 1
  fi
  export OS_CLIENT_CONFIG_FILE="$dir/clouds.yaml" OPENSTACK_LOGS="$dir/log"
  "$@" || status=$?
  if ! kill -0 "$services" 2>/dev/null; then
    printf 'openstack: a service has ended while the command ran; %s/log/services.log names it\n' "$dir" >&2
    [[ $status -ne 0 ]] || status=1
  fi
  end "$services" "$dir" "$status"
}

main "$@"
