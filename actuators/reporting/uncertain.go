package reporting

import (
	"errors"
	"fmt"
	"time"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// Unresolved returns what a person must do about a run that may have created an instance that no
// lookup can find.
func Unresolved(f *lifecycle.Facts, operation runs.Operation) error {
	what := "create a second one"
	if operation == runs.Destroy {
		what = "leave it behind"
	}
	return actuators.Uncertain(ProgressInterval, "InstanceUncertain",
		"run %s may have created an instance that the state lacks, and the Machine's module has no lookup "+
			"to find it: continuing could %s; look for an instance of this Machine, remove it if it exists, then set the "+
			"annotation %s: %s on the Machine",
		f.AbandonedRun(), what, record.NoInstanceAnnotation, f.AbandonedRun())
}

// NotAdopted returns why a Machine is left alone, and what to do. why is the reason of the decision
// and may be empty.
func NotAdopted(f *lifecycle.Facts, why string) error {
	message := "the Machine's instance was not created by this operator"
	switch planned := f.Record.AdoptionPlan; {
	case f.RestoredFrom != "":
		message = fmt.Sprintf("the Machine is a copy of one with UID %s and names its instance; run 'kubectl machine "+
			"state import' to move the state from that UID to this Machine", f.RestoredFrom)
	case f.Adoption.Denied != "":
		message += "; " + f.Adoption.Denied
	case f.Adoption.Adoption == lifecycle.AdoptionRelease:
		message = "the Machine's instance was released and its state discarded"
	case f.MayInherit() && planned == nil:
		return actuators.Uncertain(ProgressInterval, "LookingUp",
			"the Machine may have an instance that this operator did not create: looking up an instance of its name before "+
				"creating one")
	case why != "":
		message += "; " + why
	case planned != nil && planned.Refused != "":
		message += ", and it cannot be adopted: " + planned.Refused
	case f.Adoption.Adoption == lifecycle.AdoptionPlan && planned != nil && !planned.At.IsZero():
		message += "; adoption planned: " + planned.String()
	}
	return actuators.Uncertain(ProgressInterval, actuators.ReasonNotAdopted,
		"%s; nothing is created, changed or deleted for it; set the annotation %s to %s to adopt the instance, "+
			"or remove the Machine's finalizer to delete the Machine and keep the instance", message,
		lifecycle.AdoptionAnnotation, lifecycle.AdoptionAdopt)
}

// unreadableRetry is the delay before an unreadable state is read again. Nothing signals that
// someone has corrected it.
const unreadableRetry = 30 * time.Second

// Unreadable converts an error about an unreadable state to an UncertainError. Someone must correct
// the state, or upgrade the manager. Other errors are returned unchanged.
func Unreadable(err error) error {
	_, edited := errors.AsType[*state.AnnotationError](err)
	_, newer := errors.AsType[*state.FormatError](err)
	_, encrypted := errors.AsType[*state.EncryptedError](err)
	if _, corrupt := errors.AsType[*state.CorruptError](err); !edited && !corrupt && !newer && !encrypted {
		return err
	}
	return actuators.Uncertain(unreadableRetry, "StateUnreadable", "%s", err.Error())
}

// StateMissing returns the error for an instance whose state is missing.
func StateMissing(f *lifecycle.Facts) error {
	return actuators.Uncertain(ProgressInterval, "StateLost",
		"the Machine has had an instance since %s, but its state lacks it: the Secret was deleted or changed; "+
			"restore the Secret, unless the module can look up the instance", f.Since())
}

// StateOfAnother returns the error for a state that belongs to another Machine. why is the
// evidence.
func StateOfAnother(why string) error {
	return actuators.Uncertain(ProgressInterval, "StateOfAnotherMachine",
		"the state in the Machine's Secret belongs to another Machine: %s; nothing is changed or deleted until the "+
			"Machine's own state is restored: recover its Secret from a backup, or run 'kubectl machine state import'", why)
}
