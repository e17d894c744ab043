package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/hashicorp/terraform-plugin-sdk/helper/schema"
	"github.com/vmware/govmomi/property"
	"github.com/vmware/govmomi/vapi/tags"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

// workspace finds what a virtual machine of an OpenShift cluster is made with: networks by their names, among those of the compute cluster that a
// resource pool is in, and the cluster's tag, where there is one.
func workspace(v *vcenter) *schema.Resource {
	text := &schema.Schema{Type: schema.TypeString}
	return &schema.Resource{
		Schema: map[string]*schema.Schema{
			"resource_pool_id": {Type: schema.TypeString, Required: true},
			"networks":         {Type: schema.TypeList, Required: true, Elem: text},
			// the name of the tag, of the category openshift-NAME
			"cluster":     {Type: schema.TypeString, Required: true},
			"network_ids": {Type: schema.TypeList, Computed: true, Elem: text},
			// none or one
			"tag_ids": {Type: schema.TypeList, Computed: true, Elem: text},
		},
		Read: func(d *schema.ResourceData, _ any) error {
			ctx, cancel := context.WithTimeout(context.Background(), timeout)
			defer cancel()
			client, session, err := v.clients()
			if err != nil {
				return err
			}
			pool := types.ManagedObjectReference{Type: "ResourcePool", Value: d.Get("resource_pool_id").(string)}
			networks, err := networksOf(ctx, property.DefaultCollector(client), pool, d.Get("networks").([]any))
			if err != nil {
				return err
			}
			attached, err := clusterTag(ctx, tags.NewManager(session), d.Get("cluster").(string))
			if err != nil {
				return err
			}
			d.SetId(pool.Value)
			return errors.Join(d.Set("network_ids", networks), d.Set("tag_ids", attached))
		},
	}
}

// networksOf returns the IDs of networks of a pool's compute cluster, by their names.
func networksOf(ctx context.Context, collector *property.Collector, pool types.ManagedObjectReference, names []any) ([]string, error) {
	var owned mo.ResourcePool
	if err := collector.RetrieveOne(ctx, pool, []string{"owner"}, &owned); err != nil {
		return nil, fmt.Errorf("looking for the compute cluster of the resource pool %s: %w", pool.Value, err)
	}
	var cluster mo.ComputeResource
	if err := collector.RetrieveOne(ctx, owned.Owner, []string{"name", "network"}, &cluster); err != nil {
		return nil, fmt.Errorf("reading the networks of the compute cluster %s: %w", owned.Owner.Value, err)
	}
	var networks []mo.Network
	if len(cluster.Network) > 0 {
		if err := collector.Retrieve(ctx, cluster.Network, []string{"name"}, &networks); err != nil {
			return nil, fmt.Errorf("reading the names of the networks of %s: %w", cluster.Name, err)
		}
	}
	var found []string
	for _, name := range names {
		id := ""
		for _, network := range networks {
			if network.Name == name && id == "" {
				id = network.Self.Value
			}
		}
		if id == "" {
			return nil, fmt.Errorf("unable to get network for %q: the compute cluster %s has none of this name", name, cluster.Name)
		}
		found = append(found, id)
	}
	return found, nil
}

// clusterTag returns the ID of a cluster's tag; nothing where there is none, as the installer's make only for what it has made itself.
func clusterTag(ctx context.Context, manager *tags.Manager, cluster string) ([]string, error) {
	listed, err := manager.GetTagsForCategory(ctx, "openshift-"+cluster)
	if err != nil && strings.HasSuffix(err.Error(), http.StatusText(http.StatusNotFound)) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the tags of the category openshift-%s: %w", cluster, err)
	}
	for _, tag := range listed {
		if tag.Name == cluster {
			return []string{tag.ID}, nil
		}
	}
	return nil, nil
}
