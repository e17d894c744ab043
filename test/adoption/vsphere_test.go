package adoption

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	tfjson "github.com/hashicorp/terraform-json"

	"github.com/machine-iac/machine-iac-operator/test/long"
	"github.com/machine-iac/machine-iac-operator/test/vcenter"
)

// virtual tests the module vsphere with a simulated vCenter. The module itself creates the virtual machines to adopt,
// for another Machine of the same name, whose state is lost.
type virtual struct {
	*world
	*vcenter.VCenter
}

func newVirtual(t *testing.T) *virtual {
	t.Helper()
	program, err := filepath.Abs(filepath.Join(root, "bin", "vcsim"))
	if err != nil {
		t.Fatal(err)
	}
	center, err := vcenter.Start(t.Context(), program, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := center.Close(); err != nil {
			t.Error(err)
		}
	})
	return &virtual{world: newWorld(t, "vsphere"), VCenter: center}
}

func (v *virtual) machine(name, uid string, fields map[string]any) {
	v.t.Helper()
	spec := map[string]any{
		"apiVersion": "machine.openshift.io/v1beta1", "kind": "VSphereMachineProviderSpec",
		"credentialsSecret": map[string]any{"name": "vsphere"}, "userDataSecret": map[string]any{"name": "user-data"},
		"template": vcenter.Template, "numCPUs": 2, "numCoresPerSocket": 1, "memoryMiB": 2048,
		"diskGiB": 120, "snapshot": "",
		"network": map[string]any{"devices": []any{map[string]any{"networkName": "VM Network"}}},
		"workspace": map[string]any{
			"server": vcenter.Name, "datacenter": "DC0", "folder": vcenter.Folder,
			"datastore":    "/DC0/datastore/LocalDS_0",
			"resourcePool": "/DC0/host/DC0_C0/Resources",
		},
	}
	maps.Copy(spec, fields)
	machine := machineOf(name, spec)
	if uid != "" {
		machine.UID = "5e0ad6a1-6f9f-4f39-a4b5-00000000ffff"
	}
	v.render(machine, clusterID, map[string][]byte{
		vcenter.Name + ".username": []byte(vcenter.Username), vcenter.Name + ".password": []byte(vcenter.Password),
	}, v.Environment())
}

// made creates a virtual machine and removes its state. It has a cluster's tag, unless empty.
func (v *virtual) made(name, cluster string) *vcenter.VM {
	v.t.Helper()
	v.link()
	v.machine(name, "another", nil)
	v.apply()
	v.forget()
	if cluster != "" {
		if err := v.TagCluster(v.t.Context(), vcenter.Folder+"/"+name, cluster); err != nil {
			v.t.Fatal(err)
		}
	}
	return v.vm(name)
}

func (v *virtual) vm(name string) *vcenter.VM {
	v.t.Helper()
	found, err := v.VM(v.t.Context(), vcenter.Folder+"/"+name)
	if err != nil {
		v.t.Fatal(err)
	}
	return found
}

func TestAVirtualMachineIsAdoptedAsItIs(t *testing.T) {
	long.Test(t)
	v := newVirtual(t)
	made := v.made("worker-1", clusterID)
	v.machine("worker-1", "", nil)
	v.adopt("vsphere://"+strings.ToUpper(made.UUID), "")

	plan := v.plan()
	want := []string{"terraform_data.adopted import", "terraform_data.made_with create",
		"vsphere_virtual_machine.this import"}
	if diff := cmp.Diff(want, changes(plan)); diff != "" {
		t.Errorf("the plan (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string(nil), warnings(plan)); diff != "" {
		t.Errorf("what differs (-want +got):\n%s", diff)
	}
	v.apply()
	if diff := cmp.Diff(made, v.vm("worker-1")); diff != "" {
		t.Errorf("the adoption has changed the virtual machine (-before +after):\n%s", diff)
	}
	v.link()
	if left := changes(v.plan()); len(left) > 0 {
		t.Errorf("a plan after the adoption has changes %v", left)
	}
	v.machine("worker-1", "", map[string]any{"tagIDs": []any{v.Tag}})
	if tags := plannedTags(v.plan()); len(tags) != 2 || !slices.Contains(tags, any(v.Tag)) {
		t.Errorf("another tag plans %v; want that of the cluster to stay", tags)
	}
	v.machine("worker-1", "", nil)
	v.destroy()
	if left := v.vm("worker-1"); left != nil {
		t.Errorf("%+v is there after the destroy", left)
	}
}

func TestACloneOfAnotherActuatorIsAdoptedAsItIs(t *testing.T) {
	long.Test(t)
	v := newVirtual(t)
	if err := v.Clone(t.Context(), vcenter.Folder+"/worker-1", 2, 2048); err != nil {
		t.Fatal(err)
	}
	if err := v.TagCluster(t.Context(), vcenter.Folder+"/worker-1", clusterID); err != nil {
		t.Fatal(err)
	}
	made := v.vm("worker-1")
	v.machine("worker-1", "", nil)
	v.adopt("vsphere://"+made.UUID, "")
	plan := v.plan()
	want := []string{"terraform_data.adopted import", "terraform_data.made_with create",
		"vsphere_virtual_machine.this import"}
	if diff := cmp.Diff(want, changes(plan)); diff != "" {
		t.Errorf("the plan (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(made, v.vm("worker-1")); diff != "" {
		t.Errorf("the plan has changed the virtual machine (-before +after):\n%s", diff)
	}
	v.apply()
	if diff := cmp.Diff(made, v.vm("worker-1")); diff != "" {
		t.Errorf("the adoption has changed the virtual machine (-before +after):\n%s", diff)
	}
	v.link()
	if left := changes(v.plan()); len(left) > 0 {
		t.Errorf("a plan after the adoption has changes %v", left)
	}
	if diff := cmp.Diff(made, v.vm("worker-1")); diff != "" {
		t.Errorf("a plan after the adoption has changed the virtual machine (-before +after):\n%s", diff)
	}
}

// OpenShift's installer leaves the Machines of the control plane without a provider ID.
func TestAVirtualMachineOfTheInstallersIsFoundByItsName(t *testing.T) {
	long.Test(t)
	v := newVirtual(t)
	for _, name := range []string{"master-0", "master-1", "bare"} {
		if err := v.Clone(t.Context(), vcenter.Folder+"/"+name, 2, 2048); err != nil {
			t.Fatal(err)
		}
	}
	for name, cluster := range map[string]string{"master-0": clusterID, "master-1": "other"} {
		if err := v.TagCluster(t.Context(), vcenter.Folder+"/"+name, cluster); err != nil {
			t.Fatal(err)
		}
	}
	made := v.vm("master-0")
	v.machine("master-0", "", nil)
	v.adopt("", "")
	plan := v.plan()
	want := []string{"terraform_data.adopted import", "terraform_data.made_with create", "vsphere_virtual_machine.this import"}
	if diff := cmp.Diff(want, changes(plan)); diff != "" {
		t.Errorf("the plan (-want +got):\n%s", diff)
	}
	v.apply()
	if diff := cmp.Diff(made, v.vm("master-0")); diff != "" {
		t.Errorf("the adoption has changed the virtual machine (-before +after):\n%s", diff)
	}

	v.forget()
	for name, why := range map[string]string{
		"master-1": "The virtual machine master-1 belongs to the cluster other, and the Machine to the cluster demo-x7k2p.",
		"bare":     "The virtual machine bare does not prove that it is the Machine's",
	} {
		v.machine(name, "", nil)
		v.adopt("", "")
		v.refuses(why)
	}
	v.machine("master-2", "", nil)
	v.adopt("", "")
	_, err := v.tryPlan()
	if err == nil || !v.module.AdoptAbsent(strings.Join(strings.Fields(strings.ReplaceAll(err.Error(), "│", " ")), " ")) {
		t.Errorf("adopting a virtual machine that is not there says %v; want module.yaml to know that for absence", err)
	}
}

func plannedTags(plan *tfjson.Plan) []any {
	for _, change := range plan.ResourceChanges {
		if after, ok := change.Change.After.(map[string]any); ok && change.Address == "vsphere_virtual_machine.this" {
			tags, _ := after["tags"].([]any)
			return tags
		}
	}
	return nil
}

func TestWhatDiffersOfAVirtualMachineIsSaid(t *testing.T) {
	long.Test(t)
	v := newVirtual(t)
	made := v.made("worker-1", "")
	v.machine("worker-1", "", map[string]any{"numCPUs": 4, "memoryMiB": 4096})
	v.adopt("vsphere://"+made.UUID, "")
	want := []string{
		"providerSpec.memoryMiB: 4096 are requested, the virtual machine has 2048 and keeps them.",
		"providerSpec.numCPUs: 4 are requested, the virtual machine has 2 and keeps them.",
	}
	if diff := cmp.Diff(want, warnings(v.plan())); diff != "" {
		t.Errorf("what differs (-want +got):\n%s", diff)
	}
}

func TestAVirtualMachineOfOthersIsRefused(t *testing.T) {
	long.Test(t)
	v := newVirtual(t)
	other, bare := v.made("worker-1", "other"), v.made("bare", "")
	v.machine("worker-1", "", nil)
	v.adopt("vsphere://"+other.UUID, "")
	v.refuses("The virtual machine " + other.UUID +
		" belongs to the cluster other, and the Machine to the cluster demo-x7k2p.")
	v.adopt("", other.UUID)
	v.refuses("The virtual machine " + other.UUID +
		" belongs to the cluster other, and the Machine to the cluster demo-x7k2p.")
	v.adopt("vsphere://"+bare.UUID, "")
	v.refuses("The virtual machine " + bare.UUID + " does not prove that it is the Machine's")
	v.adopt("vsphere://worker-1", "")
	v.refuses(`"worker-1" is not the BIOS UUID of a virtual machine`)
	v.adopt("vsphere://00000000-0000-4000-8000-000000000000", "")
	_, err := v.tryPlan()
	if err == nil || !v.module.AdoptAbsent(
		strings.Join(strings.Fields(strings.ReplaceAll(err.Error(), "│", " ")), " ")) {
		t.Errorf("adopting a virtual machine that is not there says %v; want module.yaml to know that for absence", err)
	}
}

func TestVirtualMachinesAreListed(t *testing.T) {
	long.Test(t)
	v := newVirtual(t)
	mine := v.made("worker-1", clusterID)
	v.made("worker-2", "other")
	v.made("worker-3", "")
	v.machine("worker-9", "", nil)
	v.link(v.module.InventoryFiles()...)
	var found []listed
	output(t, v.plan(), "inventory", &found)
	for i := range found {
		if _, err := time.Parse(time.RFC3339, found[i].Created); found[i].Created != "" && err != nil {
			t.Error(err)
		}
		found[i].Created = ""
	}
	if diff := cmp.Diff([]listed{{"vsphere://" + mine.UUID, "worker-1", "", "5e0ad6a1-6f9f-4f39-a4b5-00000000ffff"}},
		found); diff != "" {
		t.Errorf("the inventory (-want +got):\n%s", diff)
	}
}

// TestAVirtualMachineIsAdoptedIntoItsGroup adopts a virtual machine without a group, and adds it to its own. Other
// members stay.
func TestAVirtualMachineIsAdoptedIntoItsGroup(t *testing.T) {
	long.Test(t)
	v := newVirtual(t)
	if err := v.MakeGroup(t.Context(), "zone-a"); err != nil {
		t.Fatal(err)
	}
	made := v.made("worker-1", clusterID)
	v.machine("worker-1", "", map[string]any{"workspace": map[string]any{
		"server": vcenter.Name, "datacenter": "DC0", "folder": vcenter.Folder, "datastore": "/DC0/datastore/LocalDS_0",
		"resourcePool": vcenter.Cluster + "/Resources", "vmGroup": "zone-a",
	}})
	v.adopt("vsphere://"+made.UUID, "")
	v.apply()
	v.link()
	if left := changes(v.plan()); len(left) > 0 {
		t.Errorf("a plan after the adoption has changes %v", left)
	}
	if members, err := v.Group(t.Context(), "zone-a"); err != nil || !slices.Equal(members, []string{"worker-1"}) {
		t.Errorf("the group has %v, %v", members, err)
	}
	if err := v.EmptyGroup(t.Context(), "zone-a"); err != nil {
		t.Fatal(err)
	}
	if found := changes(v.plan()); !slices.Equal(found, []string{"vsphere_virtual_machine.this update"}) {
		t.Errorf("where somebody has emptied the group the changes are %v", found)
	}
	v.apply()
	v.destroy()
	if members, err := v.Group(t.Context(), "zone-a"); err != nil || members == nil || len(members) > 0 {
		t.Errorf("after the destroy the group has %v, %v", members, err)
	}
}
