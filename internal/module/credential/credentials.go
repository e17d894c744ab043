// Package credential reads what Secrets with credentials hold: values by key, and by a path in documents. It is pure.
package credential

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
)

// ExpandKey returns a key of the credentials Secret as module.yaml writes it, with every {path} in it replaced by what field returns
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

// Fault says why a value of a credentials Secret cannot be used.
type Fault struct {
	// Problem says what is wrong with the Secret, without the value.
	Problem string
	// Fix says what to do about it.
	Fix string
}

// String renders the fault.
func (f Fault) String() string { return f.Problem + "; " + f.Fix }

// Read returns what becomes of the data of a credentials Secret: environment variables, and files by the variables that
// carry their paths. The keys name no fields of the providerSpec any more.
func Read(keys []v1alpha1.CredentialKey, data map[string][]byte) (environment, files map[string]string, faults []Fault) {
	environment, files = map[string]string{}, map[string]string{}
	for _, key := range keys {
		if key.Unless != "" && len(data[key.Unless]) > 0 {
			continue
		}
		value, given := data[key.Key]
		if len(key.Path) > 0 && len(value) > 0 {
			part, err := ScalarIn(value, key.Path)
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

// SecretParts returns values that are a part of what a key of a credentials Secret holds, and must not be shown.
func SecretParts(keys []v1alpha1.CredentialKey, data map[string][]byte) []string {
	var parts []string
	for _, key := range keys {
		if len(key.Path) == 0 || key.Public || len(data[key.Key]) == 0 {
			continue
		}
		if part, err := ScalarIn(data[key.Key], key.Path); err == nil && part != "" {
			parts = append(parts, part)
		}
	}
	return parts
}

// faultOfPath says that a key has nothing where its path leads.
func faultOfPath(key v1alpha1.CredentialKey, err error) Fault {
	problem := fmt.Sprintf("the key %q of the Secret has no value at %s", key.Key, strings.Join(key.Path, "."))
	var limit *LimitError
	if errors.As(err, &limit) {
		return Fault{fmt.Sprintf("the key %q of the Secret %s", key.Key, limit.Problem), limit.Fix}
	}
	if err != nil {
		problem = fmt.Sprintf("the key %q of the Secret is neither YAML nor JSON", key.Key)
	}
	return Fault{problem, "write it as the module's README says"}
}

// faultOf returns what is wrong with the value of a key, nil for nothing.
func faultOf(key v1alpha1.CredentialKey, value []byte, given bool) *Fault {
	switch {
	case len(value) == 0 && key.Optional:
		return nil
	case len(value) == 0 && given:
		return &Fault{fmt.Sprintf("the Secret needs the key %q, but it is empty", key.Key), "add it to the Secret's data"}
	case len(value) == 0:
		return &Fault{fmt.Sprintf("the Secret needs the key %q, but it is missing", key.Key), "add it to the Secret's data"}
	case key.File == "" && bytes.ContainsRune(value, 0):
		return &Fault{fmt.Sprintf("the key %q of the Secret holds a null byte, which an environment variable cannot", key.Key), "write text"}
	}
	if accepted, err := matching(key.Matches); err != nil || accepted != nil && !accepted.Match(value) {
		return &Fault{
			fmt.Sprintf("the key %q of the Secret has a value that the module does not accept", key.Key),
			"write what the module's README says, and nothing else",
		}
	}
	return faultOfParts(key, value)
}

// matching returns an expression for values that consist of texts which match the patterns; nil when there are none.
func matching(patterns []string) (*regexp.Regexp, error) {
	if len(patterns) == 0 {
		return nil, nil
	}
	return regexp.Compile(`\A(?:(?:` + strings.Join(patterns, `)|(?:`) + `))*\z`)
}
