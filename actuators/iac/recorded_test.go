package iac

import (
	"encoding/json"
	"testing"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/stacks"
)

const recordedVariable = `
variable "recorded" {
  type        = object({ runs = number })
  description = "How many runs there were."
  default     = null
}
`

// counting returns a module, or a stack, whose runs are given what the one before has recorded.
func counting(t *testing.T, b *bench) *module.Module {
	t.Helper()
	if b.uses == v1alpha1.EnginePulumi {
		return changed(t, stacks.FS, "", "variable \"user_data\" {", recordedVariable+"\nvariable \"user_data\" {",
			"  provider_id = \"kubemark://", "  runs = try(var.recorded.runs, 0) + 1\n  provider_id = \"kubemark://",
			"  instance_id: ${this.uid}\n", "  instance_id: ${this.uid}\n  recorded:\n    runs: ${locals.runs}\n")
	}
	return changedModule(t, recordedVariable+`
output "recorded" {
  description = "How many runs there were."
  value       = { runs = try(var.recorded.runs, 0) + 1 }
  depends_on  = [kubectl_manifest.this]
}
`)
}

func (b *bench) recorded(machine *machinev1beta1.Machine) int {
	b.t.Helper()
	f, err := b.facts(b.t.Context(), machine)
	if err != nil {
		b.t.Fatal(err)
	}
	var of struct{ Runs int }
	if err := json.Unmarshal(f.Recorded(), &of); err != nil {
		b.t.Fatal(err)
	}
	return of.Runs
}

func TestARunIsGivenWhatIsRecorded(t *testing.T) {
	eachEngine(t, aRunIsGivenWhatIsRecorded)
}

func aRunIsGivenWhatIsRecorded(t *testing.T, b *bench) {
	b.upgrade(counting(t, b), "owner-1")
	machine := b.machine()
	b.bring(machine)
	if runs := b.recorded(machine); runs != 1 {
		t.Fatalf("after the create %d runs are recorded, want 1", runs)
	}
	starts := b.starts()
	if err := b.drive(b.Update, machine); err != nil || b.starts() != starts {
		t.Errorf("another Update returns %v after %d more starts of the engine; want none: what is recorded is no input", err, b.starts()-starts)
	}
	set(machine, b, "zone", "zone-b")
	if err := b.drive(b.Update, machine); err != nil {
		t.Fatal(err)
	}
	if runs := b.recorded(machine); runs != 2 {
		t.Errorf("after an update %d runs are recorded, want 2", runs)
	}
	if err := b.drive(b.Delete, machine); err != nil {
		t.Fatal(err)
	}
}

// TestMachinesAreMadeTogetherWithWhatIsRecorded has one process make several Machines; an output
// that changes by itself is taken over by a check.
func TestMachinesAreMadeTogetherWithWhatIsRecorded(t *testing.T) {
	b := newBench(t)
	b.batch = 10
	b.upgrade(counting(t, b), "owner-1")
	b.bring(b.machine()) // the module is prepared
	machines := b.machines(3)
	// A slot that was not used before asks the engine for its version first.
	if starts := b.atOnce(b.Create, machines); starts > 2 {
		t.Errorf("the engine was started %d times for 3 Machines, want once", starts)
	}
	for _, machine := range machines {
		b.wantMade(machine)
		if runs := b.recorded(machine); runs != 1 {
			t.Errorf("Machine %s: after the create %d runs are recorded, want 1", machine.Name, runs)
		}
		if b.checked(machine); b.recorded(machine) != 2 {
			t.Errorf("Machine %s: after a drift check %d runs are recorded, want 2", machine.Name, b.recorded(machine))
		}
	}
}
