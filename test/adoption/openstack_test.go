package adoption

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-iac/machine-iac-operator/test/long"
	"github.com/machine-iac/machine-iac-operator/test/openstack"
)

// cloud tests the module openstack with a cloud and an API client that creates servers as OpenShift's actuator does.
type cloud struct {
	*world
	*openstack.Cloud
	client *openstack.Client
}

func newCloud(t *testing.T) *cloud {
	t.Helper()
	c := &cloud{world: newWorld(t, "openstack"), Cloud: openstack.Start()}
	t.Cleanup(c.Close)
	var err error
	if c.client, err = c.Login(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}

// id sends a request and returns the ID in the response.
func (c *cloud) id(method, path string, content any) string {
	c.t.Helper()
	id, err := c.client.ID(c.t.Context(), method, path, content)
	if err != nil {
		c.t.Fatal(err)
	}
	return id
}

// server creates a server with its dependents. fields contains metadata and tags.
func (c *cloud) server(name string, fields map[string]any) string {
	c.t.Helper()
	made, err := c.client.MakeServer(c.t.Context(), name, fields)
	if err != nil {
		c.t.Fatal(err)
	}
	return made
}

// machine renders a Machine as the installer writes it, with other fields.
func (c *cloud) machine(name string, fields map[string]any) {
	c.t.Helper()
	spec := map[string]any{
		"apiVersion": "machine.openshift.io/v1alpha1", "kind": "OpenstackProviderSpec",
		"cloudName":    openstack.CloudName,
		"cloudsSecret": map[string]any{"name": "openstack-cloud-credentials"}, "flavor": "m1.xlarge",
		"image": openstack.Cluster + "-rhcos",
		"trunk": true, "serverGroupName": openstack.Cluster + "-worker", "rootVolume": map[string]any{"diskSize": 100},
		"networks": []any{map[string]any{
			"filter": map[string]any{}, "subnets": []any{map[string]any{"filter": map[string]any{
				"name": openstack.Cluster + "-nodes", "tags": "openshiftClusterID=" + openstack.Cluster,
			}}}}},
		"securityGroups": []any{map[string]any{"filter": map[string]any{}, "name": openstack.Cluster + "-worker"}},
		"serverMetadata": map[string]any{
			"Name": openstack.Cluster + "-worker", "openshiftClusterID": openstack.Cluster,
		},
		"tags": []any{"openshiftClusterID=" + openstack.Cluster},
	}
	maps.Copy(spec, fields)
	c.render(machineOf(name, spec), openstack.Cluster,
		map[string][]byte{"clouds.yaml": []byte(c.CloudsYAML()), "cacert": []byte(c.CACert())}, nil)
}

func TestAServerIsAdoptedWithWhatBelongsToIt(t *testing.T) {
	long.Test(t)
	c := newCloud(t)
	server := c.server("worker-1", openstack.Of(openstack.Cluster))
	before, count, writes := c.Servers(), c.Count(), len(c.Writes())
	c.machine("worker-1", nil)
	c.adopt("openstack:///"+server, "")

	plan := c.plan()
	want := []string{
		`openstack_blockstorage_volume_v3.disk["root"] import`, "openstack_compute_instance_v2.this import",
		"openstack_compute_servergroup_shared_v2.shared[0] create",
		`openstack_networking_port_v2.interface["0"] import`, `openstack_networking_trunk_v2.interface["0"] import`,
		"terraform_data.made_with create",
	}
	if diff := cmp.Diff(want, changes(plan)); diff != "" {
		t.Errorf("the plan (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string(nil), warnings(plan)); diff != "" {
		t.Errorf("what differs (-want +got):\n%s", diff)
	}
	var providerID string
	output(t, plan, "provider_id", &providerID)
	if providerID != "openstack:///"+server {
		t.Errorf("the plan has the provider ID %s; want that of the server %s", providerID, server)
	}

	c.apply()
	if diff := cmp.Diff(before, c.Servers()); diff != "" {
		t.Errorf("the adoption has changed the server (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"POST /compute/v2.1/os-server-groups"}, c.Writes()[writes:]); diff != "" {
		t.Errorf("requests that are no reads (-want +got):\n%s", diff)
	}
	count["server groups"] = 1
	if diff := cmp.Diff(count, c.Count()); diff != "" {
		t.Errorf("the adoption has made or removed something (-before +after):\n%s", diff)
	}
	c.link()
	if left := changes(c.plan()); len(left) > 0 {
		t.Errorf("a plan after the adoption has changes %v", left)
	}
	c.destroy()
	if diff := cmp.Diff(map[string]int{"servers": 0, "ports": 0, "trunks": 0, "volumes": 0, "server groups": 1},
		c.Count()); diff != "" {
		t.Errorf("what the destroy has left (-want +got):\n%s", diff)
	}
}

func TestWhatDiffersOfAServerIsSaid(t *testing.T) {
	long.Test(t)
	c := newCloud(t)
	fields := openstack.Of(openstack.Cluster)
	fields["key_name"] = "old"
	server := c.server("worker-1", fields)
	c.machine("worker-1", map[string]any{
		"flavor": "m1.small", "keyName": "new", "availabilityZone": "zone-a",
		"serverMetadata": map[string]any{"team": "a"}, "tags": []any{"team=a"},
	})
	c.adopt("openstack://RegionOne/"+server, "")
	got := strings.Join(warnings(c.plan()), "\n")
	for _, want := range []string{
		"providerSpec.flavor: m1.small is requested, the server has m1.xlarge and keeps it.",
		`providerSpec.keyName: "new" is requested, the server has "old" and keeps it.`,
		"providerSpec.availabilityZone: zone-a is requested, the server has nova and keeps it.",
		`providerSpec.serverMetadata: {"team":"a"} is requested`,
		`providerSpec.tags: ["team=a"] are requested`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("want %s in\n%s", want, got)
		}
	}
}

func TestAServerOfOthersIsRefused(t *testing.T) {
	long.Test(t)
	c := newCloud(t)
	other := c.server("worker-1", map[string]any{"metadata": map[string]any{"openshiftClusterID": "other"}})
	tagged := c.server("worker-2", map[string]any{"tags": []any{"openshiftClusterID=other"}})
	bare := c.server("bare", nil)

	c.machine("worker-1", nil)
	c.adopt("openstack:///"+other, "")
	c.refuses("The server " + other + " belongs to the cluster other, and the Machine to the cluster demo-x7k2p.")
	c.adopt("", other)
	c.refuses("The server " + other + " belongs to the cluster other, and the Machine to the cluster demo-x7k2p.")
	c.adopt("openstack:///"+tagged, "")
	c.refuses("The server " + tagged +
		" has the tags openshiftClusterID=other, of another cluster than the Machine's, demo-x7k2p.")
	c.adopt("openstack:///"+bare, "")
	c.refuses("The server " + bare + " does not prove that it is the Machine's")

	c.adopt("openstack:///b7b4f0aa-0000-4000-8000-000000000000", "")
	_, err := c.tryPlan()
	if err == nil || !c.module.AdoptAbsent(err.Error()) {
		t.Errorf("adopting a server that is not there says %v; want module.yaml to know that for absence", err)
	}
}

func TestAServerThatLacksWhatIsRequestedIsRefused(t *testing.T) {
	long.Test(t)
	c := newCloud(t)
	server := c.server("worker-1", openstack.Of(openstack.Cluster))
	c.machine("worker-1", map[string]any{
		"additionalBlockDevices": []any{
			map[string]any{"name": "etcd", "sizeGiB": 10, "storage": map[string]any{"type": "Volume"}},
		},
	})
	c.adopt("openstack:///"+server, "")
	c.refuses("The server worker-1 (" + server + ") has 0 attached volumes of the name worker-1-etcd")

	network := c.id(http.MethodGet, "/network/v2.0/networks?name="+openstack.Cluster+"-openshift", nil)
	c.machine("worker-1", map[string]any{"ports": []any{map[string]any{"networkID": network, "nameSuffix": "storage"}}})
	c.refuses(`The server worker-1 (` + server +
		`) has the ports "worker-1-0"; of networks and ports of the providerSpec come worker-1-0, worker-1-storage, each once.`)

	c.machine("worker-1", map[string]any{"floatingIP": openstack.FloatingIP})
	c.refuses("floatingIP 203.0.113.7 is not that of the first port of the server worker-1")
	address := c.id(http.MethodGet, "/network/v2.0/floatingips?floating_ip_address="+openstack.FloatingIP, nil)
	port := c.id(http.MethodGet, "/network/v2.0/ports?name=worker-1-0", nil)
	c.id(http.MethodPut, "/network/v2.0/floatingips/"+address,
		map[string]any{"floatingip": map[string]any{"port_id": port}})
	if plan := changes(c.plan()); !slices.Contains(plan,
		"openstack_networking_floatingip_associate_v2.public[0] import") {
		t.Errorf("the plan imports %v; want the floating address too", plan)
	}
}

func TestServersAreListed(t *testing.T) {
	long.Test(t)
	c := newCloud(t)
	fields := openstack.Of(openstack.Cluster)
	fields["metadata"].(map[string]any)["machine-iac.io_machine-uid"] = "a-uid"
	first := c.server("worker-1", fields)
	second := c.server("worker-2", openstack.Of(openstack.Cluster))
	c.server("worker-3", map[string]any{"metadata": map[string]any{"openshiftClusterID": "other"}})
	c.server("worker-4", nil)
	c.machine("worker-9", nil)
	c.link(c.module.InventoryFiles()...)
	var found []listed
	output(t, c.plan(), "inventory", &found)
	for i := range found {
		if _, err := time.Parse(time.RFC3339, found[i].Created); err != nil {
			t.Error(err)
		}
		found[i].Created = ""
	}
	want := []listed{{"openstack:///" + first, "worker-1", "", "a-uid"}, {"openstack:///" + second, "worker-2", "", ""}}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("the inventory (-want +got):\n%s", diff)
	}
}
