//go:build e2e_openstack

package e2eopenstack_test

import (
	"context"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

const (
	// clusterID is the name prefix of the installer's objects.
	clusterID = "demo-x7k2p"
	tag       = "openshiftClusterID=" + clusterID

	apiAddress, ingressAddress = "10.0.0.5", "10.0.0.7"
)

// installed is what OpenShift's installer creates in a cloud.
type installed struct {
	network, subnet, subnet6, securityGroup, image string
	// floating is an external address.
	floating string
}

// install creates a network with subnets of both families and a router to the external network, ports that reserve the
// addresses of the API and ingress, a security group and an image.
func install(ctx context.Context, c *cloud) *installed {
	GinkgoHelper()
	i := &installed{}
	i.network = c.make(ctx, network, "/v2.0/networks", "network", map[string]any{"name": clusterID + "-openshift"})
	i.subnet = c.make(ctx, network, "/v2.0/subnets", "subnet", map[string]any{
		"name": clusterID + "-nodes", "network_id": i.network, "ip_version": 4, "cidr": "10.0.0.0/16",
		"allocation_pools": []any{map[string]any{"start": "10.0.0.10", "end": "10.0.255.254"}},
	})
	i.subnet6 = c.make(ctx, network, "/v2.0/subnets", "subnet", map[string]any{
		"name": clusterID + "-nodes-v6", "network_id": i.network, "ip_version": 6, "cidr": "fd2e:6f44:5dd8::/64",
		"ipv6_ra_mode": "dhcpv6-stateful", "ipv6_address_mode": "dhcpv6-stateful",
	})
	i.securityGroup = c.make(ctx, network, "/v2.0/security-groups", "security_group",
		map[string]any{"name": clusterID + "-worker"})
	for _, path := range []string{
		"networks/" + i.network, "subnets/" + i.subnet, "security-groups/" + i.securityGroup,
	} {
		c.do(ctx, http.MethodPut, network, "/v2.0/"+path+"/tags", map[string]any{"tags": []string{tag}}, nil)
	}
	for name, address := range map[string]string{"api": apiAddress, "ingress": ingressAddress} {
		c.make(ctx, network, "/v2.0/ports", "port", map[string]any{
			"name": clusterID + "-" + name + "-port", "network_id": i.network,
			"fixed_ips": []any{map[string]any{"subnet_id": i.subnet, "ip_address": address}},
		})
	}
	i.reachOutside(ctx, c)
	i.makeImage(ctx, c)
	return i
}

// reachOutside creates a router, and an unused floating IP.
func (i *installed) reachOutside(ctx context.Context, c *cloud) {
	GinkgoHelper()
	var outside struct {
		Networks []struct{ ID string }
	}
	c.do(ctx, http.MethodGet, network, "/v2.0/networks?router%3Aexternal=true", nil, &outside)
	Expect(outside.Networks).To(HaveLen(1))
	router := c.make(ctx, network, "/v2.0/routers", "router", map[string]any{
		"name":                  clusterID + "-external-router",
		"external_gateway_info": map[string]any{"network_id": outside.Networks[0].ID},
	})
	c.do(ctx, http.MethodPut, network, "/v2.0/routers/"+router+"/add_router_interface",
		map[string]any{"subnet_id": i.subnet}, nil)
	var made struct {
		FloatingIP struct {
			Address string `json:"floating_ip_address"`
		} `json:"floatingip"`
	}
	c.do(ctx, http.MethodPost, network, "/v2.0/floatingips",
		map[string]any{"floatingip": map[string]any{"floating_network_id": outside.Networks[0].ID}}, &made)
	i.floating = made.FloatingIP.Address
}

// makeImage creates an image without an operating system: no guest boots it.
func (i *installed) makeImage(ctx context.Context, c *cloud) {
	GinkgoHelper()
	var made struct{ ID string }
	c.do(ctx, http.MethodPost, image, "/v2/images",
		map[string]any{"name": clusterID + "-rhcos", "disk_format": "raw", "container_format": "bare"}, &made)
	i.image = made.ID
	c.do(ctx, http.MethodPut, image, "/v2/images/"+made.ID+"/file", make([]byte, 1<<20), nil)
}
