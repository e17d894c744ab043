package stacks_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/engine/pulumi"
	"github.com/machine-iac/machine-iac-operator/test/long"
	"github.com/machine-iac/machine-iac-operator/test/openstack"
)

const (
	serverAddress = "openstack:index/computeInstanceV2:ComputeInstanceV2.this"
	portAddress   = "openstack:index/networkingPortV2:NetworkingPortV2.port0"

	// worker is what the example of the stack says, as the installer would.
	worker = `{"cloudName":"openstack","flavor":"m1.xlarge","image":"demo-x7k2p-rhcos",
		"networks":[{"subnets":[{"filter":{"name":"demo-x7k2p-nodes","tags":"openshiftClusterID=demo-x7k2p"}}]}],
		"securityGroups":[{"name":"demo-x7k2p-worker"}],"serverMetadata":{"Name":"demo-x7k2p-worker"},"tags":["team=red"]}`
)

// everything is what the example does not have.
const everything = `{"trunk":true,"serverGroupName":"demo-x7k2p-worker","floatingIP":"203.0.113.7","rootVolume":{"diskSize":100,"volumeType":"fast","availabilityZone":"cinder-1"},
	"networks":[{"subnets":[{"filter":{"name":"demo-x7k2p-nodes","tags":"openshiftClusterID=demo-x7k2p"}}]},{"filter":{"name":"other"},"noAllowedAddressPairs":true}]}`

// belongings are the resources beside the server and its first port, by what its providerSpec says.
func belongings(values string) []string {
	if values != everything {
		return []string{portAddress}
	}
	return []string{
		portAddress, ofOpenStack("networkingPortV2", "port1"), ofOpenStack("networkingTrunkV2", "trunk0"), ofOpenStack("networkingTrunkV2", "trunk1"),
		ofOpenStack("blockstorageVolumeV3", "disk0"), ofOpenStack("networkingFloatingipAssociateV2", "floating0"),
		ofOpenStack("computeServergroupSharedV2", "group0"),
	}
}

// ofOpenStack returns the address of a resource.
func ofOpenStack(kind, name string) string {
	return "openstack:index/" + kind + ":" + strings.ToUpper(kind[:1]) + kind[1:] + "." + name
}

// server is a Machine of the stack openstack, and the cloud that it is in.
type server struct {
	*instanceOfStack
	cloud *openstack.Cloud
	// made is what its providerSpec said when it was made, beside that of the example.
	made string
}

func newServer(t *testing.T, values string) *server {
	t.Helper()
	s := &server{instanceOfStack: newInstance(t, "openstack", "mirror", values), cloud: openstack.Start()}
	t.Cleanup(s.cloud.Close)
	s.credentials = map[string][]byte{"clouds.yaml": []byte(s.cloud.CloudsYAML()), "cacert": []byte(s.cloud.CACert())}
	return s
}

func (s *server) inspect() openstack.Server {
	s.t.Helper()
	server := s.cloud.Server(s.machine.Name)
	if server == nil {
		s.t.Fatal("there is no server of the Machine's name")
	}
	slices.Sort(server.Tags)
	for i := range server.Ports {
		slices.Sort(server.Ports[i].Tags)
	}
	return *server
}

func TestAServerFromCreateToDestroy(t *testing.T) {
	long.Test(t)
	t.Parallel()
	s := newServer(t, worker)
	s.create(s.given(`{}`))
	made := s.inspect()
	want := openstack.Server{
		ID: made.ID, Created: made.Created, Name: "worker-0", Status: "ACTIVE", Flavor: "m1.xlarge", Image: "demo-x7k2p-rhcos", UserData: userData, Zone: "nova", Tags: []string{"cluster-api-provider-openstack", "machines-" + clusterID, "team=red"},
		Metadata: map[string]string{"Name": "demo-x7k2p-worker", "openshiftClusterID": clusterID, "machine-iac.io_machine-uid": machineUID},
		Ports: []openstack.Port{{
			Name: "worker-0-0", Network: "demo-x7k2p-openshift", Description: "Machine machines/worker-0 " + machineUID, Addresses: made.Ports[0].Addresses,
			Others: []string{openstack.APIAddress, openstack.IngressAddress}, SecurityGroups: []string{"demo-x7k2p-worker"},
			Tags: []string{"cluster-api-provider-openstack", "machine-uid=" + machineUID, "machines-" + clusterID, "openshiftClusterID=" + clusterID, "team=red"},
		}},
	}
	if diff := cmp.Diff(want, made); diff != "" {
		t.Errorf("the server differs (-want +got):\n%s", diff)
	}
	wantOutputs := map[string]any{
		"provider_id": "openstack:///" + made.ID, "instance_id": made.ID, "instance_state": "active", "instance_type": "m1.xlarge", "region": "RegionOne", "zone": "nova",
		"addresses": []any{
			map[string]any{"type": "InternalIP", "address": made.Ports[0].Addresses[0]},
			map[string]any{"type": "Hostname", "address": "worker-0"}, map[string]any{"type": "InternalDNS", "address": "worker-0"},
		},
	}
	if diff := cmp.Diff(wantOutputs, s.outputs()); diff != "" {
		t.Errorf("outputs differ (-want +got):\n%s", diff)
	}
	if bytes.Contains(s.last(), []byte("hunter22")) {
		t.Error("the checkpoint shows user data, or the cloud's password")
	}
	s.wantPlan("unchanged", `{}`, engine.ActionNoOp)
	s.wantPlan("anotherCloud", `{"cloudsSecret":{"name":"c","namespace":"machines"}}`, engine.ActionNoOp)
	s.wantPlan("anotherFlavor", `{"flavor":"m1.small"}`, engine.ActionReplace)
	s.wantPlan("anotherPort", `{"networks":[{"noAllowedAddressPairs":true,"filter":{"name":"demo-x7k2p-openshift"}}]}`, engine.ActionReplace)
	for id, userData := range map[string]string{"otherUserData": "#cloud-config other", "noUserData": ""} {
		s.userData = userData
		s.wantPlan(id, `{}`, engine.ActionNoOp)
	}
	if !s.cloud.Stop("worker-0") {
		t.Fatal("the server was not there to be stopped")
	}
	if report := s.wantPlan("stopped", `{}`, engine.ActionNoOp); report.Outputs["instance_state"].Action != engine.ActionUpdate {
		t.Errorf("a server that was stopped changes the outputs %+v, want its state", report.Outputs)
	}
	s.destroy(s.given(`{}`))
	for what, count := range s.cloud.Count() {
		if count > 0 {
			t.Errorf("after the destroy %d %s are there", count, what)
		}
	}
}

// wantPlan plans, and wants this to become of the server, and nothing of what belongs to it.
func (s *server) wantPlan(id, changed string, want engine.Action) *engine.Report {
	s.t.Helper()
	report := s.plan(id, s.given(changed))
	changes := map[string]engine.Action{serverAddress: want}
	for _, address := range belongings(s.made) {
		changes[address] = engine.ActionNoOp
	}
	if diff := cmp.Diff(changes, changesOf(report)); diff != "" {
		s.t.Errorf("%s: the plan differs (-want +got):\n%s", id, diff)
	}
	return report
}

// TestAServerOutlivesWhatItWasMadeOf removes image, flavor, networks and groups.
func TestAServerOutlivesWhatItWasMadeOf(t *testing.T) {
	long.Test(t)
	t.Parallel()
	s := newServer(t, worker)
	s.made = everything
	s.create(s.given(everything))
	s.cloud.RemoveSources()
	s.wantPlan("unchanged", everything, engine.ActionNoOp)
}

func TestAMissingServerIsReportedAndDeletedWithItsPort(t *testing.T) {
	long.Test(t)
	t.Parallel()
	s := newServer(t, worker)
	s.create(s.given(`{}`))
	if !s.cloud.Delete("worker-0") {
		t.Fatal("the server was not there to be deleted")
	}
	report := s.plan("gone", s.given(`{}`))
	if gone := report.Missing(); len(gone) != 1 || gone[0].Address != serverAddress {
		t.Errorf("gone are %+v, want the server", gone)
	}
	s.destroy(s.given(`{}`))
	if left := s.cloud.Count()["ports"]; left != 0 {
		t.Errorf("%d ports are left", left)
	}
}

func TestAServerThatTheStateLacksIsAdoptedWithItsPort(t *testing.T) {
	long.Test(t)
	t.Parallel()
	s := newServer(t, worker)
	s.made = everything
	with := s.given(everything)
	before := s.empty(with)
	s.create(with)
	made := s.inspect()
	lookup, err := s.engine.RunSearch(t.Context(), engine.SearchLookup, s.run("look", with))
	if err != nil {
		t.Fatal(err)
	}
	found, err := pulumi.LookupResources(lookup)
	if err != nil || len(found) != 1+len(belongings(everything)) || !bytes.Contains(found[serverAddress], []byte(machineUID)) || !bytes.Contains(found[portAddress], []byte(machineUID)) {
		t.Fatalf("found is %s, %v, want the server and its port with the Machine's UID, and the rest", found, err)
	}
	adopted, err := pulumi.Adopt(before, lookup)
	if err != nil {
		t.Fatal(err)
	}
	s.set(adopted)
	s.must("continue", with, func(f *pulumi.Workspace) (*engine.Report, error) {
		report, err := f.Plan(t.Context())
		if err != nil || len(report.Creates())+len(report.Destroys()) != 0 {
			t.Fatalf("the plan is %+v, %v, want nothing made and nothing destroyed", report.Changes, err)
		}
		return f.ApplyPlan(t.Context())
	})
	if bytes.Contains(s.last(), []byte("hunter22")) {
		t.Error("the checkpoint shows user data")
	}
	s.wantPlan("unchanged", everything, engine.ActionNoOp)
	if again := s.inspect(); again.ID != made.ID {
		t.Errorf("the server is %s, want %s: it was made twice", again.ID, made.ID)
	}
	s.destroy(with)
	if left := s.cloud.Count(); left["servers"]+left["ports"]+left["trunks"]+left["volumes"] != 0 || left["server groups"] != 1 {
		t.Errorf("after the destroy there are %v", left)
	}
}

func TestALookupReportsThatThereIsNoServer(t *testing.T) {
	long.Test(t)
	t.Parallel()
	s := newServer(t, worker)
	if _, err := s.engine.RunSearch(t.Context(), engine.SearchLookup, s.run("look", s.given(`{}`))); err == nil || !s.absent(err) {
		t.Errorf("Look() = %v, want the words of module.yaml for what is not there", err)
	}
}

// TestALookupStopsWhereItIsUncertain has a server without the port that it was made with.
func TestALookupStopsWhereItIsUncertain(t *testing.T) {
	long.Test(t)
	t.Parallel()
	s := newServer(t, worker)
	s.create(s.given(`{}`))
	_, err := s.engine.RunSearch(t.Context(), engine.SearchLookup, s.run("look", s.given(`{"networks":[],"ports":[{"networkID":"n","nameSuffix":"other"}]}`)))
	if err == nil || s.absent(err) {
		t.Errorf("Look() = %v, want an error, and not that there is no server", err)
	}
}

func TestALookupStopsWhereThereAreTwo(t *testing.T) {
	long.Test(t)
	t.Parallel()
	s := newServer(t, worker)
	with := s.given(`{}`)
	nothing := s.empty(with)
	s.create(with)
	s.set(nothing) // OpenStack takes a second server of the name
	s.create(with)
	if made := len(s.cloud.Servers()); made != 2 {
		t.Fatalf("there are %d servers, want two", made)
	}
	_, err := s.engine.RunSearch(t.Context(), engine.SearchLookup, s.run("look", with))
	if err == nil || s.absent(err) || !strings.Contains(err.Error(), "singleOrNone") {
		t.Errorf("Look() = %v, want that there are two", err)
	}
}

func TestFieldsReachTheCloud(t *testing.T) {
	long.Test(t)
	t.Parallel()
	cases := map[string]struct {
		changed string
		want    func(*openstack.Server) bool
	}{
		"a root volume and other disks": {
			`{"rootVolume":{"diskSize":100,"volumeType":"fast"},"additionalBlockDevices":[{"name":"a","sizeGiB":1,"storage":{"type":"Volume"}},{"name":"b","sizeGiB":2,"storage":{"type":"Local"}}]}`,
			func(s *openstack.Server) bool {
				return strings.Join(s.Devices, ", ") == "volume to volume, volume to volume, blank to local" && s.Image == ""
			},
		},
		"a disk of the host beside the image's": {
			`{"additionalBlockDevices":[{"name":"b","sizeGiB":2,"storage":{"type":"Local"}}]}`,
			func(s *openstack.Server) bool {
				return strings.Join(s.Devices, ", ") == "image to local, blank to local" && s.Image == "demo-x7k2p-rhcos"
			},
		},
		"two networks, trunks, a server group, a floating address, and a root volume in a zone of its own": {
			everything,
			func(s *openstack.Server) bool {
				return len(s.Ports) == 2 && s.Ports[0].Trunk && s.Ports[1].Trunk && s.Ports[1].Network == "other" && s.Group == "demo-x7k2p-worker" && strings.Join(s.Devices, ", ") == "volume to volume"
			},
		},
		"more ports than four, one of them by its subnet": {
			`{"networks":[{"filter":{"name":"other"}},{"filter":{"name":"other"}},{"filter":{"name":"other"}},{"filter":{"name":"other"}},{"subnets":[{"filter":{"name":"demo-x7k2p-nodes","tags":"openshiftClusterID=demo-x7k2p"}}]}]}`,
			func(s *openstack.Server) bool {
				return len(s.Ports) == 5 && s.Ports[0].Network == "other" && s.Ports[4].Network == "demo-x7k2p-openshift"
			},
		},
		"two subnets of a network, and security groups that are looked for": {
			`{"networks":[{"filter":{"name":"demo-x7k2p-openshift"},"subnets":[{"filter":{"name":"demo-x7k2p-nodes"}},{"filter":{"name":"demo-x7k2p-nodes-v6"}}]}],"securityGroups":[{"name":"default"},{"name":"demo-x7k2p-worker"}]}`,
			func(s *openstack.Server) bool {
				return len(s.Ports) == 1 && len(s.Ports[0].Addresses) == 2 && len(s.Ports[0].SecurityGroups) == 2
			},
		},
		"a network without security, and no other addresses": {
			`{"networks":[{"filter":{"name":"other"},"portSecurity":false,"portTags":["net"]}],"availabilityZone":"az-2"}`,
			func(s *openstack.Server) bool {
				p := s.Ports[0]
				return p.Network == "other" && len(p.SecurityGroups)+len(p.Others) == 0 && len(p.Tags) == 6 && s.Zone == "az-2"
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, worker)
			s.create(s.given(tc.changed))
			if made := s.inspect(); !tc.want(&made) {
				t.Errorf("the server is %+v", made)
			}
		})
	}
}

func TestWhatIsNotFoundIsRefusedInWords(t *testing.T) {
	long.Test(t)
	t.Parallel()
	cases := map[string]struct{ changed, want string }{
		"an image":         {`{"image":"nowhere"}`, "Unable to find image with name nowhere"},
		"a network":        {`{"networks":[{"filter":{"name":"nowhere"}}]}`, "no single network is what networks[0] names"},
		"two subnets":      {`{"networks":[{"subnets":[{"filter":{"name":"demo-x7k2p-nodes"}}]}]}`, "no single subnet is what networks[0].subnets[0] names"},
		"a security group": {`{"securityGroups":[{"name":"nowhere"}]}`, "no security group is what securityGroups[0] names"},
		"a server group":   {`{"serverGroupID":"4a1c0e00-0c6b-4c70-9a39-1f8f4f6f5a01","serverGroupName":"other"}`, "Unable to find flavor with name Name of a 4a1c0e00-0c6b-4c70-9a39-1f8f4f6f5a01 server group does not match defined name other"},
	}
	s := newServer(t, worker)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s.set(nil)
			_, err := s.with("refused", s.given(tc.changed), func(f *pulumi.Workspace) (*engine.Report, error) { return f.Apply(t.Context()) })
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("the create returns %v, want %q in it", err, tc.want)
			}
			if len(s.cloud.Servers()) != 0 {
				t.Error("a server was made")
			}
		})
	}
}
