// Command terraform-provider-vsphere is the provider hashicorp/vsphere, at the version that go.mod pins, and what Machines need beside it:
// virtual machines are found as a list, which may be empty, by their UUID or in a folder, with their tags; so are the networks of a compute cluster,
// the tag of an OpenShift cluster, and snapshots of templates. A virtual machine may be a clone of any snapshot, and a member of a group of its compute
// cluster that others are in too. One that is deleted leaves every disk behind that others have attached to it.
//
// Everything else is the provider's own code. It is built from its Go module, since released providers cannot be downloaded everywhere; the
// ordinary way is the registry, or 'tofu providers mirror', without the addition above.
package main

import (
	"errors"
	"net/url"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/terraform-plugin-sdk/helper/schema"
	"github.com/hashicorp/terraform-plugin-sdk/plugin"
	"github.com/hashicorp/terraform-plugin-sdk/terraform"
	"github.com/hashicorp/terraform-provider-vsphere/vsphere"
	"github.com/vmware/govmomi/vim25"
)

func main() {
	plugin.Serve(&plugin.ServeOpts{ProviderFunc: provider})
}

func provider() terraform.ResourceProvider {
	p, own := vsphere.Provider().(*schema.Provider), &vcenter{}
	configure := p.ConfigureFunc
	p.ConfigureFunc = func(d *schema.ResourceData) (any, error) {
		config, err := vsphere.NewConfig(d)
		if err != nil {
			return nil, err
		}
		own.set(config)
		client, err := configure(d)
		if err != nil {
			return nil, err
		}
		return client, own.attend(client)
	}
	p.DataSourcesMap["vsphere_virtual_machines"] = virtualMachines(own)
	p.DataSourcesMap["vsphere_workspace"] = workspace(own)
	p.DataSourcesMap["vsphere_snapshot"] = snapshot(own)
	own.extend(p.ResourcesMap["vsphere_virtual_machine"])
	return p
}

// vcenter is what the provider is configured for.
type vcenter struct {
	mu     sync.Mutex
	config *vsphere.Config
	client *vim25.Client

	// making is locked while a virtual machine is made, of which asked is more than the provider knows.
	making sync.Mutex
	asked  atomic.Pointer[asked]
}

func (v *vcenter) set(config *vsphere.Config) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.config = config
}

// address returns the address of the vCenter with who logs in, and whether its certificate is not checked.
func (v *vcenter) address() (address *url.URL, insecure bool, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.config == nil {
		return nil, false, errors.New("the provider is not configured")
	}
	return &url.URL{Scheme: "https", Host: v.config.VSphereServer, Path: "/sdk", User: url.UserPassword(v.config.User, v.config.Password)}, v.config.InsecureFlag, nil
}
