// Command terraform-provider-libvirt is the provider dmacvicar/libvirt, at the version that go.mod pins, and what Machines need
// beside it, which come and go, and whose runs may be cut off before they save their state:
//
//   - a domain is imported by its name, as name=NAME: its UUID is libvirt's choice, and only the interrupted run knew it;
//   - domains are found as a list, which may be empty;
//   - an Ignition volume of the name that is to be made is replaced, where the provider alone would fail;
//   - an Ignition volume that is gone, and a domain whose volume is gone, can be read, and hence be destroyed;
//   - a domain that is deleted takes its address with it, which the provider alone leaves reserved in its network for ever.
//
// Everything else is the provider's own code. It is built from its Go module, since released providers cannot be downloaded everywhere; the
// ordinary way is the registry, or 'tofu providers mirror', without the additions above.
package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	golibvirt "github.com/digitalocean/go-libvirt"
	"github.com/dmacvicar/terraform-provider-libvirt/libvirt"
	"github.com/dmacvicar/terraform-provider-libvirt/libvirt/uri"
	"github.com/google/uuid"
	"github.com/hashicorp/terraform-plugin-sdk/v2/diag"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
	"github.com/hashicorp/terraform-plugin-sdk/v2/plugin"
)

// byName is what the ID of an import begins with that names a domain.
const byName = "name="

func main() {
	defer libvirt.CleanupLibvirtConnections()
	plugin.Serve(&plugin.ServeOpts{ProviderFunc: provider})
}

func provider() *schema.Provider {
	p, own := libvirt.Provider(), &host{}
	configure := p.ConfigureFunc
	p.ConfigureFunc = func(d *schema.ResourceData) (any, error) {
		own.name(d.Get("uri").(string))
		return configure(d)
	}
	domain, ignition := p.ResourcesMap["libvirt_domain"], p.ResourcesMap["libvirt_ignition"]
	domain.Importer = &schema.ResourceImporter{StateContext: own.importDomain}
	domain.ReadContext = whereVolumeIsGone(domain.ReadContext, func(*schema.ResourceData) {})
	domain.DeleteContext = own.release(domain.DeleteContext)
	p.DataSourcesMap["libvirt_domains"] = domains(own)
	ignition.CreateContext = own.replaceVolume(ignition.CreateContext)
	ignition.ReadContext = whereVolumeIsGone(ignition.ReadContext, func(d *schema.ResourceData) { d.SetId("") })
	return p
}

// host is the libvirt that the provider is configured for. The provider keeps its own connection to itself.
type host struct {
	mu  sync.Mutex
	uri string
}

func (h *host) name(uri string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.uri = uri
}

// ask connects for as long as the question takes.
func (h *host) ask(question func(*golibvirt.Libvirt) error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	address, err := uri.Parse(h.uri)
	if err != nil {
		return err
	}
	connection := golibvirt.NewWithDialer(address)
	if err := connection.ConnectToURI(golibvirt.ConnectURI(address.RemoteName())); err != nil {
		return fmt.Errorf("connecting to libvirt: %w", err)
	}
	defer func() { _ = connection.Disconnect() }()
	return question(connection)
}

// importDomain turns the name of a domain into its UUID, which is its ID.
func (h *host) importDomain(_ context.Context, d *schema.ResourceData, _ any) ([]*schema.ResourceData, error) {
	name, named := strings.CutPrefix(d.Id(), byName)
	if !named {
		return []*schema.ResourceData{d}, nil
	}
	err := h.ask(func(connection *golibvirt.Libvirt) error {
		found, err := connection.DomainLookupByName(name)
		if golibvirt.IsNotFound(err) {
			return fmt.Errorf("there is no domain named %q", name)
		}
		if err != nil {
			return fmt.Errorf("looking for the domain %q: %w", name, err)
		}
		d.SetId(uuid.UUID(found.UUID).String())
		return nil
	})
	return []*schema.ResourceData{d}, err
}

// replaceVolume deletes a volume that an abandoned run has left, before create makes it.
func (h *host) replaceVolume(create schema.CreateContextFunc) schema.CreateContextFunc {
	return func(ctx context.Context, d *schema.ResourceData, meta any) diag.Diagnostics {
		err := h.ask(func(connection *golibvirt.Libvirt) error {
			pool, err := connection.StoragePoolLookupByName(d.Get("pool").(string))
			if err != nil {
				return nil // create says it better
			}
			// So that libvirt sees files that were added without it. A pool that is busy cannot be read anew, and create waits for it.
			_ = connection.StoragePoolRefresh(pool, 0)
			left, err := connection.StorageVolLookupByName(pool, d.Get("name").(string))
			if err != nil {
				return nil // there is none
			}
			if err := connection.StorageVolDelete(left, 0); err != nil {
				return fmt.Errorf("deleting the volume %q that an earlier run has left: %w", left.Name, err)
			}
			return nil
		})
		if err != nil {
			return diag.FromErr(err)
		}
		return create(ctx, d, meta)
	}
}

// release takes the reservations of a deleted domain's addresses out of its networks. Where there is none that is an error of libvirt,
// and nothing is wrong.
func (h *host) release(remove schema.DeleteContextFunc) schema.DeleteContextFunc {
	return func(ctx context.Context, d *schema.ResourceData, meta any) diag.Diagnostics {
		if failed := remove(ctx, d, meta); failed.HasError() {
			return failed
		}
		err := h.ask(func(connection *golibvirt.Libvirt) error {
			for i := range d.Get("network_interface.#").(int) {
				at := fmt.Sprintf("network_interface.%d.", i)
				network, err := connection.NetworkLookupByName(d.Get(at + "network_name").(string))
				if err != nil {
					continue
				}
				_ = connection.NetworkUpdateCompat(network, golibvirt.NetworkUpdateCommandDelete, golibvirt.NetworkSectionIPDhcpHost, -1,
					fmt.Sprintf("<host mac='%s'/>", d.Get(at+"mac")), golibvirt.NetworkUpdateAffectLive|golibvirt.NetworkUpdateAffectConfig)
			}
			return nil
		})
		if err != nil {
			return diag.Diagnostics{{Severity: diag.Warning, Summary: "the domain's address stays reserved: " + err.Error()}}
		}
		return nil
	}
}

// whereVolumeIsGone makes an error of read that is about a missing volume none, and has gone decide what that means.
func whereVolumeIsGone(read schema.ReadContextFunc, gone func(*schema.ResourceData)) schema.ReadContextFunc {
	return func(ctx context.Context, d *schema.ResourceData, meta any) diag.Diagnostics {
		found := read(ctx, d, meta)
		other := slices.ContainsFunc(found, func(one diag.Diagnostic) bool {
			return one.Severity == diag.Error && !strings.Contains(one.Summary, "Storage volume not found")
		})
		if other || !found.HasError() {
			return found
		}
		gone(d)
		return nil
	}
}
