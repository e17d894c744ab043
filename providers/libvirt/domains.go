package main

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"strconv"

	golibvirt "github.com/digitalocean/go-libvirt"
	"github.com/google/uuid"
	"github.com/hashicorp/terraform-plugin-sdk/v2/diag"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
)

// domain is one as libvirt describes it.
type domain struct {
	Name        string `xml:"name"`
	UUID        string `xml:"uuid"`
	Description string `xml:"description"`
	Memory      struct {
		Unit  string `xml:"unit,attr"`
		Value int64  `xml:",chardata"`
	} `xml:"memory"`
	VCPUs int `xml:"vcpu"`
	Disks []struct {
		Device string `xml:"device,attr"`
		Source struct {
			File   string `xml:"file,attr"`
			Pool   string `xml:"pool,attr"`
			Volume string `xml:"volume,attr"`
		} `xml:"source"`
	} `xml:"devices>disk"`
}

// shownDomain is one as JSON shows it.
type shownDomain struct {
	Name        string `json:"name"`
	UUID        string `json:"uuid"`
	Description string `json:"description"`
	MemoryMiB   int64  `json:"memory_mib"`
	VCPUs       int    `json:"vcpus"`
	// Volumes are the keys of the disks that are volumes of a pool.
	Volumes []string `json:"volumes"`
}

// domains lists the domains, or the one with a UUID, each as JSON.
func domains(h *host) *schema.Resource {
	return &schema.Resource{
		Schema: map[string]*schema.Schema{
			"uuid":    {Type: schema.TypeString, Optional: true},
			"domains": {Type: schema.TypeList, Computed: true, Elem: &schema.Schema{Type: schema.TypeString}},
		},
		ReadContext: func(_ context.Context, d *schema.ResourceData, _ any) diag.Diagnostics {
			shown := []string{}
			err := h.ask(func(connection *golibvirt.Libvirt) error {
				listed, _, err := connection.ConnectListAllDomains(1, 0)
				if err != nil {
					return fmt.Errorf("listing domains: %w", err)
				}
				for _, one := range listed {
					if wanted := d.Get("uuid").(string); wanted != "" && wanted != uuid.UUID(one.UUID).String() {
						continue
					}
					text, err := show(connection, one)
					if err != nil {
						return err
					}
					shown = append(shown, text)
				}
				return nil
			})
			if err != nil {
				return diag.FromErr(err)
			}
			d.SetId("-") // nobody asks for it
			return diag.FromErr(d.Set("domains", shown))
		},
	}
}

func show(connection *golibvirt.Libvirt, one golibvirt.Domain) (string, error) {
	text, err := connection.DomainGetXMLDesc(one, 0)
	if err != nil {
		return "", fmt.Errorf("describing the domain %s: %w", one.Name, err)
	}
	var described domain
	if err := xml.Unmarshal([]byte(text), &described); err != nil {
		return "", fmt.Errorf("reading the description of the domain %s: %w", one.Name, err)
	}
	if described.Memory.Unit != "KiB" { // libvirt always writes it so
		return "", fmt.Errorf("the memory of the domain %s is %s %s; want KiB", one.Name, strconv.FormatInt(described.Memory.Value, 10), described.Memory.Unit)
	}
	shown := shownDomain{
		Name: described.Name, UUID: described.UUID, Description: described.Description, MemoryMiB: described.Memory.Value >> 10, VCPUs: described.VCPUs,
		Volumes: []string{},
	}
	for _, disk := range described.Disks {
		if key := volumeKey(connection, disk.Source.File, disk.Source.Pool, disk.Source.Volume); key != "" && disk.Device != "cdrom" {
			shown.Volumes = append(shown.Volumes, key)
		}
	}
	raw, err := json.Marshal(shown)
	return string(raw), err
}

// volumeKey returns the key of a volume, by its file or by its name in a pool; "" where there is none.
func volumeKey(connection *golibvirt.Libvirt, file, pool, volume string) string {
	if file != "" {
		if found, err := connection.StorageVolLookupByPath(file); err == nil {
			return found.Key
		}
		return ""
	}
	in, err := connection.StoragePoolLookupByName(pool)
	if err != nil {
		return ""
	}
	found, err := connection.StorageVolLookupByName(in, volume)
	if err != nil {
		return ""
	}
	return found.Key
}
