package main

import (
	"context"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/hashicorp/terraform-plugin-sdk/v2/diag"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
	v3 "github.com/terraform-providers/terraform-provider-nutanix/client/v3"
	"github.com/terraform-providers/terraform-provider-nutanix/nutanix"
	"github.com/terraform-providers/terraform-provider-nutanix/utils"
)

// uuid is what Prism Central refers to everything by. A module writes what is missing in its place.
var uuid = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// refusal is the error of a request that Prism Central refuses.
var refusal = regexp.MustCompile(`^error: \{\s*(?:"api_version": "[^"]*",\s*)?"code": 4\d\d,`)

// onceAllIsThere creates a virtual machine unless something that it names is missing.
func onceAllIsThere(create schema.ReadContextFunc) schema.CreateContextFunc {
	return func(ctx context.Context, d *schema.ResourceData, meta any) diag.Diagnostics {
		var found diag.Diagnostics
		for _, reference := range references(d) {
			if !uuid.MatchString(reference) {
				found = append(found, diag.Errorf("the virtual machine %s is not created: %s", d.Get("name"), reference)...)
			}
		}
		client := meta.(*nutanix.Client).API
		for _, one := range d.Get("categories").(*schema.Set).List() {
			category := one.(map[string]any)
			there, err := hasCategory(client, category["name"].(string), category["value"].(string))
			switch {
			case err != nil:
				return diag.FromErr(err)
			case !there:
				found = append(found, diag.Errorf("the virtual machine %s is not created: there is no category %s with the value %s",
					d.Get("name"), category["name"], category["value"])...)
			}
		}
		if len(found) > 0 {
			return found
		}
		found = create(ctx, d, meta)
		for i := range found {
			if d.Id() == "" && refusal.MatchString(found[i].Summary) { // unlike a task that fails, or a response that is lost
				found[i].Summary = fmt.Sprintf("the virtual machine %s is not created: it is refused: %s", d.Get("name"), found[i].Summary)
			}
		}
		return found
	}
}

// withHypervisor reads the type of the hypervisor too, once.
func withHypervisor(read schema.ReadContextFunc) schema.ReadContextFunc {
	return func(ctx context.Context, d *schema.ResourceData, meta any) diag.Diagnostics {
		found := read(ctx, d, meta)
		if found.HasError() || d.Id() == "" || d.Get("hypervisor_type").(string) != "" {
			return found
		}
		machine, err := meta.(*nutanix.Client).API.V3.GetVM(d.Id())
		if err != nil || machine.Status == nil || machine.Status.Resources == nil {
			return found // the next read has it
		}
		return append(found, diag.FromErr(d.Set("hypervisor_type", utils.StringValue(machine.Status.Resources.HypervisorType)))...)
	}
}

// references returns what stands for objects that a virtual machine is made of. GPUs have no reference: their vendor has what is missing.
func references(d *schema.ResourceData) []string {
	all := []string{d.Get("cluster_uuid").(string)}
	for _, one := range d.Get("nic_list").([]any) {
		all = append(all, one.(map[string]any)["subnet_uuid"].(string))
	}
	for _, one := range d.Get("disk_list").([]any) {
		if source := one.(map[string]any)["data_source_reference"].(map[string]any); len(source) > 0 {
			all = append(all, fmt.Sprint(source["uuid"]))
		}
	}
	if project := d.Get("project_reference").(map[string]any); len(project) > 0 {
		all = append(all, fmt.Sprint(project["uuid"]))
	}
	for _, one := range d.Get("gpu_list").([]any) {
		if vendor := one.(map[string]any)["vendor"].(string); strings.HasPrefix(vendor, "no unused GPU ") {
			all = append(all, vendor)
		}
	}
	return all
}

// hasCategory reports whether there is a category with a value.
func hasCategory(client *v3.Client, name, value string) (bool, error) {
	_, err := client.V3.GetCategoryValue(url.PathEscape(name), url.PathEscape(value))
	if err == nil {
		return true, nil
	}
	if text := err.Error(); strings.Contains(text, "ENTITY_NOT_FOUND") || strings.Contains(text, `"code": 404`) {
		return false, nil
	}
	return false, fmt.Errorf("looking for the category %s with the value %s: %w", name, value, err)
}
