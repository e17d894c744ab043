package iac

import (
	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
)

// unresolved says what a person must do about a run that may have made an instance which nothing can find.
func unresolved(f *lifecycle.Facts, operation runs.Operation) error {
	what := "create a second one"
	if operation == runs.Destroy {
		what = "leave it behind"
	}
	return actuators.Uncertain(progressInterval, "InstanceUncertain", "run %s may have made an instance that the state does not know, and the Machine's module has no lookup "+
		"to find it: going on could %s; look for an instance of this Machine, remove it if there is one, and then set the annotation %s: %s on the Machine",
		f.LostRun(), what, lifecycle.NoInstanceAnnotation, f.LostRun())
}

// notAdopted says why a Machine is left alone.
func notAdopted(f *lifecycle.Facts) error {
	if f.RestoredFrom != "" {
		return actuators.Uncertain(progressInterval, "NotAdopted", "the Machine was made anew from one with UID %s, whose instance it names: its state is kept under that UID; "+
			"nothing is made, changed or removed for it; to let go of the Machine and leave the instance, remove its finalizer", f.RestoredFrom)
	}
	return actuators.Uncertain(progressInterval, "NotAdopted", "the Machine has an instance that this operator did not make: it has no state of it; nothing is made, changed "+
		"or removed for it; to let go of the Machine and leave the instance, remove its finalizer")
}

// stateLost says that the state of the instance is lost.
func stateLost(f *lifecycle.Facts) error {
	return actuators.Uncertain(progressInterval, "StateLost", "the Machine has had an instance since %s, and its state does not have it: the Secret was removed or changed; "+
		"it is looked up where the module can, else put the Secret back", f.Since())
}
