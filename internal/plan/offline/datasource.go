package offline

import (
	"encoding/json"
	"math/big"
	"strings"

	"github.com/zclconf/go-cty/cty"
)

// dataSource is a data source in a state: its type and its last attributes, as JSON.
type dataSource struct {
	Type       string
	Attributes json.RawMessage
}

// matches reports whether the last attributes include each given argument.
func (d dataSource) matches(kind string, arguments cty.Value) bool {
	if kind != d.Type {
		return false
	}
	decoder := json.NewDecoder(strings.NewReader(string(d.Attributes)))
	decoder.UseNumber()
	var attributes any
	return decoder.Decode(&attributes) == nil && covers(attributes, arguments)
}

// covers reports whether a decoded JSON value has everything that is given. Providers with the older SDK keep null for
// an empty argument.
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

// isNumber reports whether a value equals the given number, which a provider may have rounded.
func isNumber(value any, given cty.Value) bool {
	number, ok := value.(json.Number)
	if !ok {
		return false
	}
	wanted := given.AsBigFloat()
	parsed, ok := new(big.Float).SetPrec(wanted.Prec()).SetString(number.String())
	return ok && parsed.Cmp(wanted) == 0
}

// isWhollyEmpty reports whether a value has only empty parts.
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
