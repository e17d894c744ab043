// Package openstack simulates an OpenStack cloud: the parts of Keystone, Nova, Neutron, Glance and Cinder that a
// provider needs to create servers, at one address. It rejects what they reject. Tests inspect it as an administrator
// would.
package openstack

import (
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/machine-iac/machine-iac-operator/test/calls"
)

const (
	// CloudName is the name of the cloud in the clouds.yaml.
	CloudName = "openstack"
	// Username and Password are the default login.
	Username = "worker"
	Password = "hunter22-of-openstack"
	// Cluster is a cluster with a subnet, security group, image and ports, as OpenShift's installer creates them.
	Cluster = "demo-x7k2p"
	// FloatingIP is an address that a port may have.
	FloatingIP = "203.0.113.7"
	// OtherFlavor differs from most servers' flavor.
	OtherFlavor = "m1.large"
	// APIAddress is reserved for the cluster's API by a port.
	APIAddress = "10.0.0.5"
	// IngressAddress is reserved for ingress by a port.
	IngressAddress = "10.0.0.7"
)

type Cloud struct {
	// Calls counts the requests.
	Calls calls.Log
	// read has the paths that were read since they were created or deleted.
	read sync.Map

	services *services
	server   *httptest.Server
}

func Start() *Cloud {
	s := newServices()
	c := &Cloud{services: s}
	c.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.Calls.Note(c.callOf(r))
		s.receive(w, r)
	}))
	c.server.Config.ErrorLog = log.New(io.Discard, "", 0) // killed clients
	c.server.StartTLS()
	s.address = c.server.URL
	s.seed()
	return c
}

var anyID = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{32}`)

// made are paths of what clients create, and wait for.
var made = regexp.MustCompile(`/(servers|ports|trunks|volumes)/[^/]+$`)

// callOf names a request for the log. The first read of something that was created or deleted waits for that.
func (c *Cloud) callOf(r *http.Request) string {
	name := r.Method + " " + anyID.ReplaceAllString(r.URL.Path, "ID")
	switch {
	case strings.HasPrefix(r.URL.Path, "/identity/"):
		return calls.Login + name
	case r.Method == http.MethodDelete:
		c.read.Delete(r.URL.Path)
	case r.Method == http.MethodGet && made.MatchString(r.URL.Path):
		if _, again := c.read.LoadOrStore(r.URL.Path, true); !again {
			return calls.Poll + name
		}
	}
	return name
}

func (c *Cloud) Close() {
	c.services.clear()
	c.server.Close()
}

// seed creates what exists before any Machine.
func (s *services) seed() {
	tags := []any{"openshiftClusterID=" + Cluster}
	network := s.networks.add(object{
		"name": Cluster + "-openshift", "status": "ACTIVE", "admin_state_up": true, "tags": tags,
		"project_id": project, "shared": true,
	})
	other := s.networks.add(object{
		"name": "other", "status": "ACTIVE", "admin_state_up": true, "project_id": project, "shared": true,
	})
	subnet := s.subnets.add(object{
		"name": Cluster + "-nodes", "network_id": network["id"], "prefix": "10.0.0.",
		"cidr": "10.0.0.0/16", "tags": tags,
	})
	s.subnets.add(object{"name": Cluster + "-nodes-v6", "network_id": network["id"], "prefix": "fd2e:6f44:5dd8::",
		"cidr": "fd2e:6f44:5dd8::/64", "ip_version": 6})
	s.subnets.add(object{"name": Cluster + "-nodes", "network_id": other["id"],
		"prefix": "10.9.0.", "cidr": "10.9.0.0/16"})
	s.groups.add(object{"name": "default"})
	s.groups.add(object{"name": Cluster + "-worker", "tags": tags})
	// visible to administrators
	s.groups.add(object{"name": Cluster + "-worker", "project_id": "another", "shared": true})
	for name, address := range map[string]string{"api": APIAddress, "ingress": IngressAddress} {
		s.ports.add(object{"name": Cluster + "-" + name + "-port", "network_id": network["id"], "device_id": "",
			"fixed_ips": []any{map[string]any{"subnet_id": subnet["id"], "ip_address": address}}})
	}
	s.floatingIPs.add(object{"floating_ip_address": FloatingIP, "status": "DOWN"})
	s.flavors.add(object{"name": "m1.xlarge", "vcpus": 8, "ram": 16384, "disk": 160})
	s.flavors.add(object{"name": OtherFlavor, "vcpus": 4, "ram": 8192, "disk": 80})
	s.images.add(object{"name": Cluster + "-rhcos", "status": "active"})
}

// CloudsYAML returns the clouds.yaml that the cloud credential operator would write.
func (c *Cloud) CloudsYAML() string {
	return c.CloudsYAMLOf(Login{Cloud: CloudName, Username: Username, Password: Password, Project: "openshift"})
}

// CloudsYAMLOf returns a clouds.yaml with several logins.
func (c *Cloud) CloudsYAMLOf(logins ...Login) string {
	text := "clouds:\n"
	for _, by := range logins {
		text += fmt.Sprintf(`  %s:
    auth:
      auth_url: %s/identity/v3
      username: %s
      password: %s
      project_name: %s
      user_domain_name: Default
      project_domain_name: Default
    region_name: %s
    identity_api_version: "3"
`, by.Cloud, c.server.URL, by.Username, by.Password, by.Project, region)
	}
	return text
}

// CACert is the authority of the cloud's certificate.
func (c *Cloud) CACert() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.server.Certificate().Raw}))
}

// Server is a server with its dependents.
type Server struct {
	ID, Name, Status, Flavor, Image, UserData, Zone string
	// Created is the creation time in the API.
	Created  string
	Metadata map[string]string
	Tags     []string
	// Group is the name of its server group.
	Group string
	// Devices are its block devices, as source to destination.
	Devices []string
	Ports   []Port
}

type Port struct {
	Name, Network, Description string
	Addresses                  []string
	// Others are its allowed address pairs.
	Others         []string
	SecurityGroups []string
	Tags           []string
	Trunk          bool
}

func (c *Cloud) Servers() []Server {
	c.services.mu.Lock()
	defer c.services.mu.Unlock()
	var found []Server
	for _, server := range c.services.servers.objects {
		found = append(found, c.services.look(server))
	}
	return found
}

// Server returns the server with a name, or nil.
func (c *Cloud) Server(name string) *Server {
	for _, server := range c.Servers() {
		if server.Name == name {
			return &server
		}
	}
	return nil
}

func (s *services) look(server object) Server {
	userData, _ := base64.StdEncoding.DecodeString(server.text("user_data"))
	found := Server{
		ID: server.text("id"), Name: server.text("name"), Status: server.text("status"),
		Flavor: s.flavors.get(server.text("flavorRef")).text("name"),
		Image:  s.images.get(server.text("imageRef")).text("name"), UserData: string(userData),
		Zone:    server.text("availability_zone"),
		Created: server.text("created"), Metadata: map[string]string{}, Tags: server.texts("tags"),
		Group: s.serverGroups.get(server.text("group")).text("name"),
	}
	metadata, _ := server["metadata"].(map[string]any)
	for key := range maps.Keys(metadata) {
		found.Metadata[key] = object(metadata).text(key)
	}
	for _, device := range server.objects("block_device_mapping_v2") {
		found.Devices = append(found.Devices, device.text("source_type")+" to "+device.text("destination_type"))
	}
	for _, network := range server.objects("networks") {
		if port := s.ports.get(network.text("port")); port != nil {
			found.Ports = append(found.Ports, s.lookAtPort(port))
		}
	}
	return found
}

func (s *services) lookAtPort(port object) Port {
	found := Port{
		Name: port.text("name"), Network: s.networks.get(port.text("network_id")).text("name"),
		Description: port.text("description"), Tags: port.texts("tags"),
		Trunk: slices.ContainsFunc(s.trunks.objects, func(trunk object) bool { return trunk["port_id"] == port["id"] }),
	}
	for _, fixed := range port.objects("fixed_ips") {
		found.Addresses = append(found.Addresses, fixed.text("ip_address"))
	}
	for _, pair := range port.objects("allowed_address_pairs") {
		found.Others = append(found.Others, pair.text("ip_address"))
	}
	for _, id := range port.texts("security_groups") {
		found.SecurityGroups = append(found.SecurityGroups, s.groups.get(id).text("name"))
	}
	slices.Sort(found.Others)
	return found
}

// Writes returns all requests except reads and logins, as method and path.
func (c *Cloud) Writes() []string {
	c.services.mu.Lock()
	defer c.services.mu.Unlock()
	return slices.Clone(c.services.writes)
}

// Count returns how many servers, ports, trunks, volumes and server groups exist, without the cluster's two ports.
func (c *Cloud) Count() map[string]int {
	c.services.mu.Lock()
	defer c.services.mu.Unlock()
	s := c.services
	return map[string]int{
		"servers": len(s.servers.objects), "ports": len(s.ports.objects) - 2, "trunks": len(s.trunks.objects),
		"volumes":       len(s.volumes.objects),
		"server groups": len(s.serverGroups.objects),
	}
}

// Delete deletes a server outside of the operator, and reports whether it existed.
func (c *Cloud) Delete(name string) bool {
	c.services.mu.Lock()
	defer c.services.mu.Unlock()
	for _, server := range c.services.servers.objects {
		if server["name"] == name {
			_ = c.services.removeServer(server) // it never fails
			c.services.servers.noteOutside(server)
			c.services.servers.drop(server.text("id"))
			return true
		}
	}
	return false
}

// AddFlavor adds a flavor, with memory in MiB.
func (c *Cloud) AddFlavor(name string, cpus, memory int, specs map[string]any) {
	c.services.mu.Lock()
	defer c.services.mu.Unlock()
	c.services.flavors.add(object{"name": name, "vcpus": cpus, "ram": memory, "disk": 80, "extra_specs": specs})
}

// RemoveSources removes flavors and images, and renames networks, subnets and security groups, which cannot be removed
// while a server uses them.
func (c *Cloud) RemoveSources() {
	c.services.mu.Lock()
	defer c.services.mu.Unlock()
	s := c.services
	s.flavors.objects, s.images.objects = nil, nil
	for _, kind := range []*collection{s.networks, s.subnets, s.groups} {
		for _, one := range kind.objects {
			one["name"] = "former " + one.text("name")
		}
	}
}

// Stop shuts a server down, and reports whether it exists.
func (c *Cloud) Stop(name string) bool { return c.setStatus(name, "SHUTOFF") }

// Break puts a server into the state ERROR, and reports whether it exists.
func (c *Cloud) Break(name string) bool { return c.setStatus(name, "ERROR") }

func (c *Cloud) setStatus(name, status string) bool {
	c.services.mu.Lock()
	defer c.services.mu.Unlock()
	for _, server := range c.services.servers.objects {
		if server["name"] == name {
			server["status"] = status
			return true
		}
	}
	return false
}

// ReplaceImage replaces the cluster's image by one with another name.
func (c *Cloud) ReplaceImage(name string) {
	c.services.mu.Lock()
	defer c.services.mu.Unlock()
	for len(c.services.images.objects) > 0 {
		c.services.images.drop(c.services.images.objects[0].text("id"))
	}
	c.services.images.add(object{"name": name, "status": "active"})
}
