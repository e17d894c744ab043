"""Reports to Neutron once, as an Open vSwitch agent of the hypervisor does, so that ports can be bound there.

No bridge is behind it: the ports of servers stay DOWN, since nobody plugs them.
"""

import sys

from neutron.agent import rpc
from neutron.common import config
from neutron.conf.agent import common as agent_config
from neutron_lib import context
from neutron_lib import rpc as lib_rpc
from neutron_lib.agent import topics
from oslo_config import cfg

config.register_common_config_options()
agent_config.register_agent_state_opts_helper(cfg.CONF)
config.init(sys.argv[1:])
lib_rpc.init(cfg.CONF)
rpc.PluginReportStateAPI(topics.REPORTS).report_state(
    context.get_admin_context_without_session(),
    {
        "agent_type": "Open vSwitch agent",
        "binary": "neutron-openvswitch-agent",
        "host": cfg.CONF.host,
        "topic": "N/A",
        "start_flag": True,
        "configurations": {
            "tunnel_types": ["vxlan"],
            "tunneling_ip": "127.0.0.1",
            "bridge_mappings": {"outside": "br-outside"},
            "datapath_type": "system",
            "ovs_capabilities": {"datapath_types": ["system"], "iface_types": ["vxlan"]},
        },
    },
    use_call=True,
)
