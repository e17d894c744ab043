package webhooks

import (
	"slices"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// The kinds as refusals name them.
var (
	machineKind     = kindOf("Machine")
	machineSetKind  = kindOf("MachineSet")
	healthCheckKind = kindOf("MachineHealthCheck")
)

func kindOf(kind string) schema.GroupKind {
	return schema.GroupKind{Group: machinev1beta1.GroupName, Kind: kind}
}

// judgement is what there is to say about an object.
type judgement struct {
	// errs are why it is refused; none when it is not.
	errs field.ErrorList
	// warnings are told whether or not it is refused.
	warnings []string
	// secrets are those that it names and that should exist.
	secrets []secretRef
}

func (j *judgement) refuse(err *field.Error) { j.errs = append(j.errs, err) }

func (j *judgement) warn(err *field.Error) { j.warnings = append(j.warnings, err.Error()) }

// add takes over what another judgement says.
func (j *judgement) add(other judgement) {
	j.errs = append(j.errs, other.errs...)
	j.warnings = append(j.warnings, other.warnings...)
	j.secrets = append(j.secrets, other.secrets...)
}

// tolerate turns those errors into warnings that were there before.
func (j *judgement) tolerate(before field.ErrorList) {
	j.errs = slices.DeleteFunc(j.errs, func(err *field.Error) bool {
		old := slices.ContainsFunc(before, func(other *field.Error) bool { return other.Error() == err.Error() })
		if old {
			j.warnings = append(j.warnings, err.Error()+" (let be, as it was so before)")
		}
		return old
	})
}

// answer is the judgement as the API server wants it.
func (j *judgement) answer(kind schema.GroupKind, name string) (admission.Warnings, error) {
	if len(j.errs) == 0 {
		return j.warnings, nil
	}
	return j.warnings, apierrors.NewInvalid(kind, name, j.errs)
}

// deleting reports whether an object is being deleted.
func deleting(object client.Object) bool { return !object.GetDeletionTimestamp().IsZero() }
