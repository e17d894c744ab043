package vcenter_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/machine-iac/machine-iac-operator/test/vcenter"
)

// What tests conclude from a simulated vCenter holds only where it does what a real one does.
func TestAVirtualMachineThatIsDestroyedTakesItsVolumesWithIt(t *testing.T) {
	program := filepath.Join("..", "..", "bin", "vcsim")
	if _, err := os.Stat(program); err != nil {
		t.Fatalf("%v; run 'make tools'", err)
	}
	ctx := t.Context()
	v, err := vcenter.Start(ctx, program, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	})
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
