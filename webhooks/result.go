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

// healthCheckKind is the kind in error messages.
var healthCheckKind = schema.GroupKind{Group: machinev1beta1.GroupName, Kind: "MachineHealthCheck"}

// admissionResult is the result of checking an object.
type admissionResult struct {
	// errs are the reasons for rejecting it, if any.
	errs field.ErrorList
	// warnings are returned whether or not it is rejected.
	warnings []string
	// secrets are the Secrets that it names and that should exist.
	secrets []secretRef
}

func (r *admissionResult) refuse(err *field.Error) { r.errs = append(r.errs, err) }

func (r *admissionResult) warn(err *field.Error) { r.warnings = append(r.warnings, err.Error()) }

// allow turns all errors into warnings that say why.
func (r *admissionResult) allow(why string) {
	for _, err := range r.errs {
		r.warnings = append(r.warnings, err.Error()+" ("+why+")")
	}
	r.errs = nil
}

// add adds another result.
func (r *admissionResult) add(other admissionResult) {
	r.errs = append(r.errs, other.errs...)
	r.warnings = append(r.warnings, other.warnings...)
	r.secrets = append(r.secrets, other.secrets...)
}

// tolerate turns errors that existed before into warnings.
func (r *admissionResult) tolerate(before field.ErrorList) {
	r.errs = slices.DeleteFunc(r.errs, func(err *field.Error) bool {
		old := slices.ContainsFunc(before, func(other *field.Error) bool { return other.Error() == err.Error() })
		if old {
			r.warnings = append(r.warnings, err.Error()+" (accepted because it was there before)")
		}
		return old
	})
}

// response returns the result like machine-api-operator's validators: only field errors, without
// the object.
func (r *admissionResult) response() (admission.Warnings, error) {
	if len(r.errs) == 0 {
		return r.warnings, nil
	}
	return r.warnings, r.errs.ToAggregate()
}

// invalid returns the result like the API server's schema validation, for kinds that
// machine-api-operator has no webhook for.
func (r *admissionResult) invalid(kind schema.GroupKind, name string) (admission.Warnings, error) {
	if len(r.errs) == 0 {
		return r.warnings, nil
	}
	return r.warnings, apierrors.NewInvalid(kind, name, r.errs)
}

// deleting reports whether an object is being deleted.
func deleting(object client.Object) bool { return !object.GetDeletionTimestamp().IsZero() }
