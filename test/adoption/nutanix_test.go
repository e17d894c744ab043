package adoption

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-iac/machine-iac-operator/test/long"
	"github.com/machine-iac/machine-iac-operator/test/nutanix/prism"
)

// onPrism tests the module nutanix with a simulated Prism Central.
type onPrism struct {
	*world
	*prism.Central
}

func newOnPrism(t *testing.T) *onPrism {
	t.Helper()
	central, err := prism.Start(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(central.Close)
	return &onPrism{world: newWorld(t, "nutanix"), Central: central}
}

// machine renders a Machine with other providerSpec fields. The identity "another" is another Machine's of the same
// name.
func (o *onPrism) machine(name, identity string, fields map[string]any) {
	o.t.Helper()
	spec := map[string]any{
		"apiVersion": "machine.openshift.io/v1", "kind": "NutanixMachineProviderConfig",
		"credentialsSecret": map[string]any{"name": "nutanix"}, "userDataSecret": map[string]any{"name": "user-data"},
		"cluster": map[string]any{"type": "name", "name": "pe-1"},
		"image":   map[string]any{"type": "name", "name": "rhcos"},
		"subnets": []any{map[string]any{"type": "name", "name": "net (a)"},
			map[string]any{"type": "name", "name": "net"}},
		"vcpuSockets": 4, "vcpusPerSocket": 1, "memorySize": "16Gi", "systemDiskSize": "120Gi",
		"project":    map[string]any{"type": "name", "name": "team"},
		"categories": []any{map[string]any{"key": "AppType", "value": "Web tier"}},
		"gpus":       []any{map[string]any{"type": "Name", "name": "A40"}},
		"dataDisks":  []any{map[string]any{"diskSize": "2Gi"}},
	}
	maps.Copy(spec, fields)
	machine := machineOf(name, spec)
	if identity != "" {
		machine.UID = "5e0ad6a1-6f9f-4f39-a4b5-00000000ffff"
	}
	credentials := `[{"type":"basic_auth","data":{"prismCentral":{"username":"` + prism.Username + `","password":"` +
		prism.Password + `"},"prismElements":null}}]`
	o.render(machine, clusterID, map[string][]byte{"credentials": []byte(credentials)}, o.Environment())
}

const firstMachine = "4237a8c4-0000-4000-8000-000000000001"

func TestAPrismMachineFromCreateToDelete(t *testing.T) {
	long.Test(t)
	o := newOnPrism(t)
	o.machine("worker-1", "", nil)
	o.FailNext()
	if err := o.terraform.Apply(t.Context()); err == nil || !strings.Contains(err.Error(), "Not enough resources") {
		t.Fatalf("a create that fails ends with %v", err)
	}
	o.link(o.module.LookupFiles()...)
	o.apply()
	if state := o.output("instance_state"); state != `"ERROR"` || o.Count() != 1 {
		t.Errorf("what is left of the create is %s, and %d were made; want it to be taken", state, o.Count())
	}
	o.link()
	o.destroy()

	const second = "4237a8c4-0000-4000-8000-000000000002"
	o.apply()
	o.looksAsRequested(second)
	for name, want := range map[string]string{
		"provider_id": `"nutanix://` + second + `"`, "instance_state": `"COMPLETE"`, "instance_type": `"AHV"`,
		"region": `"pc-1"`, "zone": `"pe-1"`,
		"addresses": `[{"address":"192.168.1.20","type":"InternalIP"},{"address":"192.168.1.21","type":"InternalIP"},` +
			`{"address":"worker-1","type":"InternalDNS"},{"address":"worker-1","type":"Hostname"}]`,
	} {
		if got := o.output(name); got != want {
			t.Errorf("the output %s is %s, want %s", name, got, want)
		}
	}
	o.Change(second, func(machine prism.Object) {
		machine["metadata"].(prism.Object)["categories"] = prism.Object{"Backup": "Daily"}
		machine["status"].(prism.Object)["resources"].(prism.Object)["memory_size_mib"] = 32768
		resources := machine["spec"].(prism.Object)["resources"].(prism.Object)
		resources["disk_list"] = append(resources["disk_list"].([]any), prism.Object{
			"uuid": "d15c0000-0000-4000-8000-00000000000f",
			"device_properties": prism.Object{
				"device_type": "VOLUME_GROUP", "disk_address": prism.Object{"adapter_type": "SCSI", "device_index": 9},
			},
			"volume_group_reference": prism.Object{
				"kind": "volume_group", "uuid": "b0a10000-0000-4000-8000-000000000001",
			},
		})
	})
	if left := changes(o.plan()); len(left) > 0 {
		t.Errorf("what others changed plans %v", left)
	}
	o.machine("worker-1", "", map[string]any{"vcpuSockets": 8})
	o.refuses("A virtual machine that exists stays as it is")

	o.machine("worker-1", "", nil)
	o.forget()
	o.link(o.module.LookupFiles()...)
	o.apply()
	o.link()
	if left := changes(o.plan()); len(left) > 0 || o.Count() != 2 {
		t.Errorf("after the state was lost a plan has %v, and %d were made", left, o.Count())
	}
	o.destroy()
	if names := o.Names(); len(names) > 0 {
		t.Errorf("%v are there after the destroy", names)
	}
}

// looksAsRequested compares a virtual machine with what OpenShift's provider requests.
func (o *onPrism) looksAsRequested(uuid string) {
	o.t.Helper()
	for path, want := range map[string]string{
		"metadata.categories":            `{"AppType":"Web tier","kubernetes-io-cluster-demo-x7k2p":"owned"}`,
		"metadata.project_reference":     `{"kind":"project","uuid":"5c6f5d2e-0000-4b00-9b00-000000000001"}`,
		"spec.description":               `"Machine openshift-machine-api/worker-1 5e0ad6a1-6f9f-4f39-a4b5-000000000008"`,
		"spec.cluster_reference":         `{"kind":"cluster","uuid":"` + prism.Element + `"}`,
		"spec.resources.power_state":     `"ON"`,
		"spec.resources.num_sockets":     `4`,
		"spec.resources.gpu_list":        `[{"device_id":8757,"mode":"VIRTUAL","vendor":"NVIDIA"}]`,
		"spec.resources.boot_config":     `null`,
		"spec.resources.memory_size_mib": `16384`,
	} {
		if got := o.At(uuid, strings.Split(path, ".")...); got != want {
			o.t.Errorf("%s is %s, want %s", path, got, want)
		}
	}
	var disks []struct {
		DataSource prism.Object `json:"data_source_reference"`
		Size       int          `json:"disk_size_mib"`
	}
	var nics []struct {
		Subnet struct{ UUID string } `json:"subnet_reference"`
	}
	var customized struct {
		CloudInit struct {
			UserData []byte `json:"user_data"`
		} `json:"cloud_init"`
	}
	o.read(uuid, "disk_list", &disks)
	o.read(uuid, "nic_list", &nics)
	o.read(uuid, "guest_customization", &customized)
	if len(disks) != 3 || disks[0].Size != 122880 ||
		disks[0].DataSource["uuid"] != "ea05d5d3-8f1f-4e0c-9a52-000000000001" || disks[1].Size != 2048 {
		o.t.Errorf("the disks are %+v", disks)
	}
	if len(nics) != 2 || nics[0].Subnet.UUID != "c7938dc6-7659-453e-a688-000000000001" ||
		nics[1].Subnet.UUID != "c7938dc6-7659-453e-a688-000000000002" {
		o.t.Errorf("the interfaces are %+v", nics)
	}
	if !strings.Contains(string(customized.CloudInit.UserData), `"source":"data:,worker-1"`) {
		o.t.Errorf("the user data is %s", base64.StdEncoding.EncodeToString(customized.CloudInit.UserData))
	}
}

func (o *onPrism) read(uuid, name string, into any) {
	o.t.Helper()
	if err := json.Unmarshal([]byte(o.At(uuid, "spec", "resources", name)), into); err != nil {
		o.t.Fatal(err)
	}
}

func TestNothingIsMadeOfWhatPrismLacks(t *testing.T) {
	long.Test(t)
	o := newOnPrism(t)
	for name, tc := range map[string]struct {
		change map[string]any
		want   string
	}{
		"no image": {map[string]any{"image": map[string]any{"type": "name", "name": "fcos"}},
			"is not created: no image is called fcos"},
		"two images": {map[string]any{"image": map[string]any{"type": "name", "name": "twice"}},
			"is not created: several images are called twice"},
		"no category": {map[string]any{"categories": []any{map[string]any{"key": "AppType", "value": "a/b"}}},
			"is not created: there is no category AppType with the value a/b"},
		"no unused GPU": {map[string]any{"gpus": []any{map[string]any{"type": "Name", "name": "T4"}}},
			"is not created: no unused GPU of the cluster is called T4"},
		"no such domain": {map[string]any{"failureDomain": map[string]any{"name": "fd-1"}},
			"is not created: the Infrastructure has no failure domain fd-1"},
	} {
		t.Run(name, func(t *testing.T) {
			o.machine("worker-1", "", tc.change)
			err := o.terraform.Apply(t.Context())
			if err == nil || !strings.Contains(
				strings.Join(strings.Fields(strings.ReplaceAll(err.Error(), "│", "")), " "), tc.want) || o.Count() > 0 {
				t.Errorf("got %v, and %d were made; want %q", err, o.Count(), tc.want)
			}
		})
	}
}

func TestAPrismMachineIsAdoptedAsItIs(t *testing.T) {
	long.Test(t)
	o := newOnPrism(t)
	o.machine("worker-1", "another", nil)
	o.apply()
	o.forget()
	made := o.At(firstMachine)
	o.machine("worker-1", "", map[string]any{"memorySize": "8Gi"})
	o.adopt("nutanix://"+strings.ToUpper(firstMachine), "")
	plan := o.plan()
	if diff := cmp.Diff([]string{"nutanix_virtual_machine.this import", "terraform_data.made_with create"},
		changes(plan)); diff != "" {
		t.Errorf("the plan (-want +got):\n%s", diff)
	}
	want := []string{"providerSpec.memorySize: 8Gi is requested, the virtual machine has 16384Mi and keeps it."}
	if diff := cmp.Diff(want, warnings(plan)); diff != "" {
		t.Errorf("what differs (-want +got):\n%s", diff)
	}
	o.apply()
	if diff := cmp.Diff(made, o.At(firstMachine)); diff != "" {
		t.Errorf("the adoption has changed the virtual machine (-before +after):\n%s", diff)
	}
	o.link()
	if left := changes(o.plan()); len(left) > 0 {
		t.Errorf("a plan after the adoption has changes %v", left)
	}
	o.forget()
	o.Change(firstMachine, func(machine prism.Object) {
		machine["metadata"].(prism.Object)["categories"] = prism.Object{"kubernetes-io-cluster-other": "owned"}
	})
	o.adopt("nutanix://"+firstMachine, "")
	o.refuses("belongs to the cluster other, and the Machine to the cluster demo-x7k2p")
}

func TestPrismMachinesAreListed(t *testing.T) {
	long.Test(t)
	o := newOnPrism(t)
	o.machine("worker-1", "", nil)
	o.apply()
	o.machine("another", "", nil)
	o.forget()
	o.link(o.module.InventoryFiles()...)
	want := []any{map[string]any{
		"provider_id": "nutanix://" + firstMachine, "name": "worker-1", "created": "2026-01-02T03:04:05Z",
		"machine_uid": "5e0ad6a1-6f9f-4f39-a4b5-000000000008", "installation": "",
	}}
	if diff := cmp.Diff(any(want), o.plan().OutputChanges["inventory"].After); diff != "" {
		t.Errorf("the inventory (-want +got):\n%s", diff)
	}
	o.Change(firstMachine, func(machine prism.Object) { machine["metadata"].(prism.Object)["categories"] = nil })
	if listed := o.plan().OutputChanges["inventory"].After; len(listed.([]any)) > 0 {
		t.Errorf("%v is of no cluster", listed)
	}
}
