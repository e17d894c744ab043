package module

import (
	"maps"
	"slices"
)

// Default is a default for a field of the providerSpec.
type Default struct {
	// Path of the field, joined by dots.
	Path string
	// Unless are paths of fields. If any of them is set, the default does not apply.
	Unless []string
	// Literal is the value from module.yaml, as decoded JSON with numbers as json.Number.
	Literal any
	// ByArchitecture replaces Literal depending on the architecture of the cluster's Nodes.
	ByArchitecture map[string]any
}

// Value returns the default as decoded JSON with numbers as json.Number, or the names of the
// cluster values that it needs but are unknown.
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
		return nil, missing // braces are checked when the module is loaded
	}
	return filled, nil
}

// ExpandValue returns a copy of decoded JSON in which each {name} in a string, except in keys, is
// replaced by its value.
func ExpandValue(value any, lookup func(name string) (string, error)) (any, error) {
	switch value := value.(type) {
	case string:
		return ExpandKey(value, lookup)
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

// IsUnset reports whether decoded JSON counts as unset: null, "", [], or an object whose fields are
// all unset, which clients write for unset fields. {} counts as set, since only an author writes
// it.
func IsUnset(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case string:
		return value == ""
	case []any:
		return len(value) == 0
	case map[string]any:
		return len(value) > 0 &&
			!slices.ContainsFunc(slices.Collect(maps.Values(value)), func(inner any) bool { return !IsUnset(inner) })
	default:
		return false
	}
}
