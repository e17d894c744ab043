// Command terraform-provider-openstack is the provider terraform-provider-openstack/openstack, at the version that go.mod pins, and
// what Machines need beside it, which name what they use, and whose runs may be cut off before they save their state:
//
//   - networks, subnets, security groups, ports, trunks, servers, server groups and volumes are found as lists of ids, which may be empty:
//     what a server was made from may be gone, or have a namesake, and the server is still to be looked at and deleted;
//   - a server group is made where there is none of its name, and stays when its Machine goes: others are in it;
//   - a port, a trunk, a volume and the association of a floating address may be nothing at all, as programs without conditions need it;
//   - a trunk can be imported;
//   - what is read again within a second, with nothing written since, is asked for once, and flavors and images are for all Machines of a run;
//   - a port is of any type of interface that Neutron knows;
//   - other user data is no change of a server that exists: it is read at the first boot. Nova does not return it, so an
//     import does not know it. Pulumi would take what is ignored from the state, which has a sum in place of the text.
//
// Everything else is the provider's own code. It is built from its Go module, since released providers cannot be downloaded everywhere; the
// ordinary way is the registry, or 'tofu providers mirror', without the additions above.
package main

import (
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
	"github.com/hashicorp/terraform-plugin-sdk/v2/plugin"
	"github.com/terraform-provider-openstack/terraform-provider-openstack/openstack"
)

func main() {
	plugin.Serve(&plugin.ServeOpts{ProviderFunc: provider})
}

func provider() *schema.Provider {
	p := openstack.Provider()
	p.ConfigureContextFunc = once(p.ConfigureContextFunc)
	p.Schema["use_octavia"].Deprecated = "" // the warning would come with every run, whether load balancers are used or not
	p.DataSourcesMap["openstack_networking_networks_v2"] = search(findNetworks, networkFilter, "ids")
	p.DataSourcesMap["openstack_networking_subnets_v2"] = search(findSubnets, subnetFilter, "ids", "network_ids")
	p.DataSourcesMap["openstack_networking_secgroups_v2"] = search(findSecurityGroups, groupFilter, "ids")
	p.DataSourcesMap["openstack_networking_ports_v2"] = search(findPorts, texts("name", "description_contains", "device_id"), "ids", "names", "addresses")
	p.DataSourcesMap["openstack_networking_trunks_v2"] = search(findTrunks, texts("port_id"), "ids")
	p.DataSourcesMap["openstack_compute_instances_v2"] = search(findServers, merged(named, texts("instance_id")), "ids", "servers")
	p.DataSourcesMap["openstack_compute_servergroups_v2"] = search(findServerGroups, texts("servergroup_id", "name"), "ids", "names")
	p.DataSourcesMap["openstack_networking_floatingips_v2"] = search(findFloatingIPs, texts("address"), "ids")
	p.DataSourcesMap["openstack_blockstorage_volumes_v3"] = search(findVolumes, merged(named, texts("attached_to")), "ids")
	p.ResourcesMap["openstack_compute_servergroup_shared_v2"] = sharedServerGroup()
	p.ResourcesMap["openstack_networking_trunk_v2"].Importer = &schema.ResourceImporter{StateContext: schema.ImportStatePassthroughContext}
	p.ResourcesMap["openstack_networking_port_v2"].Schema["binding"].Elem.(*schema.Resource).Schema["vnic_type"].ValidateFunc = nil
	p.ResourcesMap["openstack_networking_port_optional_v2"] = optional(p.ResourcesMap["openstack_networking_port_v2"])
	p.ResourcesMap["openstack_networking_trunk_optional_v2"] = optional(p.ResourcesMap["openstack_networking_trunk_v2"])
	p.ResourcesMap["openstack_networking_floatingip_associate_optional_v2"] = optional(p.ResourcesMap["openstack_networking_floatingip_associate_v2"])
	p.ResourcesMap["openstack_blockstorage_volume_optional_v3"] = optional(p.ResourcesMap["openstack_blockstorage_volume_v3"])
	p.ResourcesMap["openstack_compute_instance_v2"].Schema["user_data"].DiffSuppressFunc = func(_, _, _ string, d *schema.ResourceData) bool {
		return d.Id() != ""
	}
	return p
}
