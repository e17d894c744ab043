package main

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"sync"
	"time"

	"github.com/hashicorp/terraform-plugin-sdk/v2/diag"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/validation"
	v3 "github.com/terraform-providers/terraform-provider-nutanix/client/v3"
	"github.com/terraform-providers/terraform-provider-nutanix/nutanix"
	"github.com/terraform-providers/terraform-provider-nutanix/utils"
)

// entity is what is shown of something that was found.
type entity map[string]any

// finders return what there is of a kind. A name narrows what is asked for; the caller looks at the names again.
var finders = map[string]func(client v3.Service, d *schema.ResourceData) ([]entity, error){
	"cluster": findClusters, "image": findImages, "subnet": findSubnets, "project": findProjects,
	"gpu": findGPUs, "category": findCategory, "virtual_machine": findMachines,
}

// asked caches search results by their arguments until the provider is configured again.
var asked sync.Map

type answer func() ([]entity, error)

// find returns the entities of a kind. Equal searches share one request, unless it fails.
func find(kind string, client v3.Service, d *schema.ResourceData) ([]entity, error) {
	key := fmt.Sprintf("%s %q %q", kind, d.Get("name"), d.Get("value"))
	search := func() ([]entity, error) { return finders[kind](client, d) }
	once, _ := asked.LoadOrStore(key, answer(sync.OnceValues(search)))
	found, err := once.(answer)()
	if err != nil {
		asked.Delete(key)
	}
	return found, err
}

// search is a data source that finds all of one kind, as JSON each. What is left out of its arguments, or empty, matches anything.
func search() *schema.Resource {
	var kinds []string
	for kind := range finders {
		kinds = append(kinds, kind)
	}
	optional := &schema.Schema{Type: schema.TypeString, Optional: true}
	return &schema.Resource{
		ReadContext: func(_ context.Context, d *schema.ResourceData, meta any) diag.Diagnostics {
			kind := d.Get("kind").(string)
			all, err := find(kind, meta.(*nutanix.Client).API.V3, d)
			if err != nil {
				return diag.Errorf("looking for a %s: %s", kind, err)
			}
			shown := []string{}
			for _, one := range all {
				if matches(d, one, "name") && matches(d, one, "uuid") && matches(d, one, "cluster_uuid") {
					raw, err := json.Marshal(one)
					if err != nil {
						return diag.FromErr(err)
					}
					shown = append(shown, string(raw))
				}
			}
			d.SetId("-") // nobody asks for it
			return diag.FromErr(d.Set("entities", shown))
		},
		Schema: map[string]*schema.Schema{
			"kind": {Type: schema.TypeString, Required: true, ValidateFunc: validation.StringInSlice(kinds, false)},
			"name": optional, "uuid": optional,
			"cluster_uuid": optional, // of GPUs, subnets and virtual machines
			"value":        optional, // of a category
			"entities":     {Type: schema.TypeList, Computed: true, Elem: &schema.Schema{Type: schema.TypeString}},
		},
	}
}

// matches reports whether something is as an argument has it.
func matches(d *schema.ResourceData, one entity, name string) bool {
	wanted := d.Get(name).(string)
	return wanted == "" || one[name] == wanted
}

// plain are names that mean themselves in a filter.
var plain = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// named returns a filter for a name, empty for all where the name could mean more than itself.
func named(d *schema.ResourceData, attribute string) string {
	if name := d.Get("name").(string); plain.MatchString(name) {
		return attribute + "==" + name
	}
	return ""
}

func findClusters(client v3.Service, _ *schema.ResourceData) ([]entity, error) {
	listed, err := client.ListAllCluster("")
	if err != nil {
		return nil, err
	}
	var found []entity
	for _, one := range listed.Entities {
		if one.Metadata == nil || one.Status == nil {
			continue
		}
		central := false
		if resources := one.Status.Resources; resources != nil && resources.Config != nil {
			for _, service := range utils.StringValueSlice(resources.Config.ServiceList) {
				central = central || service == "PRISM_CENTRAL"
			}
		}
		found = append(found, entity{"uuid": utils.StringValue(one.Metadata.UUID), "name": utils.StringValue(one.Status.Name), "prism_central": central})
	}
	return found, nil
}

func findImages(client v3.Service, d *schema.ResourceData) ([]entity, error) {
	listed, err := client.ListAllImage(named(d, "name"))
	if err != nil {
		return nil, err
	}
	var found []entity
	for _, one := range listed.Entities {
		if one.Metadata != nil && one.Spec != nil {
			found = append(found, entity{"uuid": utils.StringValue(one.Metadata.UUID), "name": utils.StringValue(one.Spec.Name)})
		}
	}
	return found, nil
}

func findSubnets(client v3.Service, d *schema.ResourceData) ([]entity, error) {
	listed, err := client.ListAllSubnet(named(d, "name"), nil)
	if err != nil {
		return nil, err
	}
	var found []entity
	for _, one := range listed.Entities {
		if one.Metadata == nil || one.Spec == nil {
			continue
		}
		shown := entity{"uuid": utils.StringValue(one.Metadata.UUID), "name": utils.StringValue(one.Spec.Name), "cluster_uuid": ""} // none for a VPC's
		if reference := one.Spec.ClusterReference; reference != nil {
			shown["cluster_uuid"] = utils.StringValue(reference.UUID)
		}
		found = append(found, shown)
	}
	return found, nil
}

func findProjects(client v3.Service, d *schema.ResourceData) ([]entity, error) {
	listed, err := client.ListAllProject(named(d, "name"))
	if err != nil {
		return nil, err
	}
	var found []entity
	for _, one := range listed.Entities {
		if one.Metadata != nil && one.Spec != nil {
			found = append(found, entity{"uuid": utils.StringValue(one.Metadata.UUID), "name": one.Spec.Name})
		}
	}
	return found, nil
}

// findGPUs returns the GPUs of all hosts that are not in use.
func findGPUs(client v3.Service, _ *schema.ResourceData) ([]entity, error) {
	listed, err := client.ListAllHost()
	if err != nil {
		return nil, err
	}
	var found []entity
	for _, host := range listed.Entities {
		if host == nil || host.Status == nil || host.Status.ClusterReference == nil || host.Status.Resources == nil {
			continue
		}
		for _, gpu := range host.Status.Resources.GPUList {
			if gpu != nil && gpu.Status == "UNUSED" {
				found = append(found, entity{
					"cluster_uuid": host.Status.ClusterReference.UUID, "name": gpu.Name, "device_id": utils.Int64Value(gpu.DeviceID), "mode": gpu.Mode, "vendor": gpu.Vendor,
				})
			}
		}
	}
	return found, nil
}

// findCategory returns the category of the name and the value, if it is there.
func findCategory(client v3.Service, d *schema.ResourceData) ([]entity, error) {
	name, value := d.Get("name").(string), d.Get("value").(string)
	there, err := hasCategory(&v3.Client{V3: client}, name, value)
	if err != nil || !there {
		return nil, err
	}
	return []entity{{"name": name, "value": value}}, nil
}

func findMachines(client v3.Service, d *schema.ResourceData) ([]entity, error) {
	listed, err := client.ListAllVM(named(d, "vm_name"))
	if err != nil {
		return nil, err
	}
	var found []entity
	for _, one := range listed.Entities {
		if one.Metadata == nil || one.Spec == nil || one.Status == nil {
			continue
		}
		shown := entity{
			"uuid": utils.StringValue(one.Metadata.UUID), "name": utils.StringValue(one.Spec.Name), "description": utils.StringValue(one.Spec.Description),
			"state": utils.StringValue(one.Status.State), "categories": one.Metadata.Categories, "created": "", "cluster_uuid": "",
			"sockets": 0, "vcpus_per_socket": 0, "memory_mib": 0,
		}
		if created := one.Metadata.CreationTime; created != nil {
			shown["created"] = created.UTC().Format(time.RFC3339)
		}
		if reference := one.Spec.ClusterReference; reference != nil {
			shown["cluster_uuid"] = utils.StringValue(reference.UUID)
		}
		if resources := one.Spec.Resources; resources != nil {
			shown["sockets"], shown["vcpus_per_socket"] = utils.Int64Value(resources.NumSockets), utils.Int64Value(resources.NumVcpusPerSocket)
			shown["memory_mib"] = utils.Int64Value(resources.MemorySizeMib)
		}
		found = append(found, shown)
	}
	return found, nil
}
