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

// Unresolved says what a person must do about a run that may have made an instance which nothing can find.
func Unresolved(f *lifecycle.Facts, operation runs.Operation) error {
	what := "create a second one"
	if operation == runs.Destroy {
		what = "leave it behind"
	}
	return actuators.Uncertain(ProgressInterval, "InstanceUncertain", "run %s may have made an instance that the state does not know, and the Machine's module has no lookup "+
		"to find it: going on could %s; look for an instance of this Machine, remove it if there is one, and then set the annotation %s: %s on the Machine",
		f.AbandonedRun(), what, record.NoInstanceAnnotation, f.AbandonedRun())
}

// NotAdopted says why a Machine is left alone, and what to do. Why is the reason of the decision; it may be empty.
func NotAdopted(f *lifecycle.Facts, why string) error {
	message := "something else than this operator has made the Machine's instance"
	switch planned := f.Record.AdoptionPlan; {
	case f.RestoredFrom != "":
		message = fmt.Sprintf("the Machine was created again from one with the UID %s, whose instance it names: its state is kept under that UID; 'kubectl machine state import' gives it to this Machine", f.RestoredFrom)
	case f.Adoption.Adoption == lifecycle.AdoptionRelease:
		message = "the Machine's instance was released: its state is forgotten"
	case why != "":
		message += "; " + why
	case planned != nil && planned.Refused != "":
		message += ", and it cannot be adopted: " + planned.Refused
	case f.Adoption.Adoption == lifecycle.AdoptionPlan && planned != nil && !planned.At.IsZero():
		message += "; its adoption is planned: " + planned.String()
	}
	return actuators.Uncertain(ProgressInterval, actuators.ReasonNotAdopted, "%s; nothing is made, changed or removed for it; set the annotation %s to %s to adopt the instance, "+
		"or remove the Machine's finalizer to let go of the Machine and leave the instance", message, lifecycle.AdoptionAnnotation, lifecycle.AdoptionAdopt)
}

// unreadableRetry is how soon a state is read again that somebody must correct: nothing says when it was.
const unreadableRetry = 30 * time.Second

// Unreadable says of an error that somebody must correct what is stored of the Machine's state, or that it takes a newer manager to read it; any other
// error is returned as it is. Nothing is known until then, and the Machine goes on soon after.
func Unreadable(err error) error {
	_, edited := errors.AsType[*state.AnnotationError](err)
	_, newer := errors.AsType[*state.FormatError](err)
	_, encrypted := errors.AsType[*state.EncryptedError](err)
	if _, corrupt := errors.AsType[*state.CorruptError](err); !edited && !corrupt && !newer && !encrypted {
		return err
	}
	return actuators.Uncertain(unreadableRetry, "StateUnreadable", "%s", err.Error())
}

// StateMissing says that the state of the instance is missing.
func StateMissing(f *lifecycle.Facts) error {
	return actuators.Uncertain(ProgressInterval, "StateLost", "the Machine has had an instance since %s, and its state does not have it: the Secret was removed or changed; "+
		"it is looked up where the module can, else put the Secret back", f.Since())
}
