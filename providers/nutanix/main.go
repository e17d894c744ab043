// Command terraform-provider-nutanix is the provider nutanix/nutanix, at the version that go.mod pins, and what Machines need beside it:
//
//   - clusters, images, subnets, projects, GPUs, categories and virtual machines are found as lists, which may be empty: what a virtual machine
//     was made from may be gone, or have a namesake, and the virtual machine is still to be looked at and deleted;
//   - a virtual machine is not created while something that it names is not there, and the error names it;
//   - the type of the hypervisor is read, which the provider describes and leaves out;
//   - the port may come from the environment, where a default of the provider's own stands before it;
//   - requests go through the proxy that the environment names, and the authorities that it names are trusted.
//
// Everything else is the provider's own code. It is built from its Go module, since released providers cannot be downloaded everywhere; the
// ordinary way is the registry, or 'tofu providers mirror', without the additions above.
package main

import (
	"context"
	"net/http"

	"github.com/hashicorp/terraform-plugin-sdk/v2/diag"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
	"github.com/hashicorp/terraform-plugin-sdk/v2/plugin"
	"github.com/terraform-providers/terraform-provider-nutanix/nutanix"
)

func main() {
	plugin.Serve(&plugin.ServeOpts{ProviderFunc: provider})
}

func provider() *schema.Provider {
	p := nutanix.Provider()
	p.ConfigureContextFunc = throughProxies(p.ConfigureContextFunc)
	p.DataSourcesMap["nutanix_search"] = search()
	// The default that it has comes before the environment's.
	p.Schema["port"].Default = nil
	p.Schema["port"].DefaultFunc = schema.EnvDefaultFunc("NUTANIX_PORT", "9440")
	machine := p.ResourcesMap["nutanix_virtual_machine"]
	machine.Schema["cluster_uuid"].ValidateFunc = nil // a module writes in its place why there is none
	machine.Exists = nil                              // a read finds that out too, with one request less
	machine.ReadContext = withHypervisor(machine.ReadContext)
	machine.CreateContext = onceAllIsThere(withHypervisor(schema.ReadContextFunc(machine.CreateContext)))
	return p
}

// throughProxies has the clients of a provider that is configured anew, which share one transport, use the proxies of the environment.
func throughProxies(configure schema.ConfigureContextFunc) schema.ConfigureContextFunc {
	return func(ctx context.Context, d *schema.ResourceData) (any, diag.Diagnostics) {
		asked.Clear()
		client, found := configure(ctx, d)
		if !d.Get("insecure").(bool) && d.Get("proxy_url").(string) == "" {
			http.DefaultClient.Transport = http.DefaultTransport
		}
		// The other services that the provider knows are not used, so that nothing is said of them.
		var kept diag.Diagnostics
		for _, one := range found {
			if one.Severity != diag.Warning {
				kept = append(kept, one)
			}
		}
		return client, kept
	}
}
