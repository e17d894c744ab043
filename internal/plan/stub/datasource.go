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
		return isNumber(value, given)
	case of == cty.String:
		return value == given.AsString()
	case of == cty.Bool:
		return value == given.True()
	}
	return coversAll(value, given.AsValueSlice())
}

func coversAll(value any, given []cty.Value) bool {
	list, ok := value.([]any)
	if !ok || len(list) != len(given) {
		return false
	}
	for n := range given {
		if !covers(list[n], given[n]) {
			return false
		}
	}
	return true
}

// isNumber reports whether a value is the number that is given, which a provider may have rounded.
func isNumber(value any, given cty.Value) bool {
	number, ok := value.(json.Number)
	if !ok {
		return false
	}
	wanted := given.AsBigFloat()
	parsed, ok := new(big.Float).SetPrec(wanted.Prec()).SetString(number.String())
	return ok && parsed.Cmp(wanted) == 0
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
