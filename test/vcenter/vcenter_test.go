package vcenter_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/machine-iac/machine-iac-operator/test/long"
	"github.com/machine-iac/machine-iac-operator/test/vcenter"
)

// Tests with a simulated vCenter prove something only if it behaves like a real one.
func start(t *testing.T) *vcenter.VCenter {
	t.Helper()
	long.Test(t)
	program := filepath.Join("..", "..", "bin", "vcsim")
	if _, err := os.Stat(program); err != nil {
		t.Fatalf("%v; run 'make tools'", err)
	}
	v, err := vcenter.Start(t.Context(), program, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	})
	return v
}

func TestACloneIsAsItIsAskedForAndSaysWhenItWasChanged(t *testing.T) {
	ctx, v := t.Context(), start(t)
	const path = vcenter.Folder + "/clone"
	if err := v.Clone(ctx, path, 2, 2048); err != nil {
		t.Fatal(err)
	}
	made, err := v.VM(ctx, path)
	if err != nil || made == nil || made.PowerState != "poweredOn" || made.CPUs != 2 || made.MemoryMiB != 2048 ||
		made.ClonedFrom != vcenter.Template {
		t.Fatalf("the clone is %+v, %v", made, err)
	}
	if made.Created.IsZero() || made.Changed.Before(made.Created) {
		t.Errorf("it was made at %s and changed at %s", made.Created, made.Changed)
	}
	if err := v.TagCluster(ctx, path, "demo"); err != nil {
		t.Fatal(err)
	}
	if tagged, err := v.VM(ctx, path); err != nil || len(tagged.Tags) != 1 || !tagged.Changed.Equal(made.Changed) {
		t.Errorf("with a tag it is %+v, %v; a tag is no change of its configuration", tagged, err)
	}
	if err := v.Attach(ctx, path, "[LocalDS_0] volumes/clone.vmdk"); err != nil {
		t.Fatal(err)
	}
	if changed, err := v.VM(ctx, path); err != nil || !changed.Changed.After(made.Changed) ||
		!changed.Created.Equal(made.Created) {
		t.Errorf("with another disk it is %+v, %v; want its configuration to be changed", changed, err)
	}
	if err := v.Clone(ctx, path, 2, 2048); err == nil {
		t.Error("a second clone of the name is no error")
	}
}

func TestAVirtualMachineThatIsDestroyedTakesItsVolumesWithIt(t *testing.T) {
	ctx, v := t.Context(), start(t)
	const path, volume = "/DC0/vm/DC0_C0_RP0_VM1", "[LocalDS_0] volumes/claim.vmdk"
	has := func() bool {
		t.Helper()
		there, err := v.HasFile(ctx, volume)
		if err != nil {
			t.Fatal(err)
		}
		return there
	}
	if has() {
		t.Errorf("%s is there before anything made it", volume)
	}
	if err := v.Attach(ctx, path, volume); err != nil {
		t.Fatal(err)
	}
	attached := func(disk vcenter.Disk) bool { return disk.File == volume && disk.SizeGiB == 1 }
	if vm, err := v.VM(ctx, path); err != nil || !slices.ContainsFunc(vm.Disks, attached) || !has() {
		t.Fatalf("after Attach the virtual machine is %+v, %v; want it to have %s", vm, err, volume)
	}
	if err := v.PowerOff(ctx, path); err != nil {
		t.Fatal(err)
	}
	if vm, err := v.VM(ctx, path); err != nil || vm.PowerState != "poweredOff" {
		t.Errorf("after PowerOff the virtual machine is %+v, %v", vm, err)
	}
	if err := v.Destroy(ctx, path); err != nil {
		t.Fatal(err)
	}
	if vm, err := v.VM(ctx, path); vm != nil || err != nil || has() {
		t.Errorf("after Destroy the virtual machine is %+v, %v, and its volume is there: %t", vm, err, has())
	}
	if err := v.Destroy(ctx, path); err == nil {
		t.Error("destroying what is not there is no error")
	}
}

func TestAVirtualMachineHasSnapshotsAndIsInGroups(t *testing.T) {
	ctx, v := t.Context(), start(t)
	const path = vcenter.Folder + "/clone"
	if members, err := v.Group(ctx, "zone-a"); members != nil || err != nil {
		t.Errorf("before there is a group it has %v, %v", members, err)
	}
	if err := v.MakeGroup(ctx, "zone-a"); err != nil {
		t.Fatal(err)
	}
	if err := v.MakeGroup(ctx, "zone-a"); err == nil {
		t.Error("a second group of the name is no error")
	}
	if members, err := v.Group(ctx, "zone-a"); members == nil || len(members) > 0 || err != nil {
		t.Errorf("a new group has %v, %v", members, err)
	}
	if err := v.MakeSnapshot(ctx, path, "first"); err == nil {
		t.Error("a snapshot of what is not there is no error")
	}
	if err := v.MakeSnapshot(ctx, "/DC0/vm/"+vcenter.Template, "first"); err != nil {
		t.Fatal(err)
	}
	if err := v.Clone(ctx, path, 2, 2048); err != nil {
		t.Fatal(err)
	}
	if made, err := v.VM(ctx, path); err != nil || made.Snapshot != "" || made.DiskMoveType != "" ||
		len(made.GroupsAtPowerOn) > 0 {
		t.Errorf("a clone of no snapshot that is in no group is %+v, %v", made, err)
	}
}
