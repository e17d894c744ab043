package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud"
	"github.com/gophercloud/gophercloud/openstack/compute/v2/extensions/availabilityzones"
	"github.com/gophercloud/gophercloud/openstack/compute/v2/flavors"
	"github.com/gophercloud/gophercloud/openstack/compute/v2/servers"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
	"github.com/terraform-provider-openstack/terraform-provider-openstack/openstack"
)

// tagsVersion is the first version of the Compute API that shows the tags of servers. Later than 2.46 a flavor is no id any more.
const tagsVersion = "2.26"

// server is one as the API shows it.
type server struct {
	servers.Server
	availabilityzones.ServerAvailabilityZoneExt
}

// findServers returns the servers that a data source asks for, each as JSON too. A server that is asked for by its id has the name of its flavor.
func findServers(config *openstack.Config, d *schema.ResourceData) (found, error) {
	client, err := config.ComputeV2Client(config.Region)
	if err != nil {
		return nil, err
	}
	client.Microversion = tagsVersion
	listed, err := serversOf(client, d)
	lists := found{"ids": {}, "servers": {}}
	for _, one := range listed {
		if !isNamed(d, one.Name, one.Metadata) || strings.Contains(one.Status, "DELETED") {
			continue
		}
		shown, err := show(client, one, text(d, "instance_id") != "")
		if err != nil {
			return nil, err
		}
		lists["ids"], lists["servers"] = append(lists["ids"], one.ID), append(lists["servers"], shown)
	}
	return lists, err
}

func serversOf(client *gophercloud.ServiceClient, d *schema.ResourceData) ([]server, error) {
	if id := text(d, "instance_id"); id != "" {
		var one server
		err := servers.Get(client, id).ExtractInto(&one)
		if missing := (gophercloud.ErrDefault404{}); errors.As(err, &missing) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("looking at the server %s: %w", id, err)
		}
		return []server{one}, nil
	}
	opts := servers.ListOpts{}
	if name := text(d, "name"); name != "" {
		opts.Name = "^" + regexp.QuoteMeta(name) + "$" // the API takes a regular expression, in the dialect of its database
	}
	pages, err := servers.List(client, opts).AllPages()
	if err != nil {
		return nil, fmt.Errorf("listing servers: %w", err)
	}
	var listed []server
	if err := servers.ExtractServersInto(pages, &listed); err != nil {
		return nil, fmt.Errorf("reading the list of servers: %w", err)
	}
	return listed, nil
}

// show returns a server as JSON.
func show(client *gophercloud.ServiceClient, one server, withFlavor bool) (string, error) {
	shown := map[string]any{
		"id": one.ID, "name": one.Name, "created": one.Created.UTC().Format(time.RFC3339), "status": one.Status, "metadata": one.Metadata,
		"tags": []string{}, "key_name": one.KeyName, "availability_zone": one.AvailabilityZone, "image_id": "", "flavor_name": "",
	}
	if one.Tags != nil {
		shown["tags"] = *one.Tags
	}
	if id, there := one.Image["id"].(string); there {
		shown["image_id"] = id
	}
	if id, there := one.Flavor["id"].(string); there && withFlavor {
		flavor, err := flavors.Get(client, id).Extract()
		if err != nil {
			return "", fmt.Errorf("looking at the flavor of the server %s: %w", one.ID, err)
		}
		shown["flavor_name"] = flavor.Name
	}
	raw, err := json.Marshal(shown)
	return string(raw), err
}
