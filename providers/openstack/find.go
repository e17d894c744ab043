package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gophercloud/gophercloud"
	"github.com/gophercloud/gophercloud/openstack/blockstorage/v3/volumes"
	"github.com/gophercloud/gophercloud/openstack/identity/v3/tokens"
	"github.com/gophercloud/gophercloud/openstack/networking/v2/extensions/layer3/floatingips"
	"github.com/gophercloud/gophercloud/openstack/networking/v2/extensions/security/groups"
	"github.com/gophercloud/gophercloud/openstack/networking/v2/extensions/trunks"
	"github.com/gophercloud/gophercloud/openstack/networking/v2/networks"
	"github.com/gophercloud/gophercloud/openstack/networking/v2/ports"
	"github.com/gophercloud/gophercloud/openstack/networking/v2/subnets"
	"github.com/gophercloud/gophercloud/pagination"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
	"github.com/terraform-provider-openstack/terraform-provider-openstack/openstack"
)

// all returns everything that a list has.
func all[T any](what string, pager pagination.Pager, extract func(pagination.Page) ([]T, error)) ([]T, error) {
	pages, err := pager.AllPages()
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", what, err)
	}
	listed, err := extract(pages)
	if err != nil {
		return nil, fmt.Errorf("reading the list of %s: %w", what, err)
	}
	return listed, nil
}

func findNetworks(config *openstack.Config, d *schema.ResourceData) (found, error) {
	client, err := config.NetworkingV2Client(config.Region)
	if err != nil {
		return nil, err
	}
	listed, err := all("networks", networks.List(client, networks.ListOpts{
		ID: text(d, "network_id"), Name: text(d, "name"), Description: text(d, "description"), ProjectID: text(d, "project_id"),
		Tags: text(d, "tags"), TagsAny: text(d, "tags_any"), NotTags: text(d, "not_tags"), NotTagsAny: text(d, "not_tags_any"),
	}), networks.ExtractNetworks)
	lists := found{"ids": {}}
	for _, network := range listed {
		lists["ids"] = append(lists["ids"], network.ID)
	}
	return lists, err
}

func findSubnets(config *openstack.Config, d *schema.ResourceData) (found, error) {
	client, err := config.NetworkingV2Client(config.Region)
	if err != nil {
		return nil, err
	}
	listed, err := all("subnets", subnets.List(client, subnets.ListOpts{
		ID: text(d, "subnet_id"), Name: text(d, "name"), Description: text(d, "description"), ProjectID: text(d, "project_id"),
		Tags: text(d, "tags"), TagsAny: text(d, "tags_any"), NotTags: text(d, "not_tags"), NotTagsAny: text(d, "not_tags_any"),
		NetworkID: text(d, "network_id"), GatewayIP: text(d, "gateway_ip"), CIDR: text(d, "cidr"), IPVersion: d.Get("ip_version").(int),
		IPv6AddressMode: text(d, "ipv6_address_mode"), IPv6RAMode: text(d, "ipv6_ra_mode"),
	}), subnets.ExtractSubnets)
	lists := found{"ids": {}, "network_ids": {}}
	for _, subnet := range listed {
		lists["ids"] = append(lists["ids"], subnet.ID)
		lists["network_ids"] = append(lists["network_ids"], subnet.NetworkID)
	}
	return lists, err
}

// findSecurityGroups returns those of the project that is logged in to, unless another is asked for: who may see other projects' has a namesake in each.
func findSecurityGroups(config *openstack.Config, d *schema.ResourceData) (found, error) {
	client, err := config.NetworkingV2Client(config.Region)
	if err != nil {
		return nil, err
	}
	project := text(d, "project_id")
	if project == "" && text(d, "secgroup_id") == "" {
		project = ownProject(client)
	}
	listed, err := all("security groups", groups.List(client, groups.ListOpts{
		ID: text(d, "secgroup_id"), Name: text(d, "name"), Description: text(d, "description"), ProjectID: project,
		Tags: text(d, "tags"), TagsAny: text(d, "tags_any"), NotTags: text(d, "not_tags"), NotTagsAny: text(d, "not_tags_any"),
	}), groups.ExtractGroups)
	lists := found{"ids": {}}
	for _, group := range listed {
		lists["ids"] = append(lists["ids"], group.ID)
	}
	return lists, err
}

// ownProject returns the id of the project that is logged in to, or "" where Keystone does not show it.
func ownProject(client *gophercloud.ServiceClient) string {
	result, ok := client.GetAuthResult().(interface {
		ExtractProject() (*tokens.Project, error)
	})
	if !ok {
		return ""
	}
	project, err := result.ExtractProject()
	if err != nil || project == nil {
		return ""
	}
	return project.ID
}

// findPorts returns the addresses of all ports that it finds as one list.
func findPorts(config *openstack.Config, d *schema.ResourceData) (found, error) {
	client, err := config.NetworkingV2Client(config.Region)
	if err != nil {
		return nil, err
	}
	listed, err := all("ports", ports.List(client, ports.ListOpts{Name: text(d, "name"), DeviceID: text(d, "device_id")}), ports.ExtractPorts)
	lists := found{"ids": {}, "names": {}, "addresses": {}}
	for _, port := range listed {
		if !strings.Contains(port.Description, text(d, "description_contains")) {
			continue
		}
		lists["ids"], lists["names"] = append(lists["ids"], port.ID), append(lists["names"], port.Name)
		for _, fixed := range port.FixedIPs {
			lists["addresses"] = append(lists["addresses"], fixed.IPAddress)
		}
	}
	return lists, err
}

func findFloatingIPs(config *openstack.Config, d *schema.ResourceData) (found, error) {
	client, err := config.NetworkingV2Client(config.Region)
	if err != nil || text(d, "address") == "" {
		return nil, err
	}
	listed, err := all("floating addresses", floatingips.List(client, floatingips.ListOpts{FloatingIP: text(d, "address")}), floatingips.ExtractFloatingIPs)
	lists := found{"ids": {}}
	for _, address := range listed {
		lists["ids"] = append(lists["ids"], address.ID)
	}
	return lists, err
}

func findTrunks(config *openstack.Config, d *schema.ResourceData) (found, error) {
	client, err := config.NetworkingV2Client(config.Region)
	if err != nil {
		return nil, err
	}
	listed, err := all("trunks", trunks.List(client, trunks.ListOpts{PortID: text(d, "port_id")}), trunks.ExtractTrunks)
	lists := found{"ids": {}}
	for _, trunk := range listed {
		lists["ids"] = append(lists["ids"], trunk.ID)
	}
	return lists, err
}

func findVolumes(config *openstack.Config, d *schema.ResourceData) (found, error) {
	client, err := config.BlockStorageV3Client(config.Region)
	if err != nil {
		return nil, err
	}
	listed, err := all("volumes", volumes.List(client, volumes.ListOpts{Name: text(d, "name")}), volumes.ExtractVolumes)
	lists := found{"ids": {}}
	for _, volume := range listed {
		if isNamed(d, volume.Name, volume.Metadata) && volume.Status != "deleting" && isAttached(volume, text(d, "attached_to")) {
			lists["ids"] = append(lists["ids"], volume.ID)
		}
	}
	return lists, err
}

// isAttached reports whether a volume is attached to a server; "" is any, or none.
func isAttached(volume volumes.Volume, server string) bool {
	return server == "" || slices.ContainsFunc(volume.Attachments, func(one volumes.Attachment) bool { return one.ServerID == server })
}
