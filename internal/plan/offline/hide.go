package offline

import (
	"maps"

	tfjson "github.com/hashicorp/terraform-json"

	"github.com/machine-iac/machine-iac-operator/internal/engine/redact"
)

// hide marks values that contain a sensitive string. Engines mark what they derive from a sensitive input, but not what
// a provider derives.
func hide(shown *tfjson.Plan, sensitive []string) {
	if len(sensitive) == 0 {
		return
	}
	secret := redact.New(sensitive).Contains
	for _, one := range shown.ResourceChanges {
		hideIn(one.Change, secret)
	}
	for _, one := range shown.OutputChanges {
		hideIn(one, secret)
	}
}

func hideIn(change *tfjson.Change, secret func(string) bool) {
	if change == nil {
		return
	}
	change.BeforeSensitive = marksOf(change.Before, change.BeforeSensitive, secret)
	change.AfterSensitive = marksOf(change.After, change.AfterSensitive, secret)
}

// marksOf adds marks for secret strings to the marks of a value.
func marksOf(value, marks any, secret func(string) bool) any {
	if marks == true {
		return marks
	}
	switch value := value.(type) {
	case string:
		if secret(value) {
			return true
		}
	case map[string]any:
		known, _ := marks.(map[string]any)
		all := map[string]any{}
		maps.Copy(all, known)
		for name, part := range value {
			if mark := marksOf(part, known[name], secret); mark != nil {
				all[name] = mark
			}
		}
		return all
	case []any:
		known, _ := marks.([]any)
		all := make([]any, len(value))
		for i, part := range value {
			var had any
			if i < len(known) {
				had = known[i]
			}
			if all[i] = marksOf(part, had, secret); all[i] == nil {
				all[i] = false
			}
		}
		return all
	}
	return marks
}
