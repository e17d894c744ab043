package openstack

import (
	"fmt"
	"net/http"
	"slices"

	"k8s.io/apimachinery/pkg/util/uuid"
)

// serveNetwork serves Neutron's API: fixed networks, subnets and security groups, and ports and trunks that clients can
// create.
func (s *services) serveNetwork() {
	s.networks = &collection{one: "network", many: "networks"}
	s.subnets = &collection{one: "subnet", many: "subnets"}
	s.groups = &collection{one: "security_group", many: "security_groups"}
	s.floatingIPs = &collection{one: "floatingip", many: "floatingips"}
	s.ports = &collection{one: "port", many: "ports", made: s.makePort, removed: s.removePort}
	s.trunks = &collection{one: "trunk", many: "trunks", made: s.makeTrunk, removed: s.removeTrunk}
	for _, c := range []*collection{s.networks, s.subnets, s.ports, s.trunks, s.floatingIPs} {
		s.serve("/network/v2.0/"+c.many, c)
	}
	s.serve("/network/v2.0/security-groups", s.groups)
}

func (s *services) makePort(r *http.Request, port object) error {
	network := s.networks.get(port.text("network_id"))
	if network == nil {
		return badRequest(fmt.Sprintf("Invalid input for network_id. Reason: '%s' is not a known network.",
			port.text("network_id")))
	}
	secure := port["port_security_enabled"] != false
	if port["port_security_enabled"] == nil {
		port["port_security_enabled"] = true
	}
	if port["security_groups"] == nil && secure {
		port["security_groups"] = []any{s.groups.objects[0]["id"]}
	}
	for _, id := range port.texts("security_groups") {
		if s.groups.get(id) == nil {
			return badRequest(fmt.Sprintf(
				"Invalid input for security_groups. Reason: '%s' is not a known security group.", id))
		}
	}
	if !secure && len(list(port["security_groups"]))+len(list(port["allowed_address_pairs"])) > 0 {
		return conflict("Port Security must be enabled in order to have allowed address pairs or security groups on " +
			"a port.")
	}
	if err := s.addressPort(port, network); err != nil {
		return err
	}
	for field, value := range map[string]any{
		"id": string(uuid.NewUUID()), "status": "DOWN", "admin_state_up": true, "device_id": "", "device_owner": "",
		"project_id": projectOf(r),
		"tenant_id":  projectOf(r), "tags": []any{}, "binding:vnic_type": "normal", "binding:profile": map[string]any{},
		"allowed_address_pairs": []any{},
		"mac_address":           fmt.Sprintf("fa:16:3e:00:00:%02x", s.next()),
	} {
		if port[field] == nil {
			port[field] = value
		}
	}
	return nil
}

// addressPort gives a port the requested addresses, or one of the network's first subnet.
func (s *services) addressPort(port, network object) error {
	asked := port.objects("fixed_ips")
	if len(asked) == 0 {
		for _, subnet := range s.subnets.objects {
			if subnet["network_id"] == network["id"] {
				asked = []object{{"subnet_id": subnet["id"]}}
				break
			}
		}
	}
	fixed := []any{}
	for _, one := range asked {
		subnet := s.subnets.get(one.text("subnet_id"))
		if subnet == nil || subnet["network_id"] != network["id"] {
			return badRequest(fmt.Sprintf(
				"Invalid input for fixed_ips. Reason: '%s' is not a known subnet of the network.",
				one.text("subnet_id")))
		}
		address := one.text("ip_address")
		if address == "" {
			address = fmt.Sprintf("%s%d", subnet.text("prefix"), s.next())
		}
		fixed = append(fixed, map[string]any{"subnet_id": subnet["id"], "ip_address": address})
	}
	port["fixed_ips"] = fixed
	return nil
}

// next returns a number for an address that was never used.
func (s *services) next() int { return 20 + len(s.ports.objects) + s.removedPorts }

func (s *services) removePort(port object) error {
	for _, trunk := range s.trunks.objects {
		if trunk["port_id"] == port["id"] {
			return conflict(fmt.Sprintf("Port %s is currently a parent port for trunk %s.", port["id"], trunk["id"]))
		}
	}
	s.removedPorts++
	return nil
}

func (s *services) makeTrunk(r *http.Request, trunk object) error {
	parent := s.ports.get(trunk.text("port_id"))
	switch {
	case parent == nil:
		return notFound("Port", trunk.text("port_id"))
	case parent.text("device_id") != "":
		return conflict(fmt.Sprintf("Port %s is currently in use and is not eligible for use as a parent port.",
			parent["id"]))
	}
	if slices.ContainsFunc(s.trunks.objects, func(other object) bool { return other["port_id"] == parent["id"] }) {
		return conflict(fmt.Sprintf("Port %s is currently in use and is not eligible for use as a parent port.",
			parent["id"]))
	}
	trunk["status"], trunk["tags"], trunk["sub_ports"], trunk["project_id"], trunk["tenant_id"] = "ACTIVE", []any{},
		[]any{}, projectOf(r), projectOf(r)
	return nil
}

func (s *services) removeTrunk(trunk object) error {
	if parent := s.ports.get(trunk.text("port_id")); parent != nil && parent.text("device_id") != "" {
		return conflict(fmt.Sprintf("Trunk %s is currently in use.", trunk["id"]))
	}
	return nil
}
