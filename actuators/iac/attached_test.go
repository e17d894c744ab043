package iac

import (
	"net/http"
	"net/url"
	"testing"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/test/builder"
)

// attach gives a virtual machine a disk with a file of its own, as the storage driver does with a
// volume; controller is "own" for one that nothing else is on.
func (v *vcenter) attach(machine *machinev1beta1.Machine, file, controller string) {
	v.t.Helper()
	if !v.ask(http.MethodPost, pathOf(machine)+"&do=attach&controller="+controller+"&file="+url.QueryEscape(file), nil) {
		v.t.Fatalf("there is no virtual machine of %s to attach %s to", machine.Name, file)
	}
}

func (v *vcenter) hasFile(file string) bool {
	v.t.Helper()
	there, err := v.server.HasFile(v.t.Context(), file)
	if err != nil {
		v.t.Fatal(err)
	}
	return there
}

// A volume of a Pod is a disk of the virtual machine while it is attached. On a controller that the
// provider does not count it is not in the state.
func TestDisksThatOthersAttachOutliveMachines(t *testing.T) {
	parallel(t)
	for name, tc := range map[string]struct {
		controller string
		refreshed  bool
	}{
		"its controller": {},
		"another":        {controller: "own"},
		"refreshed":      {controller: "own", refreshed: true},
	} {
		t.Run(name, func(t *testing.T) {
			v := newVCenter(t)
			machine := v.machine()
			v.bring(machine)
			own := "[LocalDS_0] " + machine.Name + "/" + machine.Name + ".vmdk"
			volume := "[LocalDS_0] fcd/volume.vmdk"
			v.attach(machine, volume, tc.controller)
			if !v.hasFile(own) || !v.hasFile(volume) || len(v.vm(machine).DisksGiB) != 3 {
				t.Fatalf("it has disks of %v GiB, want its own and the volume", v.vm(machine).DisksGiB)
			}
			if tc.refreshed {
				if found := v.check(machine); found.Result != record.DriftNone {
					t.Errorf("a drift check finds %s: %s; what others have attached is no drift", found.Result, found.Summary)
				}
				machine.Spec.ProviderSpec.Value = builder.ProviderSpec(v.spec(func(spec map[string]any) { spec["tagIDs"] = []any{} }))
				if err := v.drive(v.Update, machine); err != nil || len(v.vm(machine).DisksGiB) != 3 {
					t.Errorf("Update: %v; it has disks of %v GiB then, want the volume among them", err, v.vm(machine).DisksGiB)
				}
			}
			if err := v.drive(v.Delete, machine); err != nil {
				t.Fatal(err)
			}
			if v.vm(machine) != nil || v.hasFile(own) {
				t.Error("the virtual machine or its own disk is there still")
			}
			if !v.hasFile(volume) {
				t.Error("the volume is gone with the virtual machine that it was attached to")
			}
		})
	}
}
