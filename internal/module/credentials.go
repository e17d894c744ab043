package module

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
)

// ExpandKey answers a key of the credentials Secret as module.yaml writes it, with every {path} in it replaced by what field answers
// for the path: a field of the providerSpec, its parts joined by dots. Braces cannot be part of a Secret's key otherwise.
func ExpandKey(key string, field func(path string) (string, error)) (string, error) {
	var expanded strings.Builder
	for rest := key; ; {
		text, after, opened := strings.Cut(rest, "{")
		if strings.Contains(text, "}") {
			return "", errors.New("has a } without a { before it")
		}
		expanded.WriteString(text)
		if !opened {
			return expanded.String(), nil
		}
		path, after, closed := strings.Cut(after, "}")
		if !closed || strings.Contains(path, "{") {
			return "", errors.New("has a { without } after it")
		}
		value, err := field(path)
		if err != nil {
			return "", err
		}
		expanded.WriteString(value)
		rest = after
	}
}

// CredentialFault says why a value of a credentials Secret cannot be used.
type CredentialFault struct {
	// Problem says what is wrong with the Secret, without the value.
	Problem string
	// Fix says what to do about it.
	Fix string
}

// String renders the fault.
func (f CredentialFault) String() string { return f.Problem + "; " + f.Fix }

// ReadCredentials answers what becomes of the data of a credentials Secret: environment variables, and files by the variables that
// carry their paths. The keys name no fields of the providerSpec any more.
func ReadCredentials(keys []v1alpha1.CredentialKey, data map[string][]byte) (environment, files map[string]string, faults []CredentialFault) {
	environment, files = map[string]string{}, map[string]string{}
	for _, key := range keys {
		if key.Unless != "" && len(data[key.Unless]) > 0 {
			continue
		}
		value, given := data[key.Key]
		fault := faultOf(key, value, given)
		switch {
		case fault != nil:
			faults = append(faults, *fault)
		case len(value) == 0:
		case key.File != "":
			files[key.File] = string(value)
		default:
			environment[key.Env] = string(value)
		}
	}
	return environment, files, faults
}

// faultOf answers what is wrong with the value of a key, nil for nothing.
func faultOf(key v1alpha1.CredentialKey, value []byte, given bool) *CredentialFault {
	switch {
	case len(value) == 0 && key.Optional:
		return nil
	case len(value) == 0 && given:
		return &CredentialFault{fmt.Sprintf("the Secret needs the key %q, but it is empty", key.Key), "add it to the Secret's data"}
	case len(value) == 0:
		return &CredentialFault{fmt.Sprintf("the Secret needs the key %q, but it is missing", key.Key), "add it to the Secret's data"}
	case key.File == "" && bytes.ContainsRune(value, 0):
		return &CredentialFault{fmt.Sprintf("the key %q of the Secret holds a null byte, which an environment variable cannot", key.Key), "write text"}
	}
	if accepted, err := matching(key.Matches); err != nil || accepted != nil && !accepted.Match(value) {
		return &CredentialFault{
			fmt.Sprintf("the key %q of the Secret holds more than the module takes there, or something else", key.Key),
			"write what the module's README says, and nothing else",
		}
	}
	return nil
}

// matching answers an expression for values that consist of texts which match the patterns; nil when there are none.
func matching(patterns []string) (*regexp.Regexp, error) {
	if len(patterns) == 0 {
		return nil, nil
	}
	return regexp.Compile(`\A(?:(?:` + strings.Join(patterns, `)|(?:`) + `))*\z`)
}

// checkUnless checks that a key gives way to another one that is there.
func (m *metadata) checkUnless(path string, index int) {
	keys := m.Spec.Credentials.Keys
	other := keys[index].Unless
	if other == "" {
		return
	}
	if i := slices.IndexFunc(keys, func(key v1alpha1.CredentialKey) bool { return key.Key == other }); i < 0 || i == index || strings.Contains(other, "{") {
		m.breach(path, fmt.Sprintf("is %q, which is no other of the keys", other), "name one of spec.credentials.keys, without fields in it")
	}
}

func (m *metadata) checkMatches(path string, key v1alpha1.CredentialKey) {
	for i, pattern := range key.Matches {
		if _, err := regexp.Compile(pattern); err != nil {
			m.breach(fmt.Sprintf("%s[%d]", path, i), "is not a regular expression: "+oneLine(err.Error()), "write it in RE2 syntax")
		}
	}
}

// checkKey checks a key of the credentials Secret but for the fields that it names.
func (m *metadata) checkKey(path, key string) {
	const fix = "use letters, digits, '-', '_' and '.', and {field} for the value of a field of the providerSpec"
	expanded, err := ExpandKey(key, func(string) (string, error) { return "x", nil })
	switch {
	case err != nil:
		m.breach(path, fmt.Sprintf("is %q, which %s", key, err), fix)
	case len(validation.IsConfigMapKey(expanded)) > 0:
		m.breach(path, fmt.Sprintf("is %q, which cannot be a key of a Secret", key), fix)
	}
}

// checkKeyFields checks that the fields which keys of the credentials Secret name are there.
func checkKeyFields(meta *metadata, providerSpec Variable) {
	for i, key := range meta.Spec.Credentials.Keys {
		at := fmt.Sprintf("spec.credentials.keys[%d].key", i)
		// Braces that do not match are reported already.
		_, _ = ExpandKey(key.Key, func(path string) (string, error) {
			if constraint, exists := fieldType(providerSpec.Type, path); !exists || constraint != cty.String {
				meta.breach(at, fmt.Sprintf("is %q, but %q is no string field of var.provider_spec", key.Key, path), "name the field, its parts joined by dots")
			}
			return "", nil
		})
	}
}
