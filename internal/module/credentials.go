package module

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
)

// ExpandKey returns a key of the credentials Secret from module.yaml with every {path} replaced by
// field(path): a field of the providerSpec, joined by dots. Secret keys cannot contain braces
// otherwise.
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

// CredentialFault is why a value of a credentials Secret is unusable.
type CredentialFault struct {
	// Problem is what is wrong with the Secret, without the value.
	Problem string
	// Fix is how to fix it.
	Fix string
}

// String returns problem and fix.
func (f CredentialFault) String() string { return f.Problem + "; " + f.Fix }

// ReadCredentials returns the environment variables from a credentials Secret, and the files by the variables
// that hold their paths. The fields in the keys must have been expanded.
func ReadCredentials(keys []v1alpha1.CredentialKey, data map[string][]byte) (environment, files map[string]string, faults []CredentialFault) {
	environment, files = map[string]string{}, map[string]string{}
	for _, key := range keys {
		if key.Unless != "" && len(data[key.Unless]) > 0 {
			continue
		}
		value, given := data[key.Key]
		if len(key.Path) > 0 && len(value) > 0 {
			part, err := scalarIn(value, key.Path)
			if err != nil || part == "" && !key.Optional {
				faults = append(faults, faultOfPath(key, err))
				continue
			}
			value = []byte(part)
		}
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

// SecretParts returns values that are parts of a credentials Secret's keys and must not be shown.
func SecretParts(keys []v1alpha1.CredentialKey, data map[string][]byte) []string {
	var parts []string
	for _, key := range keys {
		if len(key.Path) == 0 || key.Public || len(data[key.Key]) == 0 {
			continue
		}
		if part, err := scalarIn(data[key.Key], key.Path); err == nil && part != "" {
			parts = append(parts, part)
		}
	}
	return parts
}

// faultOfPath returns the fault of a key without a value at its path.
func faultOfPath(key v1alpha1.CredentialKey, err error) CredentialFault {
	problem := fmt.Sprintf("the key %q of the Secret has no value at %s", key.Key, strings.Join(key.Path, "."))
	if err != nil {
		problem = fmt.Sprintf("the key %q of the Secret %s", key.Key, err)
	}
	return CredentialFault{problem, "write it as the module's README says"}
}

// faultOf returns what is wrong with the value of a key, or nil.
func faultOf(key v1alpha1.CredentialKey, value []byte, given bool) *CredentialFault {
	switch {
	case len(value) == 0 && key.Optional:
		return nil
	case len(value) == 0 && given:
		return &CredentialFault{fmt.Sprintf("the Secret needs the key %q, but it is empty", key.Key), "add it to the Secret's data"}
	case len(value) == 0:
		return &CredentialFault{fmt.Sprintf("the Secret needs the key %q, but it is missing", key.Key), "add it to the Secret's data"}
	case key.File == "" && bytes.ContainsRune(value, 0):
		return &CredentialFault{fmt.Sprintf("the key %q of the Secret contains a NUL byte, which an environment variable cannot", key.Key), "use text"}
	}
	if accepted, err := matching(key.Matches); err != nil || accepted != nil && !accepted.Match(value) {
		return &CredentialFault{
			fmt.Sprintf("the key %q of the Secret has a value that the module does not accept", key.Key),
			"write only what the module's README says",
		}
	}
	return faultOfParts(key, value)
}

// matching returns an expression for values that consist of texts matching the patterns, or nil if
// there are none.
func matching(patterns []string) (*regexp.Regexp, error) {
	if len(patterns) == 0 {
		return nil, nil
	}
	return regexp.Compile(`\A(?:(?:` + strings.Join(patterns, `)|(?:`) + `))*\z`)
}
