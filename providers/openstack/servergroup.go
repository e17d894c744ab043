package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/gophercloud/gophercloud"
	"github.com/gophercloud/gophercloud/openstack/compute/v2/extensions/servergroups"
	"github.com/hashicorp/terraform-plugin-sdk/v2/diag"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
	"github.com/terraform-provider-openstack/terraform-provider-openstack/openstack"
)

// policyVersion is the first version of the Compute API that knows soft policies; later than 2.63 it has one policy in place of a list.
const policyVersion = "2.15"

// sharedServerGroup is a server group that Machines share. What a Machine owns of it is the choice alone, which is made once.
func sharedServerGroup() *schema.Resource {
	return &schema.Resource{
		Schema: map[string]*schema.Schema{
			"name":   {Type: schema.TypeString, Required: true, ForceNew: true},
			"policy": {Type: schema.TypeString, Required: true, ForceNew: true},
		},
		CreateContext: chooseServerGroup,
		ReadContext:   schema.NoopContext,
		DeleteContext: schema.NoopContext,
	}
}

func chooseServerGroup(_ context.Context, d *schema.ResourceData, meta any) diag.Diagnostics {
	if text(d, "name") == "" { // none is wanted
		d.SetId(absent)
		return nil
	}
	config := meta.(*openstack.Config)
	client, err := config.ComputeV2Client(config.Region)
	if err != nil {
		return diag.FromErr(err)
	}
	client.Microversion = policyVersion
	id, err := serverGroup(client, text(d, "name"), text(d, "policy"))
	if err != nil {
		return diag.FromErr(err)
	}
	d.SetId(id)
	return nil
}

// choosing serializes the creates of server groups by this process, which serves many Machines.
var choosing sync.Mutex

// settle is how long a new server group waits for those that other processes create at the same time.
const settle = time.Second

// serverGroup returns the server group of a name, and creates it if there is none. If another process creates one at the same
// time, all use the first by ID, and the others are deleted before they have members.
func serverGroup(client *gophercloud.ServiceClient, name, policy string) (string, error) {
	choosing.Lock()
	defer choosing.Unlock()
	ids, err := serverGroups(client, name)
	if err != nil || len(ids) > 0 {
		return first(ids), err
	}
	made, err := servergroups.Create(client, servergroups.CreateOpts{Name: name, Policies: []string{policy}}).Extract()
	if err != nil {
		return "", fmt.Errorf("making the server group %q: %w", name, err)
	}
	time.Sleep(settle)
	ids, err = serverGroups(client, name)
	if err != nil {
		return "", err
	}
	chosen := first(ids)
	if chosen == "" || chosen == made.ID {
		return made.ID, nil
	}
	if err := servergroups.Delete(client, made.ID).ExtractErr(); err != nil {
		return "", fmt.Errorf("deleting a second server group %q: %w", name, err)
	}
	return chosen, nil
}

// findServerGroups returns the server groups of an id or a name.
func findServerGroups(config *openstack.Config, d *schema.ResourceData) (found, error) {
	client, err := config.ComputeV2Client(config.Region)
	if err != nil {
		return nil, err
	}
	listed, err := all("server groups", servergroups.List(client, servergroups.ListOpts{}), servergroups.ExtractServerGroups)
	lists := found{"ids": {}, "names": {}}
	for _, group := range listed {
		if group.ID == text(d, "servergroup_id") || text(d, "name") != "" && group.Name == text(d, "name") {
			lists["ids"], lists["names"] = append(lists["ids"], group.ID), append(lists["names"], group.Name)
		}
	}
	return lists, err
}

func first(ids []string) string {
	if len(ids) == 0 {
		return ""
	}
	return slices.Min(ids)
}

func serverGroups(client *gophercloud.ServiceClient, name string) ([]string, error) {
	listed, err := all("server groups", servergroups.List(client, servergroups.ListOpts{}), servergroups.ExtractServerGroups)
	var ids []string
	for _, group := range listed {
		if group.Name == name {
			ids = append(ids, group.ID)
		}
	}
	return ids, err
}
