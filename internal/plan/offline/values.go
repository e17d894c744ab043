package offline

import (
	"maps"
	"slices"
)

// Values are those of a resource or of all outputs, as decoded JSON with json.Number.
type Values struct {
	// Before has the values before the change; nil for a new resource.
	Before any
	// After has the values after the change, without unknown ones.
	After any
	// Unknown and Sensitive have true in place of each unknown or sensitive value.
	Unknown, Sensitive any
	// SensitiveBefore is Sensitive for Before.
	SensitiveBefore any
}

// Member returns the values of an object's attribute. Every member of an unknown object is unknown.
func (v Values) Member(name string) Values {
	if v.Unknown == true {
		return Values{Unknown: true}
	}
	return Values{After: memberOf(v.After, name), Unknown: memberOf(v.Unknown, name),
		Sensitive: memberOf(v.Sensitive, name)}
}

// Len returns the length of a list.
func (v Values) Len() int {
	after, _ := v.After.([]any)
	unknown, _ := v.Unknown.([]any)
	return max(len(after), len(unknown))
}

// Item returns the values at an index of a list.
func (v Values) Item(n int) Values {
	return Values{After: itemOf(v.After, n), Unknown: itemOf(v.Unknown, n), Sensitive: itemOf(v.Sensitive, n)}
}

func memberOf(value any, name string) any {
	object, _ := value.(map[string]any)
	return object[name]
}

func itemOf(value any, n int) any {
	if list, ok := value.([]any); ok && n < len(list) {
		return list[n]
	}
	return nil
}

// AnyMarked reports whether marks contain true.
func AnyMarked(marks any) bool {
	switch marks := marks.(type) {
	case bool:
		return marks
	case map[string]any:
		return slices.ContainsFunc(slices.Collect(maps.Values(marks)), AnyMarked)
	case []any:
		return slices.ContainsFunc(marks, AnyMarked)
	}
	return false
}
