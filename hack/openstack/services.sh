#!/usr/bin/env bash
# Starts the services of an OpenStack and stays with them: the first process of their namespace, with which all of them end. When one
# ends by itself, so does this.
#
#   services.sh DIR "PORT ..."
set -euo pipefail

dir=$1
parts=$(dirname "${BASH_SOURCE[0]}")
read -r KEYSTONE GLANCE PLACEMENT NOVA NEUTRON CINDER RABBIT RABBIT_NODES EPMD <<<"$2"
password=$(head -c 18 /dev/urandom | base64 | tr '+/' 'ab')
socket=$dir/mariadb.sock
host=hypervisor
readonly dir parts password socket host
export OS_BOOTSTRAP_PASSWORD=$password MEMBER_PASSWORD=$password # no argument shows it

# shellcheck source=hack/openstack/configure.sh
. "$parts/configure.sh"

names=() # of what runs, by the process ID

# serve NAME COMMAND ... starts a service.
serve() {
  local name=$1
  shift
  "$@" >>"$dir/log/$name.log" 2>&1 &
  names[$!]=$name
}

# once NAME COMMAND ... runs a command to its end.
once() {
  local name=$1
  shift
  "$@" >>"$dir/log/$name.log" 2>&1 || {
    echo "$name: '$*' failed"
    tail -n 20 "$dir/log/$name.log"
    return 1
  }
}

# program PACKAGE ARGUMENTS ... runs the main function of a module of Python, as the scripts in /usr/bin do, which other packages have.
program() {
  local module=$1 function=main
  shift
  /usr/bin/python3 -c "import sys; sys.argv[0] = '$module'; from $module import $function; sys.exit($function())" "$@"
}

# application PORT MODULE FUNCTION serves what a function returns, an application of WSGI. It may read arguments, and is to see none.
application() {
  exec /usr/bin/python3 -c "import sys; sys.argv = ['$2']; import waitress; from $2 import $3; waitress.serve($3(), host='127.0.0.1', port=$1, threads=8)"
}

listens() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# until_is WHAT COMMAND ... waits. That it does not wait for ever is up to whoever started this.
until_is() {
  local what=$1
  shift
  until "$@" >/dev/null 2>&1; do
    check
    sleep 0.3
  done
  echo "$(date +%T) $what"
}

# check ends all when a service has ended.
check() {
  local pid
  for pid in "${!names[@]}"; do
    kill -0 "$pid" 2>/dev/null && continue
    echo "${names[$pid]} has ended by itself:"
    tail -n 20 "$dir/log/${names[$pid]}.log"
    exit 1
  done
}

# all waits for processes, and fails when one does.
all() {
  local pid
  for pid in "$@"; do
    wait "$pid"
  done
}

start_database() {
  once mariadb mariadb-install-db --no-defaults --user=root --datadir="$dir/mariadb" --auth-root-authentication-method=normal --skip-test-db
  serve mariadb mariadbd --no-defaults --user=root --datadir="$dir/mariadb" --socket="$socket" --pid-file="$dir/mariadb.pid" --skip-networking \
    --innodb-flush-log-at-trx-commit=0 --innodb-flush-method=nosync --skip-log-bin --max-connections=500
  until_is "the database runs" mariadb --no-defaults --socket="$socket" --execute 'SELECT 1'
  local name
  for name in keystone glance placement nova_api nova nova_cell0 neutron cinder; do
    echo "CREATE DATABASE $name CHARACTER SET utf8mb3;"
  done | mariadb --no-defaults --socket="$socket"
}

start_queue() {
  mkdir -p "$dir/rabbitmq"
  printf 'listeners.tcp.1 = 127.0.0.1:%s\ndisk_free_limit.absolute = 50MB\n' "$RABBIT" >"$dir/etc/rabbitmq.conf"
  echo '[].' >"$dir/rabbitmq/enabled_plugins"
  export ERL_EPMD_ADDRESS=127.0.0.1 ERL_EPMD_PORT=$EPMD
  serve rabbitmq env HOME="$dir/rabbitmq" RABBITMQ_NODENAME="cloud@localhost" RABBITMQ_DIST_PORT="$RABBIT_NODES" RABBITMQ_CONFIG_FILE="$dir/etc/rabbitmq.conf" \
    RABBITMQ_MNESIA_BASE="$dir/rabbitmq" RABBITMQ_LOG_BASE="$dir/log" RABBITMQ_ENABLED_PLUGINS_FILE="$dir/rabbitmq/enabled_plugins" \
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="+S 1:1 +sbwt none -kernel inet_dist_use_interface {127,0,0,1}" RABBITMQ_PID_FILE="$dir/rabbitmq/pid" \
    RABBITMQ_CONF_ENV_FILE=/dev/null /usr/lib/rabbitmq/bin/rabbitmq-server
}

# make_tables has each part lay its tables down, all at a time.
make_tables() {
  local pids=()
  once keystone-setup bash -euc "
    keystone-manage --config-file '$dir/etc/keystone.conf' db_sync
    keystone-manage --config-file '$dir/etc/keystone.conf' fernet_setup --keystone-user root --keystone-group root
    keystone-manage --config-file '$dir/etc/keystone.conf' credential_setup --keystone-user root --keystone-group root
    keystone-manage --config-file '$dir/etc/keystone.conf' bootstrap --bootstrap-region-id RegionOne \
      --bootstrap-public-url 'http://127.0.0.1:$KEYSTONE/v3' --bootstrap-internal-url 'http://127.0.0.1:$KEYSTONE/v3'" &
  pids+=($!)
  once placement-setup placement-manage --config-file "$dir/etc/placement/placement.conf" db sync &
  pids+=($!)
  once glance-setup program glance.cmd.manage --config-file "$dir/etc/glance-api.conf" db_sync &
  pids+=($!)
  once cinder-setup program cinder.cmd.manage --config-file "$dir/etc/cinder.conf" db sync &
  pids+=($!)
  once neutron-setup program neutron.db.migration.cli --config-file "$dir/etc/neutron.conf" --config-file "$dir/etc/ml2.ini" upgrade heads &
  pids+=($!)
  (
    nova=(once nova-setup program nova.cmd.manage --config-file "$dir/etc/nova.conf")
    "${nova[@]}" api_db sync
    "${nova[@]}" cell_v2 map_cell0 --database_connection "$(database nova_cell0)"
    "${nova[@]}" db sync
    "${nova[@]}" cell_v2 create_cell --name cell1
  ) &
  pids+=($!)
  all "${pids[@]}"
  echo "$(date +%T) the tables are there"
}

start_services() {
  export OS_KEYSTONE_CONFIG_FILES=$dir/etc/keystone.conf OS_PLACEMENT_CONFIG_DIR=$dir/etc/placement
  serve keystone application "$KEYSTONE" keystone.server.wsgi initialize_public_application
  serve placement application "$PLACEMENT" placement.wsgi init_application
  serve glance program glance.cmd.api --config-file "$dir/etc/glance-api.conf"
  until_is "Keystone listens" listens "$KEYSTONE"
  seed catalogue # Nova ends without one
  until_is "Placement listens" listens "$PLACEMENT"
  until_is "RabbitMQ listens" listens "$RABBIT"
  serve neutron program neutron.cmd.eventlet.server --config-file "$dir/etc/neutron.conf" --config-file "$dir/etc/ml2.ini"
  local part
  for part in conductor scheduler compute api; do
    serve "nova-$part" program "nova.cmd.$part" --config-file "$dir/etc/nova.conf"
  done
  for part in scheduler volume api; do
    serve "cinder-$part" env PYTHONPATH="$parts" /usr/bin/python3 -c "import sys; sys.argv[0] = 'cinder-$part'; from cinder.cmd.$part import main; sys.exit(main())" \
      --config-file "$dir/etc/cinder.conf"
  done
  until_is "Glance listens" listens "$GLANCE"
  until_is "Neutron listens" listens "$NEUTRON"
  until_is "Nova listens" listens "$NOVA"
  until_is "Cinder listens" listens "$CINDER"
}

# seed WHAT makes a part of what is there before servers are.
seed() {
  once seed env OS_CLIENT_CONFIG_FILE="$dir/clouds.yaml" IMAGE_URL="http://127.0.0.1:$GLANCE" PLACEMENT_URL="http://127.0.0.1:$PLACEMENT" \
    COMPUTE_URL="http://127.0.0.1:$NOVA/v2.1" NETWORK_URL="http://127.0.0.1:$NEUTRON" VOLUME_URL="http://127.0.0.1:$CINDER/v3/\$(project_id)s" \
    /usr/bin/python3 "$parts/seed.py" "$1"
  echo "$(date +%T) the cloud has its $1"
}

configure
write_clouds
start_database
start_queue
make_tables
start_services
once neutron-agent /usr/bin/python3 "$parts/agent.py" --config-file "$dir/etc/neutron.conf" --config-file "$dir/etc/agent.ini"
seed rest
touch "$dir/ready"
while sleep 1; do
  check
done
