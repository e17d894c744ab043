package preview

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/machine-iac/machine-iac-operator/internal/engine"

	"github.com/machine-iac/machine-iac-operator/internal/inspect/print"
)

// Resource is a planned change of a resource.
type Resource struct {
	Address    string        `json:"address"`
	Type       string        `json:"type"`
	Action     engine.Action `json:"action"`
	Attributes []Attribute   `json:"attributes"`
	// Unsure marks a change that the provider has not confirmed.
	Unsure bool `json:"unsure,omitempty"`
}

// Attribute is a value in a resource.
type Attribute struct {
	// Path joins names by dots, with indices and unusual names in brackets.
	Path   string        `json:"path"`
	Action engine.Action `json:"action"`
	// Before is set if the attribute changes or is removed.
	Before *Value `json:"before,omitempty"`
	Value
	// Forces marks an attribute that forces a replacement of the resource or the Machine.
	Forces bool `json:"forces,omitempty"`
}

// Value is known, known after an apply, or sensitive. The zero value is null.
type Value struct {
	Value     any  `json:"value,omitempty"`
	Unknown   bool `json:"unknown,omitempty"`
	Sensitive bool `json:"sensitive,omitempty"`
}

// Text returns the value as JSON, or why it is hidden.
func (v Value) Text() string {
	switch {
	case v.Sensitive:
		return sensitiveText
	case v.Unknown:
		return unknownText
	}
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v.Value); err != nil {
		return print.Printable(fmt.Sprint(v.Value))
	}
	return print.Printable(strings.TrimSuffix(out.String(), "\n"))
}

// Cell returns the value for a table, without quotes.
func (v Value) Cell() string {
	if raw, ok := v.Value.(string); ok {
		return print.Printable(raw)
	}
	if v.Value == nil && !v.Unknown && !v.Sensitive {
		return ""
	}
	return v.Text()
}

// Replacements for hidden values.
const (
	unknownText   = "(known after apply)"
	sensitiveText = "(sensitive)"
)
