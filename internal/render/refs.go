package render

import (
	"slices"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/module"
)

// Ref is a reference to a Secret in the Machine's namespace.
type Ref struct {
	// Name of the Secret, or empty.
	Name string
	// Path of the name in the Machine.
	Path string
}

// Refs returns the Secrets that the Machine's providerSpec refers to. A name is empty if the module
// does not use such a Secret, or if it is optional and not set. The error is an [Errors].
func Refs(machine *machinev1beta1.Machine, from *module.Module) (credentials, userData Ref, err error) {
	found := &findings{}
	credentials, userData = readSpec(machine, from, found).refs(from, found)
	if err := found.err(); err != nil {
		return Ref{}, Ref{}, err
	}
	return credentials, userData, nil
}

// refs returns the Secrets that the spec refers to. It adds errors to found unless they are there
// already.
func (s *spec) refs(from *module.Module, found *findings) (credentials, userData Ref) {
	if s.values == nil {
		return Ref{}, Ref{}
	}
	if from.Spec().Credentials != nil {
		credentials = s.credentials.ref(needsCredentials(from), found)
	}
	return credentials, s.userData.ref(false, found)
}

// needsCredentials reports whether the module requires a Secret.
func needsCredentials(from *module.Module) bool {
	credentials := from.Spec().Credentials
	return credentials != nil &&
		slices.ContainsFunc(credentials.Keys, func(key v1alpha1.CredentialKey) bool { return !key.Optional })
}

// reference is an actual or expected name of a Secret.
type reference struct {
	path string
	raw  any
}

func (r reference) ref(required bool, found *findings) Ref {
	name, isString := r.raw.(string)
	switch {
	case found.covers(r.path):
	case r.raw == nil && !required:
	case !isString || name == "" && required:
		found.fail(nameless(r.path, r.raw))
	case name != "" && len(validation.IsDNS1123Subdomain(name)) > 0:
		found.fail(&FieldError{
			Path: r.path, Value: show(name), Problem: "the name of a Secret is required, not " + show(name),
			Fix: "use lower-case letters, digits, '-' and '.'",
		})
	default:
		return Ref{Name: name, Path: r.path}
	}
	return Ref{Path: r.path}
}

// nameless is the error for anything but the name of a Secret.
func nameless(path string, raw any) *FieldError {
	return &FieldError{
		Path: path, Fault: faultOf(raw), Problem: "the name of a Secret is required, but it is " +
			absence(raw), Fix: "name a Secret in the Machine's namespace",
	}
}

// isAbsent reports whether a value counts as unset.
func isAbsent(raw any) bool { return raw == nil || raw == "" }

// faultOf returns the fault of a value that should be a non-empty string.
func faultOf(raw any) Fault {
	if isAbsent(raw) {
		return Missing
	}
	return Invalid
}

// absence describes why a value is not a non-empty string.
func absence(raw any) string {
	switch raw {
	case nil:
		return "missing"
	case "":
		return "empty"
	default:
		return nameOf(raw)
	}
}
