package contract

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/module"
)

// checkUnless checks that a key that is ignored in favor of another one names a declared key.
func (m *Metadata) checkUnless(path string, index int) {
	keys := m.Spec.Credentials.Keys
	other := keys[index].Unless
	if other == "" {
		return
	}
	if i := slices.IndexFunc(keys, func(key v1alpha1.CredentialKey) bool { return key.Key == other }); i < 0 ||
		i == index || strings.Contains(other, "{") {
		m.AtField(path, fmt.Sprintf("is %q, which is not another of the keys", other),
			"use one of spec.credentials.keys, without fields in it")
	}
}

// checkMatches checks the expressions of a key.
func (m *Metadata) checkMatches(path string, key v1alpha1.CredentialKey) {
	m.checkPatterns(path+".matches", key.Matches)
	for i, part := range key.Parts {
		at := fmt.Sprintf("%s.parts[%d]", path, i)
		if len(part.Path) == 0 || slices.Contains(part.Path, "") {
			m.AtField(at+".path", "is empty, or has an empty step",
				`write the path of the value, for example [clouds, "*", auth, auth_url]`)
		}
		if len(part.Matches) == 0 {
			m.AtField(at+".matches", "is empty", "write an expression that the value must match")
		}
		m.checkPatterns(at+".matches", part.Matches)
	}
}

func (m *Metadata) checkPatterns(path string, patterns []string) {
	for i, pattern := range patterns {
		if _, err := regexp.Compile(pattern); err != nil {
			m.AtField(fmt.Sprintf("%s[%d]", path, i), "is not a regular expression: "+OneLine(err.Error()), "use RE2 syntax")
		}
	}
}

// checkKey checks a key of the credentials Secret, except for the fields that it names.
func (m *Metadata) checkKey(path, key string) {
	const fix = "use letters, digits, '-', '_' and '.', and {field} for the value of a field of the providerSpec"
	expanded, err := module.ExpandKey(key, func(string) (string, error) { return "x", nil })
	switch {
	case err != nil:
		m.AtField(path, fmt.Sprintf("is %q, which %s", key, err), fix)
	case len(validation.IsConfigMapKey(expanded)) > 0:
		m.AtField(path, fmt.Sprintf("is %q, which is not a valid key of a Secret", key), fix)
	}
}

// checkKeyFields checks that the fields in keys of the credentials Secret exist.
func checkKeyFields(meta *Metadata, providerSpec module.Variable) {
	for i, key := range meta.Spec.Credentials.Keys {
		at := fmt.Sprintf("spec.credentials.keys[%d].key", i)
		// Unbalanced braces have been reported already.
		_, _ = module.ExpandKey(key.Key, func(path string) (string, error) {
			if constraint, exists := fieldType(providerSpec.Type, path); !exists || constraint != cty.String {
				meta.AtField(at, fmt.Sprintf("is %q, but %q is not a string field of var.provider_spec", key.Key, path),
					"write the path of the field, joined by dots")
			}
			return "", nil
		})
	}
}
