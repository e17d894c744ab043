package openstack

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
)

var metadataKey = regexp.MustCompile(`^[-a-zA-Z0-9_:. ]{1,255}$`)

func (s *services) serveCompute() {
	s.flavors = &collection{one: "flavor", many: "flavors"}
	s.serverGroups = &collection{
		one: "server_group", many: "server_groups", made: func(r *http.Request, group object) error {
			group["members"], group["project_id"] = []any{}, projectOf(r)
			return nil
		}}
	s.servers = &collection{one: "server", many: "servers", made: s.makeServer,
		removed: s.removeServer, shown: s.showServer}
	s.handle("GET /compute/v2.1/flavors/detail", func(r *http.Request) (int, any, error) {
		return http.StatusOK, map[string]any{"flavors": s.flavors.search(r)}, nil
	})
	s.handle("GET /compute/v2.1/servers/detail", s.listServers)
	s.handle("GET /compute/v2.1/servers/{id}/{part}", func(r *http.Request) (int, any, error) {
		server := s.servers.seen(r)
		if server == nil {
			return 0, nil, notFound("Instance", r.PathValue("id"))
		}
		return http.StatusOK, map[string]any{r.PathValue("part"): server[r.PathValue("part")]}, nil
	})
	s.handle("GET /compute/v2.1/flavors/{id}/os-extra_specs", func(r *http.Request) (int, any, error) {
		specs := any(map[string]any{})
		if flavor := s.flavors.get(r.PathValue("id")); flavor != nil && flavor["extra_specs"] != nil {
			specs = flavor["extra_specs"]
		}
		return http.StatusOK, map[string]any{"extra_specs": specs}, nil
	})
	s.serve("/compute/v2.1/flavors", s.flavors)
	s.serve("/compute/v2.1/os-server-groups", s.serverGroups)
	s.serve("/compute/v2.1/servers", s.servers)
}

// listServers matches names as regular expressions, as Nova does.
func (s *services) listServers(r *http.Request) (int, any, error) {
	name, err := regexp.Compile(r.URL.Query().Get("name"))
	if err != nil {
		return 0, nil, badRequest(err.Error())
	}
	found := []object{}
	for _, server := range s.servers.objects {
		if maySee(r, server) && name.MatchString(server.text("name")) {
			found = append(found, s.showServer(server))
		}
	}
	return http.StatusOK, map[string]any{"servers": found}, nil
}

func (s *services) makeServer(r *http.Request, server object) error {
	if err := s.checkServer(r, server); err != nil {
		return err
	}
	server["id"] = string(uuid.NewUUID())
	for _, network := range server.objects("networks") {
		port := s.ports.get(network.text("port"))
		port["device_id"], port["device_owner"], port["status"], port["binding:host_id"] = server["id"],
			"compute:nova", "ACTIVE", "host-1"
	}
	for _, device := range server.objects("block_device_mapping_v2") {
		if volume := s.volumes.get(device.text("uuid")); volume != nil {
			volume["status"] = "in-use"
			volume["attachments"] = []any{
				map[string]any{"server_id": server["id"], "id": volume["id"],
					"volume_id": volume["id"], "device": "/dev/vdb"},
			}
		}
	}
	server["group"] = groupOf(server)
	for field, value := range map[string]any{
		"status": "BUILD", "created": time.Now().UTC().Format(time.RFC3339),
		"updated": time.Now().UTC().Format(time.RFC3339), "tenant_id": projectOf(r),
		"user_id": "worker", "tags": []any{}, "metadata": map[string]any{}, "availability_zone": "nova",
	} {
		if server[field] == nil || server[field] == "" {
			server[field] = value
		}
	}
	return nil
}

// groupOf returns the requested server group.
func groupOf(server object) string {
	hints, _ := server["os:scheduler_hints"].(map[string]any)
	group, _ := hints["group"].(string)
	return group
}

// serverGroupID matches what Nova accepts as the ID of a server group.
var serverGroupID = regexp.MustCompile(`^([0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12})?$`)

// checkServer rejects what Nova rejects.
func (s *services) checkServer(r *http.Request, server object) error {
	if s.flavors.get(server.text("flavorRef")) == nil {
		return badRequest("Flavor " + server.text("flavorRef") + " could not be found.")
	}
	minor, _ := strconv.Atoi(strings.TrimPrefix(r.Header.Get("X-OpenStack-Nova-API-Version"), "2."))
	if server["tags"] != nil && minor < 52 {
		return badRequest("Additional properties are not allowed ('tags' was unexpected)")
	}
	for _, tag := range server.texts("tags") {
		if len(tag) > 60 || strings.ContainsAny(tag, "/,") {
			return badRequest("Tag '" + tag + "' is invalid.")
		}
	}
	metadata, _ := server["metadata"].(map[string]any)
	for key := range metadata {
		if !metadataKey.MatchString(key) {
			return badRequest("Invalid input for field/attribute metadata: " + key)
		}
	}
	if group := groupOf(server); !serverGroupID.MatchString(group) {
		return badRequest("Invalid input for field/attribute group. Value: " + group + ". '" + group +
			"' is not a 'uuid'")
	}
	if _, err := base64.StdEncoding.DecodeString(server.text("user_data")); err != nil ||
		len(server.text("user_data")) > 65535 {
		return badRequest("User data is no base64, or too long.")
	}
	for _, network := range server.objects("networks") {
		port := s.ports.get(network.text("port"))
		if port == nil {
			return badRequest("Port id " + network.text("port") + " could not be found.")
		}
		if port.text("device_id") != "" {
			return conflict(fmt.Sprintf("Port %s is still in use.", port["id"]))
		}
	}
	return s.checkDisks(server)
}

func (s *services) checkDisks(server object) error {
	devices := server.objects("block_device_mapping_v2")
	if len(devices) == 0 && s.images.get(server.text("imageRef")) == nil {
		return badRequest("Image " + server.text("imageRef") + " could not be found.")
	}
	boots := len(devices) == 0
	for _, device := range devices {
		boots = boots || device["boot_index"] == float64(0)
		volume := s.volumes.get(device.text("uuid"))
		switch device["source_type"] {
		case "volume":
			if volume == nil || volume["status"] != "available" {
				return badRequest("Block Device Mapping is Invalid: failed to get volume " + device.text("uuid") + ".")
			}
		case "image":
			if s.images.get(device.text("uuid")) == nil {
				return badRequest("Image " + device.text("uuid") + " could not be found.")
			}
		}
	}
	if !boots {
		return badRequest("Block Device Mapping is Invalid: Boot sequence for the instance is not valid.")
	}
	return nil
}

// showServer returns a server as Nova does. A server becomes active after it was read once.
func (s *services) showServer(server object) object {
	shown := object{}
	for _, field := range []string{
		"id", "name", "status", "created", "updated", "tenant_id", "user_id", "metadata", "key_name", "tags",
	} {
		shown[field] = server[field]
	}
	shown["flavor"], shown["image"] = map[string]any{"id": server["flavorRef"]}, ""
	if image := server.text("imageRef"); image != "" {
		shown["image"] = map[string]any{"id": image}
	}
	shown["OS-EXT-AZ:availability_zone"] = server["availability_zone"]
	shown["security_groups"] = []any{map[string]any{"name": "default"}}
	addresses, attached := map[string][]any{}, []any{}
	for _, network := range server.objects("networks") {
		port := s.ports.get(network.text("port"))
		if port == nil {
			continue
		}
		name := s.networks.get(port.text("network_id")).text("name")
		for _, fixed := range port.objects("fixed_ips") {
			version := 4
			if strings.Contains(fixed.text("ip_address"), ":") {
				version = 6
			}
			addresses[name] = append(addresses[name], map[string]any{
				"addr": fixed["ip_address"], "version": version, "OS-EXT-IPS:type": "fixed",
				"OS-EXT-IPS-MAC:mac_addr": port["mac_address"],
			})
		}
	}
	for _, device := range server.objects("block_device_mapping_v2") {
		if device["source_type"] == "volume" {
			attached = append(attached, map[string]any{"id": device["uuid"]})
		}
	}
	shown["addresses"], shown["os-extended-volumes:volumes_attached"] = addresses, attached
	if server["status"] == "BUILD" {
		server["status"] = "ACTIVE"
	}
	return shown
}

// removeServer keeps the ports, and deletes volumes with delete_on_termination.
func (s *services) removeServer(server object) error {
	for _, network := range server.objects("networks") {
		if port := s.ports.get(network.text("port")); port != nil {
			port["device_id"], port["device_owner"], port["status"] = "", "", "DOWN"
		}
	}
	for _, device := range server.objects("block_device_mapping_v2") {
		volume := s.volumes.get(device.text("uuid"))
		if volume == nil {
			continue
		}
		volume["status"], volume["attachments"] = "available", []any{}
		if device["delete_on_termination"] == true {
			s.volumes.drop(device.text("uuid"))
		}
	}
	return nil
}
