package inspect

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/machine-iac/machine-iac-operator/internal/engine/redact"
)

// Masked stands for a sensitive value.
const Masked = "(sensitive)"

// shortestCopy is the shortest sensitive text whose copies are masked too. Shorter ones ("true", "root") occur everywhere.
const shortestCopy = 6

// secretNames are names of attributes that hold secrets although they are not marked, as older engines do not write down what a provider's
// schema marks.
var secretNames = regexp.MustCompile(`(?i)(passw|secret|token|private_?key|credential|kubeconfig|user_?data|custom_?data|ignition)`)

// mask hides sensitive values and remembers them, to hide their copies too.
type mask struct{ texts []string }

// hide returns the mask of a value. An empty value needs none.
func (m *mask) hide(value any) any {
	if value == nil || value == "" {
		return value
	}
	m.remember(value)
	return Masked
}

func (m *mask) remember(value any) {
	switch value := value.(type) {
	case string:
		if len(value) >= shortestCopy {
			m.texts = append(m.texts, value)
		}
	case []any:
		for _, element := range value {
			m.remember(element)
		}
	case map[string]any:
		for _, element := range value {
			m.remember(element)
		}
	}
}

// step is a part of a path to a sensitive attribute.
type step struct {
	Type  string          `json:"type"`
	Value json.RawMessage `json:"value"`
}

// attributes hides those that are marked and those with a name of secretNames. Marks that cannot be read hide everything.
func (m *mask) attributes(all map[string]any, marks json.RawMessage) map[string]any {
	var paths [][]step
	if len(marks) > 0 && json.Unmarshal(marks, &paths) != nil {
		hidden := map[string]any{}
		for name, value := range all {
			hidden[name] = m.hide(value)
		}
		return hidden
	}
	changed := maps.Clone(all)
	for _, path := range paths {
		name, ok := "", false
		if len(path) > 0 {
			name, ok = path[0].key()
		}
		if !ok { // a mark of everything, or one that cannot be read
			return m.attributes(all, json.RawMessage("{}"))
		}
		if value, there := changed[name]; there {
			changed[name] = m.marked(value, path[1:])
		}
	}
	for name, value := range changed {
		changed[name] = replaced(name, value, m.named)
	}
	return changed
}

// marked hides what a path leads to. A path that cannot be followed hides where it ends.
func (m *mask) marked(value any, path []step) any {
	if len(path) == 0 {
		return m.hide(value)
	}
	switch value := value.(type) {
	case map[string]any:
		key, ok := path[0].key()
		if !ok {
			return m.hide(value)
		}
		below, there := value[key]
		if !there {
			return m.hide(value)
		}
		changed := maps.Clone(value)
		changed[key] = m.marked(below, path[1:])
		return changed
	case []any:
		at, ok := path[0].index()
		if !ok || at >= len(value) {
			return m.hide(value)
		}
		changed := slices.Clone(value)
		changed[at] = m.marked(value[at], path[1:])
		return changed
	}
	return m.hide(value)
}

// key returns the name of an attribute, or the key in a map, which is written as an object of value and type.
func (s step) key() (string, bool) {
	var key string
	if json.Unmarshal(s.Value, &key) == nil {
		return key, true
	}
	var typed struct{ Value *string }
	if json.Unmarshal(s.Value, &typed) != nil || typed.Value == nil {
		return "", false
	}
	return *typed.Value, true
}

func (s step) index() (int, bool) {
	var typed struct{ Value *int }
	if json.Unmarshal(s.Value, &typed) != nil || typed.Value == nil || *typed.Value < 0 {
		return 0, false
	}
	return *typed.Value, true
}

// named hides a text with a name of secretNames. Numbers and booleans are about a secret, and are none.
func (m *mask) named(name, text string) any {
	if secretNames.MatchString(name) {
		return m.hide(text)
	}
	return text
}

// replaced returns a copy of decoded JSON with each text replaced. name is that of the nearest attribute.
func replaced(name string, value any, replace func(name, text string) any) any {
	switch value := value.(type) {
	case map[string]any:
		changed := map[string]any{}
		for key, element := range value {
			changed[key] = replaced(key, element, replace)
		}
		return changed
	case []any:
		changed := make([]any, len(value))
		for i, element := range value {
			changed[i] = replaced(name, element, replace)
		}
		return changed
	case string:
		return replace(name, value)
	}
	return value
}

// copies hides what is a copy of something hidden or of a value in it, where that is a document, in whatever encoding, or holds one.
func (m *mask) copies(shown *State) {
	texts := slices.DeleteFunc(m.texts, func(text string) bool { return text == Masked })
	parts := redact.New(texts)
	hidden := func(_, text string) any {
		if parts.Contains(text) || slices.ContainsFunc(texts, func(whole string) bool { return strings.Contains(text, whole) }) {
			return Masked
		}
		return text
	}
	for i := range shown.Resources {
		all := shown.Resources[i].Attributes
		for name, value := range all {
			all[name] = replaced(name, value, hidden)
		}
	}
	for name, value := range shown.Outputs {
		shown.Outputs[name] = replaced(name, value, hidden)
	}
}
