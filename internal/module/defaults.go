package module

import (
	"maps"
	"slices"

	"github.com/machine-iac/machine-iac-operator/internal/module/credential"
)

// Default is a field of the providerSpec that is filled in.
type Default struct {
	// Path is the field, its parts joined by dots.
	Path string
	// Unless are paths of fields, any of which keeps the value from being filled in.
	Unless []string
	// Literal is the value as module.yaml has it, as decoded JSON with numbers as json.Number.
	Literal any
	// ByArchitecture holds what replaces Literal where the cluster's Nodes have an architecture.
	ByArchitecture map[string]any
}

// Value returns what is filled in, as decoded JSON with numbers as json.Number, or the names of the cluster's values that it lacks.
func (d Default) Value(cluster ClusterValues) (value any, missing []string) {
	value = d.Literal
	if other, given := d.ByArchitecture[cluster[ValueArchitecture]]; given {
		value = other
	}
	filled, err := ExpandValue(value, func(name string) (string, error) {
		if cluster[name] == "" && !slices.Contains(missing, name) {
			missing = append(missing, name)
		}
		return cluster[name], nil
	})
	if err != nil || len(missing) > 0 {
		return nil, missing // braces are seen to when the module is loaded
	}
	return filled, nil
}

// ExpandValue returns a copy of decoded JSON with values in place of their names in braces, in every text but keys.
func ExpandValue(value any, lookup func(name string) (string, error)) (any, error) {
	switch value := value.(type) {
	case string:
		return credential.ExpandKey(value, lookup)
	case []any:
		items := make([]any, 0, len(value))
		for _, item := range value {
			filled, err := ExpandValue(item, lookup)
			if err != nil {
				return nil, err
			}
			items = append(items, filled)
		}
		return items, nil
	case map[string]any:
		fields := map[string]any{}
		for name, inner := range value {
			filled, err := ExpandValue(inner, lookup)
			if err != nil {
				return nil, err
			}
			fields[name] = filled
		}
		return fields, nil
	default:
		return value, nil
	}
}

// IsUnset reports whether decoded JSON counts as unset: null, "", [], or an object with fields that are all unset, which clients write for a
// field without a value. {} is written by nobody but an author.
func IsUnset(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case string:
		return value == ""
	case []any:
		return len(value) == 0
	case map[string]any:
		return len(value) > 0 && !slices.ContainsFunc(slices.Collect(maps.Values(value)), func(inner any) bool { return !IsUnset(inner) })
	default:
		return false
	}
}
