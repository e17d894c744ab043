package drain

import (
	"testing"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
	"github.com/machine-iac/machine-iac-operator/test/builder"
)

type machineMod = func(*machinev1beta1.Machine)

func withDrained(status corev1.ConditionStatus) machineMod {
	return func(m *machinev1beta1.Machine) {
		m.Status.Conditions = []machinev1beta1.Condition{{Type: machinev1beta1.MachineDrained, Status: status}}
	}
}

func withAuthority(wanted, inCharge machinev1beta1.MachineAuthority) machineMod {
	return func(m *machinev1beta1.Machine) { m.Spec.AuthoritativeAPI, m.Status.AuthoritativeAPI = wanted, inCharge }
}

// candidate is a Machine to be drained, as far as mods do not change that.
func candidate(mods ...machineMod) *machinev1beta1.Machine {
	usual := []machineMod{
		builder.DeletedAt(now), builder.WithPhase("Deleting"), builder.WithNodeRef(builder.Node(named("n"))),
		func(m *machinev1beta1.Machine) { m.Name, m.UID, m.ResourceVersion = "m", "u", "1" },
	}
	return builder.Machine(append(usual, mods...)...)
}

func TestToBeDrained(t *testing.T) {
	foreign := func(m *machinev1beta1.Machine) { m.Finalizers = []string{"example.com/other"} }
	tcs := map[string]struct {
		mod  machineMod
		want bool
	}{
		"a Machine that is being deleted":        {func(*machinev1beta1.Machine) {}, true},
		"one whose drain has failed before":      {withDrained("False"), true},
		"one with a deadline":                    {builder.WithAnnotations(map[string]string{TimeoutAnnotation: "1m"}), true},
		"drained already: never twice":           {withDrained("True"), false},
		"not deleted":                            {func(m *machinev1beta1.Machine) { m.DeletionTimestamp = nil }, false},
		"born only":                              {func(m *machinev1beta1.Machine) { m.Status.Phase = nil }, false},
		"Provisioning":                           {builder.WithPhase("Provisioning"), false},
		"Provisioned":                            {builder.WithPhase("Provisioned"), false},
		"Running":                                {builder.WithPhase("Running"), false},
		"Failed":                                 {builder.WithPhase("Failed"), false},
		"held by others only":                    {foreign, false},
		"the Machine API is in charge":           {withAuthority("MachineAPI", "MachineAPI"), true},
		"Cluster API is in charge":               {withAuthority("ClusterAPI", "ClusterAPI"), false},
		"somebody else is about to be in charge": {withAuthority("MachineAPI", "Migrating"), false},
		"who is in charge is not settled":        {withAuthority("MachineAPI", ""), false},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			machine := candidate(tc.mod)
			if got := shouldDrain(machine); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
			if got := drainChanged().Create(event.CreateEvent{Object: machine}); got != tc.want {
				t.Errorf("at first sight: got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestWorthALook(t *testing.T) {
	changed := func(mod machineMod) *machinev1beta1.Machine {
		return candidate(mod, func(m *machinev1beta1.Machine) { m.ResourceVersion = "2" })
	}
	tcs := map[string]struct {
		before, after *machinev1beta1.Machine
		want          bool
	}{
		"the informer's repeat":              {candidate(), candidate(), true},
		"a repeat of one that is drained":    {candidate(withDrained("True")), candidate(withDrained("True")), false},
		"what the drain itself has reported": {candidate(), changed(withDrained("False")), false},
		"a label":                            {candidate(), changed(builder.WithLabels(map[string]string{"x": "y"})), false},
		"the phase that lets it begin":       {candidate(builder.WithPhase("Running")), changed(func(*machinev1beta1.Machine) {}), true},
		"drained, by whomever":               {candidate(), changed(withDrained("True")), true},
		"drained before and after":           {candidate(withDrained("True")), changed(withDrained("True")), false},
		"a hook is taken off":                {candidate(builder.WithPreDrainHook("A", "b")), changed(func(*machinev1beta1.Machine) {}), true},
		"it is excluded":                     {candidate(), changed(builder.WithAnnotations(map[string]string{machineapi.ExcludeDrainAnnotation: ""})), true},
		"a deadline":                         {candidate(), changed(builder.WithAnnotations(map[string]string{TimeoutAnnotation: "1m"})), true},
		"the start of its time":              {candidate(), changed(builder.WithAnnotations(map[string]string{StartedAnnotation: "x"})), true},
		"its Node":                           {candidate(), changed(func(m *machinev1beta1.Machine) { m.Status.NodeRef = nil }), true},
		"another Machine of its name":        {candidate(), changed(func(m *machinev1beta1.Machine) { m.UID = "v" }), true},
		"another API takes over":             {candidate(), changed(withAuthority("ClusterAPI", "Migrating")), true},
		"the Node of one that is not gone":   {builder.Machine(), builder.Machine(builder.WithNodeRef(builder.Node())), false},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			if got := drainChanged().Update(event.UpdateEvent{ObjectOld: tc.before, ObjectNew: tc.after}); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
	if !drainChanged().Delete(event.DeleteEvent{Object: candidate()}) {
		t.Error("what goes must be forgotten")
	}
	if drainChanged().Update(event.UpdateEvent{ObjectOld: &corev1.Pod{}, ObjectNew: &corev1.Pod{}}) {
		t.Error("a Pod is no Machine")
	}
}
