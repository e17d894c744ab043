package stub

import (
	"encoding/json"
	"math/big"
	"strings"

	"github.com/zclconf/go-cty/cty"
)

// DataSource is what a state has of one data source: its type, and the attributes that it last had, as JSON.
type DataSource struct {
	Type       string
	Attributes json.RawMessage
}

// matches reports whether a data source with these arguments last had these attributes: each argument that is given is among them.
func (d DataSource) matches(kind string, arguments cty.Value) bool {
	if kind != d.Type {
		return false
	}
	decoder := json.NewDecoder(strings.NewReader(string(d.Attributes)))
	decoder.UseNumber()
	var attributes any
	return decoder.Decode(&attributes) == nil && covers(attributes, arguments)
}

// covers reports whether a value, as JSON decodes it, has all that is given. Providers of the older SDK keep null for what is given as empty.
func covers(value any, given cty.Value) bool {
	switch of := given.Type(); {
	case !given.IsKnown():
		return false
	case given.IsNull():
		return true
	case value == nil:
		return isWhollyEmpty(given)
	case of.IsObjectType() || of.IsMapType():
		object, ok := value.(map[string]any)
		for name, inner := range given.AsValueMap() {
			ok = ok && covers(object[name], inner)
		}
		return ok
	case of == cty.Number:
		number, ok := value.(json.Number)
		if !ok {
			return false
		}
		wanted := given.AsBigFloat() // a provider may have rounded it
		parsed, ok := new(big.Float).SetPrec(wanted.Prec()).SetString(number.String())
		return ok && parsed.Cmp(wanted) == 0
	case of == cty.String:
		return value == given.AsString()
	case of == cty.Bool:
		return value == given.True()
	}
	list, ok := value.([]any)
	inner := given.AsValueSlice()
	if !ok || len(list) != len(inner) {
		return false
	}
	for n := range inner {
		if !covers(list[n], inner[n]) {
			return false
		}
	}
	return true
}

// isWhollyEmpty reports whether nothing in a value is more than empty.
func isWhollyEmpty(value cty.Value) bool {
	of := value.Type()
	if !value.IsKnown() || value.IsNull() || !of.IsObjectType() && !of.IsMapType() {
		return isEmpty(value)
	}
	for _, inner := range value.AsValueMap() {
		if !isWhollyEmpty(inner) {
			return false
		}
	}
	return true
}
