// Command terraform-provider-vsphere is the provider hashicorp/vsphere, at the version that go.mod pins, and what Machines need beside it:
// virtual machines are found as a list, which may be empty, by their UUID or in a folder, with their tags; so are the networks of a compute cluster,
// the tag of an OpenShift cluster, and snapshots of templates. A virtual machine may be a clone of any snapshot, and a member of a group of its compute
// cluster that others are in too. One that is deleted leaves every disk behind that others have attached to it. It is logged in once.
//
// Everything else is the provider's own code. It is built from its Go module, since released providers cannot be downloaded everywhere; the
// ordinary way is the registry, or 'tofu providers mirror', without the addition above.
package main

import (
	"sync"

	"github.com/hashicorp/terraform-plugin-sdk/helper/schema"
	"github.com/hashicorp/terraform-plugin-sdk/plugin"
	"github.com/hashicorp/terraform-plugin-sdk/terraform"
	"github.com/hashicorp/terraform-provider-vsphere/vsphere"
	"github.com/vmware/govmomi"
	"github.com/vmware/govmomi/vapi/rest"
)

func main() {
	own := &vcenter{}
	plugin.Serve(&plugin.ServeOpts{ProviderFunc: func() terraform.ResourceProvider { return provider(own) }})
	own.close()
}

func provider(own *vcenter) terraform.ResourceProvider {
	p := vsphere.Provider().(*schema.Provider)
	p.ConfigureFunc = own.keepSessions(p.ConfigureFunc)
	p.DataSourcesMap["vsphere_virtual_machines"] = virtualMachines(own)
	p.DataSourcesMap["vsphere_workspace"] = workspace(own)
	p.DataSourcesMap["vsphere_snapshot"] = snapshot(own)
	own.extend(p.ResourcesMap["vsphere_virtual_machine"])
	return p
}

// vcenter is what the provider is configured for.
type vcenter struct {
	mu sync.Mutex
	// config and meta are those of the last configure: what it was asked for, and what it has returned.
	config *vsphere.Config
	meta   any
	// soap and rest are the provider's own clients, which are logged in; rest is nil where vCenter has no such API.
	soap *govmomi.Client
	rest *rest.Client

	// asked is what is asked of virtual machines that are being made beyond what the provider knows, by their names.
	asked sync.Map
	// off has the managed object IDs of those that must not be powered on, and seen what was last read of each.
	off, seen sync.Map
}
