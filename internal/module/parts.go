package module

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
)

// everywhere is the path step for all fields or elements.
const everywhere = "*"

// faultOfParts returns what is wrong with the parts of a key's value, or nil. It rejects duplicate
// fields, since parsers disagree on which of them counts.
func faultOfParts(key v1alpha1.CredentialKey, value []byte) *CredentialFault {
	if len(key.Parts) == 0 || len(value) == 0 {
		return nil
	}
	document, err := read(value, yaml.YAMLToJSONStrict)
	if err != nil {
		fault := faultOfPath(key, err)
		if errors.Is(err, errNoDocument) {
			fault.Problem += ", or has a duplicate field"
		}
		return &fault
	}
	for _, part := range key.Parts {
		accepted, err := whole(part.Matches)
		if err != nil || !slices.ContainsFunc(valuesAt(document, part.Path), func(found any) bool { return found != nil && !accepted.MatchString(scalarAt(found)) }) {
			continue
		}
		return &CredentialFault{
			fmt.Sprintf("the key %q of the Secret has a value at %s that the module does not accept", key.Key, strings.Join(part.Path, ".")),
			"write only what the module's README says",
		}
	}
	return nil
}

// whole returns an expression for texts that one of the patterns matches as a whole.
func whole(patterns []string) (*regexp.Regexp, error) {
	return regexp.Compile(`\A(?:(?:` + strings.Join(patterns, `)|(?:`) + `))\z`)
}

// valuesAt returns the values at a path with *.
func valuesAt(value any, path []string) []any {
	if len(path) == 0 {
		return []any{value}
	}
	var inner []any
	switch part := value.(type) {
	case map[string]any:
		for name, one := range part {
			if path[0] == name || path[0] == everywhere {
				inner = append(inner, one)
			}
		}
	case []any:
		for position, one := range part {
			if path[0] == strconv.Itoa(position) || path[0] == everywhere {
				inner = append(inner, one)
			}
		}
	}
	var found []any
	for _, one := range inner {
		found = append(found, valuesAt(one, path[1:])...)
	}
	return found
}

// Hides reports whether the value of a key of the credentials Secret must be masked in messages.
// The module says so of the keys that it reads. Of the others only those are shown whose names say
// where or who something is, because a masked namespace or user makes a message useless.
func Hides(keys []v1alpha1.CredentialKey, name string) bool {
	read := slices.DeleteFunc(slices.Clone(keys), func(key v1alpha1.CredentialKey) bool { return key.Key != name })
	if len(read) == 0 {
		return !publicKey.MatchString(name)
	}
	return slices.ContainsFunc(read, func(key v1alpha1.CredentialKey) bool { return !key.Public || len(key.Path) > 0 })
}

var publicKey = regexp.MustCompile(`(?i)^(namespace|ca\.crt|ca|region|zone|user(name)?|project|domain)$`)
