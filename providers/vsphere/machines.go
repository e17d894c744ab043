package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-sdk/helper/schema"
	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/property"
	"github.com/vmware/govmomi/vapi/tags"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

// timeout is how long a search may take.
const timeout = 5 * time.Minute

// found is one virtual machine, as JSON shows it.
type found struct {
	Name       string `json:"name"`
	Path       string `json:"path"`
	UUID       string `json:"uuid"`
	Annotation string `json:"annotation"`
	// Created is empty where vCenter does not say.
	Created   string `json:"created"`
	Template  bool   `json:"template"`
	NumCPUs   int32  `json:"num_cpus"`
	MemoryMiB int32  `json:"memory_mib"`
	// Tags are category and name, with a slash between, by the ids.
	Tags map[string]string `json:"tags"`
}

// virtualMachines lists the virtual machines of a folder, or the one with a UUID, each as JSON.
func virtualMachines(v *vcenter) *schema.Resource {
	text := func(required bool) *schema.Schema {
		return &schema.Schema{Type: schema.TypeString, Required: required, Optional: !required}
	}
	return &schema.Resource{
		Schema: map[string]*schema.Schema{
			"datacenter": text(true),
			// below the datacenter's folder vm
			"folder":           text(false),
			"uuid":             text(false),
			"virtual_machines": {Type: schema.TypeList, Computed: true, Elem: &schema.Schema{Type: schema.TypeString}},
		},
		Read: func(d *schema.ResourceData, _ any) error {
			ctx, cancel := context.WithTimeout(context.Background(), timeout)
			defer cancel()
			listed, err := v.list(ctx, d.Get("datacenter").(string), d.Get("folder").(string), d.Get("uuid").(string))
			if err != nil {
				return err
			}
			shown := make([]string, 0, len(listed))
			for _, one := range listed {
				raw, err := json.Marshal(one)
				if err != nil {
					return err
				}
				shown = append(shown, string(raw))
			}
			d.SetId("-") // nobody asks for it
			return d.Set("virtual_machines", shown)
		},
	}
}

func (v *vcenter) list(ctx context.Context, datacenter, folder, uuid string) ([]found, error) {
	client, session, err := v.clients()
	if err != nil {
		return nil, err
	}
	finder := find.NewFinder(client, true)
	center, err := finder.Datacenter(ctx, datacenter)
	if err != nil {
		return nil, fmt.Errorf("looking for the datacenter %s: %w", datacenter, err)
	}
	refs, err := references(ctx, client, finder.SetDatacenter(center), center, folder, uuid)
	if err != nil || len(refs) == 0 {
		return nil, err
	}
	var read []mo.VirtualMachine
	if err := property.DefaultCollector(client).Retrieve(ctx, refs, []string{"name", "config"}, &read); err != nil {
		return nil, fmt.Errorf("reading virtual machines: %w", err)
	}
	return describe(ctx, finder, tags.NewManager(session), read)
}

// references returns what is searched for; none where there is no such virtual machine, or folder.
func references(ctx context.Context, client *vim25.Client, finder *find.Finder, center *object.Datacenter, folder, uuid string) ([]types.ManagedObjectReference, error) {
	if uuid != "" {
		one, err := object.NewSearchIndex(client).FindByUuid(ctx, center, uuid, true, nil)
		if err != nil || one == nil {
			return nil, err
		}
		return []types.ManagedObjectReference{one.Reference()}, nil
	}
	path := strings.Join([]string{center.InventoryPath, "vm", strings.Trim(folder, "/"), "*"}, "/")
	listed, err := finder.VirtualMachineList(ctx, strings.ReplaceAll(path, "//", "/"))
	if missing := (*find.NotFoundError)(nil); errors.As(err, &missing) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing the virtual machines %s: %w", path, err)
	}
	refs := make([]types.ManagedObjectReference, 0, len(listed))
	for _, one := range listed {
		refs = append(refs, one.Reference())
	}
	return refs, nil
}

func describe(ctx context.Context, finder *find.Finder, manager *tags.Manager, read []mo.VirtualMachine) ([]found, error) {
	var all []found
	categories := map[string]string{}
	for _, one := range read {
		if one.Config == nil { // it is being made, or its host is away
			continue
		}
		place, err := finder.Element(ctx, one.Reference())
		if err != nil {
			return nil, fmt.Errorf("looking for the path of %s: %w", one.Name, err)
		}
		attached, err := manager.GetAttachedTags(ctx, one.Reference())
		if err != nil {
			return nil, fmt.Errorf("reading the tags of %s: %w", one.Name, err)
		}
		described := found{
			Name: one.Name, Path: place.Path, UUID: one.Config.Uuid, Annotation: one.Config.Annotation, Template: one.Config.Template,
			NumCPUs: one.Config.Hardware.NumCPU, MemoryMiB: one.Config.Hardware.MemoryMB, Tags: map[string]string{},
		}
		for _, tag := range attached {
			if categories[tag.CategoryID] == "" {
				category, err := manager.GetCategory(ctx, tag.CategoryID)
				if err != nil {
					return nil, fmt.Errorf("reading the category of the tag %s: %w", tag.Name, err)
				}
				categories[tag.CategoryID] = category.Name
			}
			described.Tags[tag.ID] = categories[tag.CategoryID] + "/" + tag.Name
		}
		if one.Config.CreateDate != nil {
			described.Created = one.Config.CreateDate.UTC().Format(time.RFC3339)
		}
		all = append(all, described)
	}
	return all, nil
}
