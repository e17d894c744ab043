package program

import "github.com/machine-iac/machine-iac-operator/internal/engine/pulumi"

// marked is a value, as JSON decodes it, with marks of what is unknown: true in place of a value, or of everything in it.
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

// filled returns the value with Pulumi's mark in place of what is unknown.
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
