package render

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"github.com/zclconf/go-cty/cty"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/module"
)

// CredentialKeys returns the keys that the module reads from the credentials Secret, with the
// providerSpec fields in them expanded, or nil if it reads none. The error is an [Errors] if the
// Machine is at fault.
func CredentialKeys(machine *machinev1beta1.Machine, from *module.Module) ([]v1alpha1.CredentialKey, error) {
	if machine == nil || from == nil {
		return nil, errors.New("naming the keys of credentials: a Machine and a module are required")
	}
	credentials := from.Spec().Credentials
	if credentials == nil {
		return nil, nil
	}
	if !slices.ContainsFunc(credentials.Keys,
		func(key v1alpha1.CredentialKey) bool { return strings.Contains(key.Key, "{") }) {
		return slices.Clone(credentials.Keys), nil
	}
	found := &findings{}
	read := readSpec(machine, from, found)
	keys := credentialKeys(from, read.at, read.provides(from, found), found)
	if err := found.err(); err != nil {
		return nil, err
	}
	return keys, nil
}

// credentialKeys returns the module's keys with fields of providerSpec expanded, which is at a path
// of the Machine. It skips keys that cannot be expanded and adds an error to found, unless the
// field's error is there already.
func credentialKeys(from *module.Module, at string, providerSpec cty.Value, found *findings) []v1alpha1.CredentialKey {
	credentials := from.Spec().Credentials
	if credentials == nil {
		return nil
	}
	keys := make([]v1alpha1.CredentialKey, 0, len(credentials.Keys))
	for _, key := range credentials.Keys {
		named, err := module.ExpandKey(key.Key, func(path string) (string, error) {
			return keyPart(key.Key, valueAt(providerSpec, path), at+"."+path)
		})
		if err == nil {
			key.Key = named
			keys = append(keys, key)
			continue
		}
		var failed *FieldError
		if errors.As(err, &failed) && !found.covers(failed.Path) {
			found.fail(failed)
		}
	}
	return keys
}

// errUnknown means that a field has an error that is reported elsewhere.
var errUnknown = errors.New("the field is not known")

// keyPart returns the text of the field at a path that a key names.
func keyPart(key string, field cty.Value, path string) (string, error) {
	if !field.IsKnown() {
		return "", errUnknown
	}
	failed := &FieldError{Path: path, Fix: "write it"}
	if field.IsNull() || field.Type() != cty.String || field.AsString() == "" {
		failed.Fault = Missing
		failed.Problem = fmt.Sprintf("the key %q of the credentials Secret is named after it, but it is missing or "+
			"empty",
			key)
		return "", failed
	}
	part := field.AsString()
	if len(validation.IsConfigMapKey("x"+part)) > 0 {
		failed.Value = show(part)
		failed.Problem = fmt.Sprintf("the key %q of the credentials Secret is named after it, but %s cannot be part "+
			"of one",
			key, failed.Value)
		failed.Fix = "use letters, digits, '-', '_' and '.'"
		return "", failed
	}
	return part, nil
}
