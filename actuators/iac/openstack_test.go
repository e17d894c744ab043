package iac

import (
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/state"
	"github.com/machine-iac/machine-iac-operator/test/builder"
	"github.com/machine-iac/machine-iac-operator/test/long"
	"github.com/machine-iac/machine-iac-operator/test/openstack"
	"github.com/machine-iac/machine-iac-operator/test/shortdir"
)

const ignition = `{"ignition":{"version":"3.2.0"}}`

// cloud is OpenStack as it is played for tests, and a bench whose engines reach it.
type cloud struct {
	*bench
	*openstack.Cloud
	workDir string
}

func newCloud(t *testing.T) *cloud {
	t.Helper()
	long.Test(t)
	parallel(t)
	namespace, err := plane.Namespace(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c := &cloud{Cloud: openstack.Start(), workDir: shortdir.New(t), bench: &bench{
		t: t, client: plane.Client, namespace: namespace, clock: clocktesting.NewFakePassiveClock(time.Now()),
	}}
	t.Cleanup(c.Close)
	for name, content := range map[string]map[string]string{
		"openstack-cloud-credentials": {"clouds.yaml": c.CloudsYAML(), "clouds.conf": "[Global]", "cacert": c.CACert()},
		"worker-user-data":            {"userData": ignition},
	} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, StringData: content}
		if err := plane.Create(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
	}
	c.start(c.workDir, "owner-1")
	return c
}

// machine returns a Machine as the installer writes it, with what else mods say.
func (c *cloud) machine(mods ...func(map[string]any)) *machinev1beta1.Machine {
	spec := map[string]any{
		"apiVersion": "machine.openshift.io/v1alpha1", "kind": "OpenstackProviderSpec", "cloudName": openstack.CloudName,
		"cloudsSecret": map[string]any{"name": "openstack-cloud-credentials"}, "userDataSecret": map[string]any{"name": "worker-user-data"},
		"flavor": "m1.xlarge", "image": openstack.Cluster + "-rhcos", "trunk": true, "serverGroupName": openstack.Cluster + "-worker",
		"networks": []any{map[string]any{"filter": map[string]any{}, "subnets": []any{map[string]any{"filter": map[string]any{
			"name": openstack.Cluster + "-nodes", "tags": "openshiftClusterID=" + openstack.Cluster,
		}}}}},
		"securityGroups": []any{map[string]any{"filter": map[string]any{}, "name": openstack.Cluster + "-worker"}},
		"serverMetadata": map[string]any{"Name": openstack.Cluster + "-worker", "openshiftClusterID": openstack.Cluster},
		"tags":           []any{"openshiftClusterID=" + openstack.Cluster},
	}
	for _, mod := range mods {
		mod(spec)
	}
	machine := builder.In(c.namespace, builder.Machine(builder.WithLabels(map[string]string{builder.ClusterLabel: openstack.Cluster})))
	machine.Spec.ProviderSpec.Value = builder.ProviderSpec(spec)
	return c.apply(machine)
}

// withVolumes has a Machine boot from a volume and have another, and a floating address.
func withVolumes(spec map[string]any) {
	spec["rootVolume"] = map[string]any{"diskSize": 100}
	spec["additionalBlockDevices"] = []any{
		map[string]any{"name": "etcd", "sizeGiB": 10, "storage": map[string]any{"type": "Volume"}},
		map[string]any{"name": "scratch", "sizeGiB": 5, "storage": map[string]any{"type": "Local"}},
	}
	spec["floatingIP"] = openstack.FloatingIP
}

// check waits for a drift check and returns it.
func (c *cloud) check(machine *machinev1beta1.Machine) *record.DriftCheck {
	c.t.Helper()
	c.clock.SetTime(c.clock.Now().Add(2 * time.Hour))
	now := c.clock.Now().UTC()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(pause) {
		// An Update starts the check, and reports what one has found.
		_ = c.Update(c.t.Context(), machine)
		snapshot, err := c.store.Get(c.t.Context(), state.KeyFor(machine.Namespace, machine.UID))
		if err != nil {
			c.t.Fatal(err)
		}
		known, err := record.Read(snapshot.Meta)
		if err != nil {
			c.t.Fatal(err)
		}
		if known.Check != nil && !known.Check.At.Before(now) {
			return known.Check
		}
	}
	c.t.Fatal("no drift check in time")
	return nil
}

func (c *cloud) has(want map[string]int) {
	c.t.Helper()
	if diff := cmp.Diff(want, c.Count()); diff != "" {
		c.t.Errorf("what the cloud has (-want +got):\n%s", diff)
	}
}

// leavesNoSecret looks for the password in every file that the engine has left.
func (c *cloud) leavesNoSecret() {
	c.t.Helper()
	err := filepath.WalkDir(c.workDir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(content), openstack.Password) {
			c.t.Errorf("%s has the password", path)
		}
		return err
	})
	if err != nil {
		c.t.Error(err)
	}
}

func TestAServerFromCreateToDelete(t *testing.T) {
	c := newCloud(t)
	machine := c.machine()
	c.bring(machine)
	made := c.Server(machine.Name)
	if made == nil {
		t.Fatal("there is no server")
	}
	c.looksAsAskedFor(machine, made)
	c.leavesNoSecret()
	if found := c.check(machine); found.Result != record.DriftNone {
		t.Errorf("right after the create a check finds %s: %s", found.Result, found.Summary)
	}
	c.Stop(machine.Name)
	if found := c.check(machine); found.Result != record.DriftNone {
		t.Errorf("of a server that was shut off a check finds %s: %s; want no drift", found.Result, found.Summary)
	}

	wanted := machine.Spec.ProviderSpec.Value
	machine.Spec.ProviderSpec.Value = c.machine(func(spec map[string]any) { spec["configDrive"] = true }).Spec.ProviderSpec.Value
	err := c.drive(c.Update, machine)
	if !isReason(err, machinev1beta1.UnsupportedChangeMachineError) || !strings.Contains(err.Error(), "A server that exists stays as it is") {
		t.Errorf("Update with a config drive: %v, want UnsupportedChange in the module's words", err)
	}
	machine.Spec.ProviderSpec.Value = wanted
	if err := c.drive(c.bench.Delete, machine); err != nil {
		t.Fatal(err)
	}
	// The server group is everybody's.
	c.has(map[string]int{"servers": 0, "ports": 0, "trunks": 0, "volumes": 0, "server groups": 1})
}

// TestAServerOfADualStackNetworkHasOnePort has a network with a subnet of each family, and two
// server groups of one name.
func TestAServerOfADualStackNetworkHasOnePort(t *testing.T) {
	c := newCloud(t)
	client, err := c.Login(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := client.MakeServerGroup(t.Context(), openstack.Cluster+"-worker"); err != nil {
			t.Fatal(err)
		}
	}
	machine := c.machine(func(spec map[string]any) {
		spec["networks"] = []any{map[string]any{"filter": map[string]any{"name": openstack.Cluster + "-openshift"}, "subnets": []any{
			map[string]any{"filter": map[string]any{"name": openstack.Cluster + "-nodes-v6"}}, map[string]any{"filter": map[string]any{"name": openstack.Cluster + "-nodes"}},
		}}}
	})
	c.bring(machine)
	made := c.Server(machine.Name)
	if made == nil || len(made.Ports) != 1 || len(made.Ports[0].Addresses) != 2 || !strings.Contains(made.Ports[0].Addresses[0], ":") {
		t.Fatalf("the server is %+v, want one port with the two addresses asked for", made)
	}
	if groups := c.Count()["server groups"]; groups != 2 || made.Group != openstack.Cluster+"-worker" {
		t.Errorf("the server is in the group %q of %d, want one of those that were there", made.Group, groups)
	}
	if first := machine.Status.Addresses[0].Address; first != made.Ports[0].Addresses[1] {
		t.Errorf("the first address is %s, want that of IPv4, %s", first, made.Ports[0].Addresses[1])
	}
	if found := c.check(machine); found.Result != record.DriftNone {
		t.Errorf("right after the create a check finds %s: %s", found.Result, found.Summary)
	}
}

// TestAServerGroupOfAnotherNameEndsTheMachine names one by its id, and another name beside it.
func TestAServerGroupOfAnotherNameEndsTheMachine(t *testing.T) {
	c := newCloud(t)
	client, err := c.Login(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := client.MakeServerGroup(t.Context(), openstack.Cluster+"-infra"); err != nil {
		t.Fatal(err)
	}
	group, err := client.ID(t.Context(), "GET", "/compute/v2.1/os-server-groups", nil)
	if err != nil {
		t.Fatal(err)
	}
	machine := c.machine(func(spec map[string]any) { spec["serverGroupID"] = group })
	err = c.drive(c.Create, machine)
	if want := "Name of a " + group + " server group does not match defined name " + openstack.Cluster + "-worker"; !isReason(err, machinev1beta1.InvalidConfigurationMachineError) || !strings.Contains(err.Error(), want) {
		t.Errorf("Create() = %v, want InvalidConfiguration with %q", err, want)
	}
	if made := c.Count(); made["servers"] > 0 {
		t.Errorf("there are %v", made)
	}
}

// looksAsAskedFor compares a server, and what is published of it, with the Machine.
func (c *cloud) looksAsAskedFor(machine *machinev1beta1.Machine, made *openstack.Server) {
	c.t.Helper()
	uid, installed := string(machine.UID), string(c.installation.UID())
	want := &openstack.Server{
		ID: made.ID, Created: made.Created, Name: machine.Name, Status: "ACTIVE", Flavor: "m1.xlarge", Image: openstack.Cluster + "-rhcos", UserData: ignition, Zone: "nova",
		Metadata: map[string]string{"Name": openstack.Cluster + "-worker", "openshiftClusterID": openstack.Cluster, "machine-iac.io_machine-uid": uid, "machine-iac.io_installation": installed},
		Tags:     []string{"openshiftClusterID=" + openstack.Cluster, "cluster-api-provider-openstack", machine.Namespace + "-" + openstack.Cluster}, Group: openstack.Cluster + "-worker",
		Ports: []openstack.Port{{
			Name: machine.Name + "-0", Network: openstack.Cluster + "-openshift", Trunk: true, Others: []string{openstack.APIAddress, openstack.IngressAddress},
			Description:    "Installation " + installed + ", Machine " + machine.Namespace + "/" + machine.Name + " " + uid,
			SecurityGroups: []string{openstack.Cluster + "-worker"},
			Tags:           slices.Sorted(slices.Values([]string{"cluster-api-provider-openstack", "machine-uid=" + uid, "openshiftClusterID=" + openstack.Cluster, machine.Namespace + "-" + openstack.Cluster})),
		}},
	}
	got := *made
	got.Ports = slices.Clone(made.Ports)
	slices.Sort(want.Tags)
	got.Tags = slices.Sorted(slices.Values(got.Tags))
	var addresses []corev1.NodeAddress
	for i := range got.Ports {
		for _, address := range got.Ports[i].Addresses {
			addresses = append(addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: address})
		}
		got.Ports[i].Addresses = nil
		got.Ports[i].Tags = slices.Sorted(slices.Values(got.Ports[i].Tags))
	}
	if diff := cmp.Diff(want, &got); diff != "" {
		c.t.Errorf("the server (-want +got):\n%s", diff)
	}
	if id := machine.Spec.ProviderID; id == nil || *id != "openstack:///"+made.ID {
		c.t.Errorf("providerID %v, want that of %s", id, made.ID)
	}
	addresses = append(addresses, corev1.NodeAddress{Type: corev1.NodeHostName, Address: machine.Name}, corev1.NodeAddress{Type: corev1.NodeInternalDNS, Address: machine.Name})
	if diff := cmp.Diff(addresses, machine.Status.Addresses); diff != "" || len(addresses) != 3 {
		c.t.Errorf("addresses (-want +got):\n%s", diff)
	}
	if state := machine.Annotations["machine.openshift.io/instance-state"]; state != "ACTIVE" {
		c.t.Errorf("the instance's state is %q", state)
	}
}

func TestAServerThatTheStateLostIsFoundWithAllThatBelongsToIt(t *testing.T) {
	c := newCloud(t)
	machine := c.machine(withVolumes)
	c.bring(machine)
	everything := map[string]int{"servers": 1, "ports": 1, "trunks": 1, "volumes": 2, "server groups": 1}
	c.has(everything)
	made := c.Server(machine.Name)
	if devices := []string{"volume to volume", "volume to volume", "blank to local"}; !slices.Equal(made.Devices, devices) || made.Image != "" {
		t.Errorf("the server has the devices %v and the image %q, want %v", made.Devices, made.Image, devices)
	}
	if !slices.Contains(machine.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeExternalIP, Address: openstack.FloatingIP}) {
		t.Errorf("addresses %v, want the floating one", machine.Status.Addresses)
	}
	c.lose(machine, c.owner)
	c.bring(machine)
	c.has(everything)
	if *machine.Spec.ProviderID != "openstack:///"+made.ID {
		t.Errorf("after the loss of its state the Machine has %s, want the server that it had", *machine.Spec.ProviderID)
	}
	if found := c.check(machine); found.Result != record.DriftNone {
		t.Errorf("right after the import a check finds %s: %s", found.Result, found.Summary)
	}
	c.lose(machine, c.owner)
	if err := c.drive(c.bench.Delete, machine); err != nil {
		t.Fatal(err)
	}
	c.has(map[string]int{"servers": 0, "ports": 0, "trunks": 0, "volumes": 0, "server groups": 1})
}

// The provider forgets a port that it made where a request after that is refused, such as one of a
// login that ended meanwhile.
func TestAPortThatTheProviderMadeAndForgotIsFound(t *testing.T) {
	c := newCloud(t)
	machine := c.machine()
	// The client signs in anew after the first, and gives up after the second.
	refused := c.Obstruct(openstack.Obstacle{Refuse: true, Status: http.StatusUnauthorized, Times: 2, Match: func(r *http.Request) bool {
		return r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/network/v2.0/ports/")
	}})
	for deadline := time.Now().Add(patience); refused.Met() < 2; time.Sleep(pause) {
		if _ = c.Create(t.Context(), machine); time.Now().After(deadline) {
			t.Fatal("no create has made a port in time")
		}
	}
	for active(c.pool, machine.UID) { // when it ends is recorded: time must not pass before
		time.Sleep(pause)
	}
	c.later(time.Hour) // what was requested is carried out by now
	c.settles(machine) // a verb that comes before the run is repeated reports how the last one failed
	c.has(map[string]int{"servers": 1, "ports": 1, "trunks": 1, "volumes": 0, "server groups": 1})
	if err := c.drive(c.bench.Delete, machine); err != nil {
		t.Fatal(err)
	}
	c.has(map[string]int{"servers": 0, "ports": 0, "trunks": 0, "volumes": 0, "server groups": 1})
}

// TestAServerOutlivesWhatItWasMadeOf removes image, flavor, networks and groups, or gives them
// other names.
func TestAServerOutlivesWhatItWasMadeOf(t *testing.T) {
	c := newCloud(t)
	machine := c.machine(withVolumes)
	c.bring(machine)
	c.RemoveSources()
	if found := c.check(machine); found.Result != record.DriftNone {
		t.Errorf("without its image a check finds %s: %s", found.Result, found.Summary)
	}
	wanted := machine.Spec.ProviderSpec.Value
	machine.Spec.ProviderSpec.Value = c.machine(withVolumes, func(spec map[string]any) { spec["configDrive"] = true }).Spec.ProviderSpec.Value
	if err := c.drive(c.Update, machine); !isReason(err, machinev1beta1.UnsupportedChangeMachineError) {
		t.Errorf("Update with a config drive: %v, want UnsupportedChange", err)
	}
	machine.Spec.ProviderSpec.Value = wanted
	if !c.Cloud.Delete(machine.Name) {
		t.Fatal("there is no server to delete")
	}
	if found := c.check(machine); found.Result != record.DriftMissing {
		t.Errorf("without the server a check finds %s: %s; want it to miss the instance", found.Result, found.Summary)
	}
}

func TestAServerThatWasDeletedIsMissed(t *testing.T) {
	c := newCloud(t)
	machine := c.machine()
	c.bring(machine)
	if !c.Cloud.Delete(machine.Name) {
		t.Fatal("there is no server to delete")
	}
	if found := c.check(machine); found.Result != record.DriftMissing {
		t.Errorf("a check finds %s: %s; want it to miss the instance", found.Result, found.Summary)
	}
	if there, err := c.Exists(t.Context(), machine); there || err != nil {
		t.Errorf("Exists: %t, %v; want false", there, err)
	}
	if err := c.drive(c.bench.Delete, machine); err != nil {
		t.Errorf("Delete of what is gone: %v", err)
	}
	c.has(map[string]int{"servers": 0, "ports": 0, "trunks": 0, "volumes": 0, "server groups": 1})
}

func TestAServerOfASubnetThatIsNotThereNamesItAndNoSecret(t *testing.T) {
	c := newCloud(t)
	machine := c.machine(func(spec map[string]any) {
		spec["networks"] = []any{map[string]any{"subnets": []any{map[string]any{"filter": map[string]any{"name": "nowhere"}}}}}
	})
	err := c.drive(c.Create, machine)
	if err == nil || !strings.Contains(err.Error(), "no single subnet is what networks[0].subnets[0] names") {
		t.Errorf("Create: %v, want it to name the subnet", err)
	}
	if err != nil && strings.Contains(err.Error(), openstack.Password) {
		t.Errorf("the error has the password: %v", err)
	}
	c.leavesNoSecret()
}

// sizeOf asks for the size of Machines until it is known.
func (c *cloud) sizeOf(machine *machinev1beta1.Machine) (*actuators.Capacity, error) {
	c.t.Helper()
	template := &machinev1beta1.Machine{Spec: machine.Spec}
	template.Namespace, template.Labels = machine.Namespace, map[string]string{
		builder.ClusterLabel: openstack.Cluster, "machine.openshift.io/cluster-api-machine-role": "master", // no instance is searched for it
	}
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(pause) {
		size, err := c.Capacity(c.t.Context(), template)
		if _, waiting := actuators.AsRequeueAfter(err); !waiting {
			return size, err
		}
	}
	c.t.Fatal("the size is not known in time")
	return nil, nil
}

// TestTheCloudKnowsItsFlavors has a flavor that no catalog lists, and one that the cloud lacks too.
func TestTheCloudKnowsItsFlavors(t *testing.T) {
	c := newCloud(t)
	c.AddFlavor("gpu.huge", 48, 393216, map[string]any{"resources:VGPU": "2"})
	flavored := func(name string) *machinev1beta1.Machine {
		return c.machine(func(spec map[string]any) { spec["flavor"], spec["availabilityZone"] = name, "nova" })
	}
	size, err := c.sizeOf(flavored("gpu.huge"))
	if err != nil {
		t.Fatal(err)
	}
	want := &actuators.Capacity{CPU: 48, MemoryMiB: 393216, GPU: 2, Architecture: "amd64", Labels: map[string]string{
		corev1.LabelOSStable: "linux", corev1.LabelInstanceTypeStable: "gpu.huge", corev1.LabelTopologyZone: "nova",
	}}
	if diff := cmp.Diff(want, size); diff != "" {
		t.Errorf("the size (-want +got):\n%s", diff)
	}
	c.Close() // what is known is not asked for again
	if again, err := c.Capacity(t.Context(), flavored("gpu.huge")); err != nil || cmp.Diff(want, again) != "" {
		t.Errorf("got %+v, %v, want the same size without the cloud", again, err)
	}
	if known, err := c.Capacity(t.Context(), flavored("m1.xlarge")); err != nil || known.CPU != 8 {
		t.Errorf("got %+v, %v, want the size in the catalog without the cloud", known, err)
	}
}

func TestAFlavorThatTheCloudLacksIsUnknown(t *testing.T) {
	c := newCloud(t)
	_, err := c.sizeOf(c.machine(func(spec map[string]any) { spec["flavor"] = "none" }))
	unknown, ok := errors.AsType[*actuators.UnknownInstanceTypeError](err)
	if !ok || unknown.RetryAfter != sizeFailed || !strings.Contains(unknown.Message, "none") || !strings.Contains(unknown.Message, "Your query returned no results") {
		t.Errorf("got %v, want an unknown type in the provider's words, and another try later", err)
	}
	c.has(map[string]int{"servers": 0, "ports": 0, "trunks": 0, "volumes": 0, "server groups": 0})
}
