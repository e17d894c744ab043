package iac

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/test/builder"
	simulation "github.com/machine-iac/machine-iac-operator/test/vcenter"
)

// group asks about a group of virtual machines, or does something to it.
func (v *vcenter) group(method, name string, into any) bool {
	v.t.Helper()
	return v.ask(method, "/test/group?"+url.Values{"cluster": {simulation.Cluster}, "name": {name}}.Encode(), into)
}

// members returns the names of the virtual machines in a group.
func (v *vcenter) members(name string) (members []string) {
	v.t.Helper()
	if !v.group(http.MethodGet, name, &members) {
		v.t.Fatalf("there is no group %s", name)
	}
	return members
}

func (v *vcenter) snapshot(name string) {
	v.t.Helper()
	if err := v.server.MakeSnapshot(v.t.Context(), "/DC0/vm/"+simulation.Template, name); err != nil {
		v.t.Fatal(err)
	}
}

func (v *vcenter) machineWith(mods ...func(map[string]any)) *machinev1beta1.Machine {
	v.t.Helper()
	machine := builder.In(v.namespace, builder.Machine())
	machine.Spec.ProviderSpec.Value = builder.ProviderSpec(v.spec(mods...))
	return v.apply(machine)
}

func inGroup(name string) func(map[string]any) {
	return func(spec map[string]any) { spec["workspace"].(map[string]any)["vmGroup"] = name }
}

// TestVirtualMachinesShareAGroup puts two into one at the same time. Each is in it before its guest
// boots, and takes none of the others out.
func TestVirtualMachinesShareAGroup(t *testing.T) {
	v := newVCenter(t)
	v.group(http.MethodPost, "zone-a", nil)
	machines := []*machinev1beta1.Machine{v.machineWith(inGroup("zone-a")), v.machineWith(inGroup("zone-a"))}
	names := []string{machines[0].Name, machines[1].Name}
	slices.Sort(names)
	for _, machine := range machines {
		_ = v.Create(t.Context(), machine) // both begin
	}
	for _, machine := range machines {
		v.bring(machine)
		if made := v.vm(machine); made == nil || made.PowerState != "poweredOn" || !slices.Equal(made.GroupsAtPowerOn, []string{"zone-a"}) {
			t.Errorf("there is %+v, want it to be in the group when it is powered on", made)
		}
	}
	if members := v.members("zone-a"); !slices.Equal(members, names) {
		t.Errorf("the group has %v, want %v", members, names)
	}
	if found := v.check(machines[0]); found.Result != record.DriftNone {
		t.Errorf("right after the create a check finds %s: %s", found.Result, found.Summary)
	}
	v.group(http.MethodDelete, "zone-a", nil)
	if found := v.check(machines[0]); found.Result != record.DriftChanged || !strings.Contains(found.Summary, "vm_group") {
		t.Errorf("of one that was taken out of its group a check finds %s: %s", found.Result, found.Summary)
	}
	for _, machine := range machines {
		if err := v.drive(v.Delete, machine); err != nil {
			t.Fatal(err)
		}
	}
	if members := v.members("zone-a"); len(members) > 0 {
		t.Errorf("after the deletes the group has %v", members)
	}
}

// TestVirtualMachinesOfABatchAreClonedAtOnce has a clone take long, and asks for something else with each.
func TestVirtualMachinesOfABatchAreClonedAtOnce(t *testing.T) {
	v := newVCenterReached(t, func(b *bench, environment map[string]string) { b.environment, b.batch = environment, 3 })
	v.group(http.MethodPost, "zone-a", nil)
	v.group(http.MethodPost, "zone-b", nil)
	v.ask(http.MethodPost, "/test/slow?method=CloneVM_Task&delay=3s", nil)
	machines := []*machinev1beta1.Machine{v.machineWith(inGroup("zone-a")), v.machineWith(inGroup("zone-b")), v.machineWith()}
	v.atOnce(v.Create, machines)
	for i, want := range [][]string{{"zone-a"}, {"zone-b"}, nil} {
		made := v.vm(machines[i])
		if made == nil || !slices.Equal(made.GroupsAtPowerOn, want) || !strings.Contains(made.Annotation, string(machines[i].UID)) {
			t.Errorf("there is %+v, want it with its Machine's UID and in %v when it is powered on", made, want)
		}
		if output := v.output(machines[i]); !strings.Contains(output, togetherText+"3 Machines") {
			t.Errorf("the output is %q, want that of a batch", output)
		}
	}
	most := 0
	v.ask(http.MethodPost, "/test/slow?method=CloneVM_Task&delay=0s", &most)
	if most != len(machines) {
		t.Errorf("%d clones were made at once, want %d", most, len(machines))
	}
}

func TestAVirtualMachineIsNotMadeWhereItsGroupIsMissing(t *testing.T) {
	v := newVCenter(t)
	machine := v.machineWith(inGroup("zone-b"))
	err := v.drive(v.Create, machine)
	if err == nil || !strings.Contains(err.Error(), `the compute cluster DC0_C0 has no group of virtual machines "zone-b"`) {
		t.Errorf("Create returns %v, want that the group is missing", err)
	}
	if made := v.vm(machine); made != nil {
		t.Errorf("there is %+v", made)
	}
}

// TestALinkedCloneIsOfTheSnapshotThatIsNamed has it be of the current one where none is named, and
// a full clone where the named one is not there.
func TestALinkedCloneIsOfTheSnapshotThatIsNamed(t *testing.T) {
	v := newVCenter(t)
	linked := func(snapshot string) *simulation.VM {
		machine := v.machineWith(func(spec map[string]any) { spec["cloneMode"], spec["snapshot"] = "linkedClone", snapshot })
		v.bring(machine)
		made := v.vm(machine)
		if made == nil {
			t.Fatal("there is no virtual machine")
		}
		return made
	}
	const full, child = "moveAllDiskBackingsAndConsolidate", "createNewChildDiskBacking"
	if made := linked(""); made.Snapshot != "" || made.DiskMoveType != full || made.DisksGiB[0] != 12 {
		t.Errorf("of a template without snapshots there is %+v, want a full clone", made)
	}
	v.snapshot("first")
	v.snapshot("second")
	for name, want := range map[string]simulation.VM{
		"first": {Snapshot: "first", DiskMoveType: child},
		"":      {Snapshot: "second", DiskMoveType: child},
		"third": {DiskMoveType: full},
	} {
		made := linked(name)
		if made.Snapshot != want.Snapshot || made.DiskMoveType != want.DiskMoveType || (made.DisksGiB[0] == 12) != (want.Snapshot == "") {
			t.Errorf("with the snapshot %q there is %+v, want %+v", name, made, want)
		}
	}
}

// TestACloneKeepsTheSettingsOfItsTemplate covers settings that no providerSpec has, such as nested
// virtualization. Later changes of the template or of the clone are not the Machine's.
func TestACloneKeepsTheSettingsOfItsTemplate(t *testing.T) {
	v := newVCenter(t)
	const template = "/test/vm?path=%2FDC0%2Fvm%2FDC0_C0_RP0_VM0"
	plain := v.machine()
	v.bring(plain)
	v.ask(http.MethodPost, template+"&do=configure", nil)
	machine := v.machine()
	v.bring(machine)
	want, made := &simulation.VM{}, v.vm(machine)
	v.ask(http.MethodGet, template, want)
	if want.Settings["nestedVirtualization"] != true {
		t.Fatalf("the template has the settings %v", want.Settings)
	}
	if diff := cmp.Diff(want.Settings, made.Settings); diff != "" {
		t.Errorf("settings of the clone (-template +clone):\n%s", diff)
	}
	for _, one := range []*machinev1beta1.Machine{plain, machine} {
		if found := v.check(one); found.Result != record.DriftNone {
			t.Errorf("a check finds %s: %s", found.Result, found.Summary)
		}
	}
	before := v.vm(plain)
	v.ask(http.MethodPost, pathOf(plain)+"&do=configure", nil)
	if found := v.check(plain); found.Result != record.DriftNone {
		t.Errorf("a check of a clone that an administrator has configured finds %s: %s", found.Result, found.Summary)
	}
	plain.Spec.ProviderSpec.Value = builder.ProviderSpec(v.spec(func(spec map[string]any) { spec["tagIDs"] = []any{} }))
	if err := v.drive(v.Update, plain); err != nil {
		t.Errorf("Update without the tag: %v", err)
	}
	if changed := v.vm(plain); len(changed.Tags) > 0 || cmp.Equal(before.Settings, changed.Settings) ||
		!cmp.Equal(want.Settings["latencySensitivity"], changed.Settings["latencySensitivity"]) {
		t.Errorf("after the update it has the tags %v and the settings %v; want those of the administrator", changed.Tags, changed.Settings)
	}
}

// deny has the vCenter refuse these methods, and no others.
func (v *vcenter) deny(methods ...string) {
	v.t.Helper()
	if err := v.server.Deny(v.t.Context(), methods...); err != nil {
		v.t.Fatal(err)
	}
}

// ofATemplate makes a template as a vCenter takes it, for Machines to be cloned of.
func (v *vcenter) ofATemplate() func(map[string]any) {
	v.t.Helper()
	v.ask(http.MethodPost, "/test/vm?"+url.Values{
		"path": {"/DC0/vm/workers/template"}, "do": {"clone"}, "from": {"DC0_C0_RP0_VM0"}, "cpus": {"2"}, "memoryMiB": {"1024"},
	}.Encode(), nil)
	return func(spec map[string]any) { spec["template"] = "/DC0/vm/workers/template" }
}

// leaves has a create end before the denied call, and expects the clone to have its owner.
func (v *vcenter) leaves(machine *machinev1beta1.Machine, denied string) {
	v.t.Helper()
	v.deny(denied, "Destroy_Task")
	err := v.drive(v.Create, machine)
	v.deny()
	left := v.vm(machine)
	if left == nil || left.PowerState != "poweredOff" || !strings.Contains(left.Annotation, string(machine.UID)) {
		v.t.Fatalf("a create that ends with %v leaves %+v; want it off, with the Machine's UID", err, left)
	}
}

// TestACloneThatWasNeverPoweredOnIsReplaced cuts creates short between the calls to vCenter. A clone
// without its reconfiguration has no user data, and nothing powers on what a lookup finds.
func TestACloneThatWasNeverPoweredOnIsReplaced(t *testing.T) {
	for name, denied := range map[string]string{"before it is configured": "ReconfigVM_Task", "before it is powered on": "PowerOnVM_Task"} {
		t.Run(name, func(t *testing.T) {
			v := newVCenter(t)
			machine := v.machineWith(v.ofATemplate())
			v.leaves(machine, denied)
			v.lose(machine, v.owner)
			v.settles(machine)
			v.reports(machine)
			v.looksAsAskedFor(machine, v.vm(machine))
		})
	}
}

// TestAnOldVirtualMachineThatIsOffStays: after etcd was restored, it may have run since its create.
func TestAnOldVirtualMachineThatIsOffStays(t *testing.T) {
	v := newVCenter(t)
	machine := v.machineWith(v.ofATemplate())
	v.leaves(machine, "PowerOnVM_Task")
	v.lose(machine, v.owner)
	v.later(2 * time.Hour)
	v.settles(machine)
	if left := v.vm(machine); left == nil || left.PowerState != "poweredOff" {
		t.Errorf("there is %+v; want the virtual machine that was there", left)
	}
}

func TestAVirtualMachineThatCouldNotBePoweredOnRunsOnceItCan(t *testing.T) {
	v := newVCenter(t)
	machine := v.machineWith(v.ofATemplate())
	v.leaves(machine, "PowerOnVM_Task")
	v.settles(machine)
	v.reports(machine)
	v.looksAsAskedFor(machine, v.vm(machine))
}

func TestACloneThatWasNeverPoweredOnIsDeletedWithItsMachine(t *testing.T) {
	v := newVCenter(t)
	machine := v.machineWith(v.ofATemplate())
	v.leaves(machine, "ReconfigVM_Task")
	v.lose(machine, v.owner)
	if err := v.drive(v.Delete, machine); err != nil {
		t.Fatal(err)
	}
	if left := v.vm(machine); left != nil {
		t.Errorf("%+v outlived its Machine", left)
	}
}
