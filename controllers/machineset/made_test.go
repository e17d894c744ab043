package machineset

import (
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
	"github.com/machine-iac/machine-iac-operator/test/builder"
)

func TestMachinesThatAreBeingDeleted(t *testing.T) {
	set := builder.MachineSet()
	for name, tc := range map[string]struct {
		mod  machineMod
		want int
	}{
		"never had a Node":      {func(*machinev1beta1.Machine) {}, 1},
		"had a Node":            {withNode, 0},
		"were marked before":    {annotated(machineapi.DeleteAnnotation, "yes"), 0},
		"of another MachineSet": {func(m *machinev1beta1.Machine) { m.GenerateName = "other-" }, 0},
		"of eleven minutes":     {created(now.Add(-11 * time.Minute)), 1},
	} {
		t.Run(name, func(t *testing.T) {
			machine := builder.Machine(created(now.Add(-time.Minute)), builder.DeletedAt(now), func(m *machinev1beta1.Machine) { m.GenerateName = set.Name + "-" }, tc.mod)
			if got := made(set, []*machinev1beta1.Machine{machine}); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}
