package main

import (
	"context"
	"maps"

	"github.com/hashicorp/terraform-plugin-sdk/v2/diag"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
	"github.com/terraform-provider-openstack/terraform-provider-openstack/openstack"
)

// found are the lists that a search returns, by their names.
type found map[string][]string

// finder searches by a data source's arguments.
type finder func(config *openstack.Config, d *schema.ResourceData) (found, error)

// Arguments of searches. What is left out, or empty, matches anything.
var (
	filter       = texts("name", "description", "project_id", "tags", "tags_any", "not_tags", "not_tags_any")
	subnetFilter = merged(filter, texts("subnet_id", "network_id", "gateway_ip", "cidr", "ipv6_address_mode", "ipv6_ra_mode"),
		map[string]*schema.Schema{"ip_version": {Type: schema.TypeInt, Optional: true}})
	networkFilter = merged(filter, texts("network_id"))
	groupFilter   = merged(filter, texts("secgroup_id"))
	named         = map[string]*schema.Schema{
		"name": {Type: schema.TypeString, Optional: true},
		// a part of what there is to be
		"metadata": {Type: schema.TypeMap, Optional: true, Elem: &schema.Schema{Type: schema.TypeString}},
	}
)

func texts(names ...string) map[string]*schema.Schema {
	arguments := map[string]*schema.Schema{}
	for _, name := range names {
		arguments[name] = &schema.Schema{Type: schema.TypeString, Optional: true}
	}
	return arguments
}

func merged(parts ...map[string]*schema.Schema) map[string]*schema.Schema {
	all := map[string]*schema.Schema{}
	for _, part := range parts {
		maps.Copy(all, part)
	}
	return all
}

// search makes a data source of a finder, with its arguments and the lists that it returns.
func search(find finder, arguments map[string]*schema.Schema, answers ...string) *schema.Resource {
	fields := maps.Clone(arguments)
	for _, answer := range answers {
		fields[answer] = &schema.Schema{Type: schema.TypeList, Computed: true, Elem: &schema.Schema{Type: schema.TypeString}}
	}
	return &schema.Resource{Schema: fields, ReadContext: func(_ context.Context, d *schema.ResourceData, meta any) diag.Diagnostics {
		lists, err := find(meta.(*openstack.Config), d)
		if err != nil {
			return diag.FromErr(err)
		}
		for _, answer := range answers {
			if err := d.Set(answer, lists[answer]); err != nil {
				return diag.FromErr(err)
			}
		}
		d.SetId("-") // nobody asks for it
		return nil
	}}
}

func text(d *schema.ResourceData, name string) string { return d.Get(name).(string) }

// isNamed reports whether what has a name and metadata is what is searched for.
func isNamed(d *schema.ResourceData, name string, metadata map[string]string) bool {
	for key, value := range d.Get("metadata").(map[string]any) {
		if given, there := metadata[key]; !there || given != value {
			return false
		}
	}
	return text(d, "name") == "" || name == text(d, "name")
}
