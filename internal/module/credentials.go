package module

import (
	"errors"
	"fmt"
	"strings"

	"github.com/zclconf/go-cty/cty"
	"k8s.io/apimachinery/pkg/util/validation"
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

// checkKey checks a key of the credentials Secret but for the fields that it names.
func (m *metadata) checkKey(path, key string) {
	const mend = "use letters, digits, '-', '_' and '.', and {field} for the value of a field of the providerSpec"
	expanded, err := ExpandKey(key, func(string) (string, error) { return "x", nil })
	switch {
	case err != nil:
		m.breach(path, fmt.Sprintf("is %q, which %s", key, err), mend)
	case len(validation.IsConfigMapKey(expanded)) > 0:
		m.breach(path, fmt.Sprintf("is %q, which cannot be a key of a Secret", key), mend)
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
