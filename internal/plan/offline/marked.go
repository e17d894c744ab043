package offline

import "github.com/machine-iac/machine-iac-operator/internal/engine/pulumi"

// marked is a decoded JSON value with marks: true in place of each unknown value or subtree.
type marked struct{ value, unknown any }

func (m marked) member(name string) marked {
	object, _ := m.value.(map[string]any)
	marks, _ := m.unknown.(map[string]any)
	return marked{value: object[name], unknown: marks[name]}
}

func (m marked) entry(n int) marked {
	list, _ := m.value.([]any)
	marks, _ := m.unknown.([]any)
	one := marked{value: list[n]}
	if n < len(marks) {
		one.unknown = marks[n]
	}
	return one
}

// filled returns the value with Pulumi's marker for unknown values.
func (m marked) filled() any {
	if m.unknown == true {
		return pulumi.UnknownValue
	}
	switch value := m.value.(type) {
	case map[string]any:
		filled := map[string]any{}
		for name := range value {
			filled[name] = m.member(name).filled()
		}
		return filled
	case []any:
		filled := make([]any, len(value))
		for n := range value {
			filled[n] = m.entry(n).filled()
		}
		return filled
	}
	return m.value
}
