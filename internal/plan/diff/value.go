package diff

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/machine-iac/machine-iac-operator/internal/engine"

	"github.com/machine-iac/machine-iac-operator/internal/plan/text"
)

// Resource is a planned change of a resource.
type Resource struct {
	Address    string        `json:"address"`
	Type       string        `json:"type"`
	Action     engine.Action `json:"action"`
	Attributes []Attribute   `json:"attributes"`
	// Unsure reports that the provider has not confirmed the change.
	Unsure bool `json:"unsure,omitempty"`
}

// Attribute is one value inside of a resource.
type Attribute struct {
	// Path is names joined by dots, and indices and odd names in brackets.
	Path   string        `json:"path"`
	Action engine.Action `json:"action"`
	// Before is set where the attribute changes or goes.
	Before *Value `json:"before,omitempty"`
	Value
	// Forces reports that it is why a resource is replaced, or why a new Machine is needed.
	Forces bool `json:"forces,omitempty"`
}

// Value is known, or known after an apply, or sensitive. The zero value is null.
type Value struct {
	Value     any  `json:"value,omitempty"`
	Unknown   bool `json:"unknown,omitempty"`
	Sensitive bool `json:"sensitive,omitempty"`
}

// Text returns a value for people: as JSON, or why it is not shown.
func (v Value) Text() string {
	switch {
	case v.Sensitive:
		return sensitiveText
	case v.Unknown:
		return UnknownText
	}
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v.Value); err != nil {
		return text.Printable(fmt.Sprint(v.Value))
	}
	return text.Printable(strings.TrimSuffix(out.String(), "\n"))
}

// Cell returns a value for a table, without quotes.
func (v Value) Cell() string {
	if raw, ok := v.Value.(string); ok {
		return text.Printable(raw)
	}
	if v.Value == nil && !v.Unknown && !v.Sensitive {
		return ""
	}
	return v.Text()
}

// What is shown in place of a value.
const (
	// UnknownText is for a value that is known after an apply.
	UnknownText   = "(known after apply)"
	sensitiveText = "(sensitive)"
)
