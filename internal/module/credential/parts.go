package credential

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

// everywhere is the step of a path that leads to all fields and all entries.
const everywhere = "*"

// faultOfParts returns what is wrong with the parts of what a key holds, nil for nothing. A field that is given twice is refused: which of them
// counts is up to whoever reads it.
func faultOfParts(key v1alpha1.CredentialKey, value []byte) *Fault {
	if len(key.Parts) == 0 || len(value) == 0 {
		return nil
	}
	document, err := read(value, yaml.YAMLToJSONStrict)
	if limit, is := errors.AsType[*LimitError](err); is {
		return &Fault{fmt.Sprintf("the key %q of the Secret %s", key.Key, limit.Problem), limit.Fix}
	}
	if err != nil {
		return &Fault{fmt.Sprintf("the key %q of the Secret is neither YAML nor JSON, or has a field twice", key.Key), "write it as the module's README says"}
	}
	for _, part := range key.Parts {
		accepted, err := whole(part.Matches)
		if err != nil || !slices.ContainsFunc(valuesAt(document, part.Path), func(found any) bool { return found != nil && !accepted.MatchString(ScalarAt(found)) }) {
			continue
		}
		return &Fault{
			fmt.Sprintf("the key %q of the Secret has a value at %s that the module does not accept", key.Key, strings.Join(part.Path, ".")),
			"write what the module's README says, and nothing else",
		}
	}
	return nil
}

// whole returns an expression for texts that one of the patterns matches as a whole.
func whole(patterns []string) (*regexp.Regexp, error) {
	return regexp.Compile(`\A(?:(?:` + strings.Join(patterns, `)|(?:`) + `))\z`)
}

// valuesAt returns what a path with * leads to.
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
