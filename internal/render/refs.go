package render

import (
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/machine-iac/machine-iac-operator/internal/module"
)

// KindOf answers apiVersion and kind of the Machine's providerSpec. The error is an [Errors].
func KindOf(machine *machinev1beta1.Machine) (apiVersion, kind string, err error) {
	fields, failed := decodeProviderSpec(machine)
	if failed != nil {
		return "", "", Errors{failed}
	}
	found := &findings{}
	read := func(name string) string {
		text, ok := fields[name].(string)
		if !ok || text == "" {
			found.fail(&FieldError{
				Path: fieldPath(valuePath, name), Fault: faultOf(fields[name]), Mend: "name a kind that a provider module serves",
				Problem: "a string is required, but it is " + absence(fields[name]),
			})
		}
		return text
	}
	apiVersion, kind = read("apiVersion"), read("kind")
	return apiVersion, kind, found.err()
}

// Refs answers the names of the Secrets that the Machine's providerSpec refers to, from where the module says they stand. They
// lie in the Machine's namespace. A name is empty when the module does not use such a Secret, or when the providerSpec leaves
// out one that may be left out. The error is an [Errors].
func Refs(machine *machinev1beta1.Machine, from *module.Module) (credentialsSecretName, userDataSecretName string, err error) {
	fields, failed := decodeProviderSpec(machine)
	if failed != nil {
		return "", "", Errors{failed}
	}
	found := &findings{}
	if credentials := from.Spec().Credentials; credentials != nil && credentials.Path != "" {
		required := false
		for _, key := range credentials.Keys {
			required = required || !key.Optional
		}
		credentialsSecretName = secretNameAt(fields, credentials.Path, required, found)
	}
	if userData := from.Spec().UserData; userData != nil && userData.Path != "" {
		userDataSecretName = secretNameAt(fields, userData.Path, false, found)
	}
	if err := found.err(); err != nil {
		return "", "", err
	}
	return credentialsSecretName, userDataSecretName, nil
}

// secretNameAt reads the name of a Secret at a path of field names joined by dots.
func secretNameAt(fields map[string]any, path string, required bool, found *findings) string {
	var raw any = fields
	for step := range strings.SplitSeq(path, ".") {
		inner, ok := raw.(map[string]any)
		if !ok {
			break
		}
		raw = inner[step]
	}
	at := valuePath + "." + path
	name, isString := raw.(string)
	switch {
	case raw == nil && !required:
	case !isString || name == "" && required:
		found.fail(&FieldError{
			Path: at, Fault: faultOf(raw), Problem: "the name of a Secret is required, but it is " + absence(raw), Mend: "name a Secret in the Machine's namespace",
		})
	case name != "" && len(validation.IsDNS1123Subdomain(name)) > 0:
		found.fail(&FieldError{Path: at, Value: show(name), Problem: "the name of a Secret is required, but " + show(name) + " is none", Mend: "use lower-case letters, digits, '-' and '.'"})
		return ""
	}
	return name
}

// faultOf answers the fault of something that is not a useful string.
func faultOf(raw any) Fault {
	if raw == nil || raw == "" {
		return Missing
	}
	return Invalid
}

// absence says in which way something is not a useful string.
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
