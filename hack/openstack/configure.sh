# What the services of hack/openstack/services.sh read; sourced by it.
# shellcheck shell=bash disable=SC2154 # its variables are that script's

database() { printf 'mysql+pymysql://root@localhost/%s?unix_socket=%s&charset=utf8' "$1" "$socket"; }

# tables NAME is the section with the connection to a database.
tables() {
  cat <<CONF
[database]
connection = $(database "$1")
connection_recycle_time = 300
max_pool_size = 10
CONF
}

# login SECTION is how a service signs in to another.
login() {
  cat <<CONF
[$1]
auth_type = password
auth_url = http://127.0.0.1:$KEYSTONE/v3
username = admin
password = $password
project_name = admin
user_domain_name = Default
project_domain_name = Default
region_name = RegionOne
CONF
}

# tokens is how a service checks whom it serves.
tokens() {
  login keystone_authtoken
  cat <<CONF
www_authenticate_uri = http://127.0.0.1:$KEYSTONE/v3
service_token_roles_required = true
CONF
}

# common NAME is what most of them have.
common() {
  cat <<CONF
[oslo_concurrency]
lock_path = $dir/lock/$1
[oslo_messaging_notifications]
driver = noop
[oslo_messaging_rabbit]
heartbeat_in_pthread = false
rabbit_transient_queues_ttl = 600
[oslo_policy]
policy_file = $dir/etc/none.yaml
CONF
}

bus() { printf 'rabbit://guest:guest@127.0.0.1:%s/' "$RABBIT"; }

configure() {
  mkdir -p "$dir"/etc/placement "$dir"/{lock,state,images}/ "$dir"/lock/{nova,neutron,cinder,glance} "$dir"/state/{nova,neutron,cinder}
  echo '# the defaults' >"$dir/etc/none.yaml"
  configure_keystone >"$dir/etc/keystone.conf"
  configure_glance >"$dir/etc/glance-api.conf"
  configure_placement >"$dir/etc/placement/placement.conf"
  configure_nova >"$dir/etc/nova.conf"
  configure_neutron >"$dir/etc/neutron.conf"
  configure_networks >"$dir/etc/ml2.ini"
  configure_agent >"$dir/etc/agent.ini"
  configure_cinder >"$dir/etc/cinder.conf"
  cp "$parts"/*-paste.ini "$dir/etc"
}

configure_keystone() {
  cat <<CONF
$(tables keystone)
[token]
provider = fernet
[fernet_tokens]
key_repository = $dir/state/fernet-keys
[fernet_receipts]
key_repository = $dir/state/fernet-keys
[credential]
key_repository = $dir/state/credential-keys
[identity]
password_hash_rounds = 4
CONF
}

configure_glance() {
  cat <<CONF
[DEFAULT]
bind_host = 127.0.0.1
bind_port = $GLANCE
workers = 0
enabled_backends = files:file
$(tables glance)
$(tokens)
$(common glance)
[paste_deploy]
flavor = keystone
config_file = $dir/etc/glance-paste.ini
[glance_store]
default_backend = files
[files]
filesystem_store_datadir = $dir/images/stored
[os_glance_staging_store]
filesystem_store_datadir = $dir/images/staged
[os_glance_tasks_store]
filesystem_store_datadir = $dir/images/tasks
CONF
}

configure_placement() {
  cat <<CONF
[placement_database]
connection = $(database placement)
[api]
auth_strategy = keystone
$(tokens)
CONF
}

# Without guests and agents there is nobody who says that a port is plugged.
configure_nova() {
  cat <<CONF
[DEFAULT]
transport_url = $(bus)
host = $host
my_ip = 127.0.0.1
compute_driver = fake.FakeDriver
state_path = $dir/state/nova
enabled_apis = osapi_compute
osapi_compute_listen = 127.0.0.1
osapi_compute_listen_port = $NOVA
osapi_compute_workers = 1
vif_plugging_is_fatal = false
vif_plugging_timeout = 0
[wsgi]
api_paste_config = $dir/etc/nova-paste.ini
[api]
auth_strategy = keystone
[api_database]
connection = $(database nova_api)
$(tables nova)
[conductor]
workers = 1
[scheduler]
workers = 1
discover_hosts_in_cells_interval = 3
[glance]
api_servers = http://127.0.0.1:$GLANCE
[cinder]
catalog_info = volumev3:cinderv3:publicURL
os_region_name = RegionOne
$(login neutron)
$(login placement)
$(login service_user)
send_service_user_token = true
$(tokens)
$(common nova)
[vnc]
enabled = false
CONF
}

configure_neutron() {
  cat <<CONF
[DEFAULT]
transport_url = $(bus)
bind_host = 127.0.0.1
bind_port = $NEUTRON
state_path = $dir/state/neutron
api_paste_config = $dir/etc/neutron-paste.ini
auth_strategy = keystone
core_plugin = ml2
service_plugins = router,trunk
api_workers = 0
rpc_workers = 1
rpc_state_report_workers = 0
agent_down_time = 86400
dhcp_agent_notification = false
notify_nova_on_port_status_changes = false
notify_nova_on_port_data_changes = false
[quotas]
quota_port = -1
$(tables neutron)
$(tokens)
$(common neutron)
CONF
}

configure_networks() {
  cat <<CONF
[ml2]
type_drivers = local,flat,vxlan
tenant_network_types = vxlan
mechanism_drivers = openvswitch
extension_drivers = port_security
[ml2_type_flat]
flat_networks = outside
[ml2_type_vxlan]
vni_ranges = 1:1000
[securitygroup]
enable_security_group = true
CONF
}

# The agent reports where ports can be bound, and does no more.
configure_agent() {
  cat <<CONF
[DEFAULT]
host = $host
CONF
}

configure_cinder() {
  cat <<CONF
[DEFAULT]
transport_url = $(bus)
host = $host
my_ip = 127.0.0.1
state_path = $dir/state/cinder
api_paste_config = $dir/etc/cinder-paste.ini
auth_strategy = keystone
osapi_volume_listen = 127.0.0.1
osapi_volume_listen_port = $CINDER
osapi_volume_workers = 1
glance_api_servers = http://127.0.0.1:$GLANCE
enabled_backends = nowhere
default_volume_type = __DEFAULT__
storage_availability_zone = nova
[nowhere]
volume_driver = volumes.Driver
volume_backend_name = nowhere
$(tables cinder)
$(tokens)
$(login service_user)
send_service_user_token = true
$(common cinder)
CONF
}

write_clouds() {
  local cloud user project
  {
    echo 'clouds:'
    for cloud in admin:admin:admin openstack:worker:openshift; do
      IFS=: read -r cloud user project <<<"$cloud"
      cat <<CONF
  $cloud:
    auth:
      auth_url: http://127.0.0.1:$KEYSTONE/v3
      username: $user
      password: $password
      project_name: $project
      user_domain_name: Default
      project_domain_name: Default
    region_name: RegionOne
    identity_api_version: "3"
CONF
    done
  } >"$dir/clouds.yaml"
  chmod 600 "$dir/clouds.yaml"
}
