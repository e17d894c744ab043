package render

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/machine-iac/machine-iac-operator/internal/module"
)

// converter converts decoded JSON to a variable's type.
type converter struct {
	*findings
	// hide means that messages must not show any value.
	hide bool
}

// convertValues returns a providerSpec's values in the variable's type, with defaults applied. It
// adds errors and warnings to found. Invalid values become unknown, so that the rest can still be
// checked.
func convertValues(s *spec, variable module.Variable, found *findings) cty.Value {
	c := converter{findings: found, hide: variable.Sensitive}
	value := c.value(s.at, s.values, variable.Type)
	if variable.Defaults != nil {
		value = variable.Defaults.Apply(value)
	}
	converted, err := convert.Convert(value, variable.Type)
	if err != nil {
		// Unreachable unless value and convert disagree, but a module's own defaults may surprise.
		found.fail(&FieldError{Path: s.at, Problem: "it does not fit the module's variable provider_spec: " +
			err.Error()})
		return unknown(variable.Type)
	}
	return converted
}

// unknown returns an unknown value of a type.
func unknown(wanted cty.Type) cty.Value {
	return cty.UnknownVal(wanted.WithoutOptionalAttributesDeep())
}

// value returns raw as a value that converts to the wanted type. Lists are still tuples, and maps
// objects, since optional attributes may make their elements differ until defaults are applied.
func (c converter) value(path string, raw any, wanted cty.Type) cty.Value {
	switch {
	case wanted.IsPrimitiveType():
		return c.primitive(path, raw, wanted)
	case wanted.IsObjectType():
		if fields, ok := raw.(map[string]any); ok {
			return c.object(path, fields, wanted)
		}
	case wanted.IsMapType():
		if fields, ok := raw.(map[string]any); ok {
			return c.mapping(path, fields, wanted.ElementType())
		}
	case wanted.IsListType(), wanted.IsSetType():
		if items, ok := raw.([]any); ok {
			return c.list(path, items, func(int) cty.Type { return wanted.ElementType() })
		}
	case wanted.IsTupleType():
		if items, ok := raw.([]any); ok && len(items) == wanted.Length() {
			return c.list(path, items, wanted.TupleElementType)
		}
	}
	return c.mismatch(path, raw, wanted)
}

func (c converter) primitive(path string, raw any, wanted cty.Type) cty.Value {
	var value cty.Value
	switch raw := raw.(type) {
	case string:
		if wanted == cty.Number {
			return c.numeral(path, raw)
		}
		value = cty.StringVal(raw)
	case bool:
		value = cty.BoolVal(raw)
	case json.Number:
		number, err := cty.ParseNumberVal(raw.String())
		if err != nil {
			return c.mismatch(path, raw, wanted)
		}
		value = number
	default:
		return c.mismatch(path, raw, wanted)
	}
	converted, err := convert.Convert(value, wanted)
	if err != nil {
		return c.mismatch(path, raw, wanted)
	}
	return converted
}

// numeral returns the number in a string. It rejects numbers out of bounds, and words like "Inf".
func (c converter) numeral(path, raw string) cty.Value {
	if !decimal.MatchString(raw) {
		return c.mismatch(path, raw, cty.Number)
	}
	if failed := checkNumber(path, json.Number(raw)); failed != nil {
		if c.hides(path) {
			failed.Value = ""
		}
		c.fail(failed)
		return unknown(cty.Number)
	}
	number, err := cty.ParseNumberVal(raw)
	if err != nil {
		return c.mismatch(path, raw, cty.Number)
	}
	return number
}

var decimal = regexp.MustCompile(`^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$`)

func (c converter) object(path string, fields map[string]any, wanted cty.Type) cty.Value {
	known := wanted.AttributeTypes()
	values := map[string]cty.Value{}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		// As elsewhere in the API, null means unset.
		if raw, given := fields[name]; given && raw != nil {
			values[name] = c.value(fieldPath(path, name), raw, known[name])
			continue
		}
		if !wanted.AttributeOptional(name) {
			c.fail(&FieldError{
				Path: fieldPath(path, name), Fault: Missing, Problem: typeName(known[name]) + " is required, but it " +
					"is missing",
				Fix: fmt.Sprintf("add %s: %s", name, sample(known[name])),
			})
			values[name] = unknown(known[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if _, ok := known[name]; !ok && len(c.warnings) < maxFindings {
			c.unknown(fieldPath(path, name), spelling(name, slices.Sorted(maps.Keys(known))))
		}
	}
	return cty.ObjectVal(values)
}

// spelling returns a hint if a field is close to a known one.
func spelling(name string, known []string) string {
	fold := func(text string) string {
		return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(text))
	}
	for _, candidate := range known {
		if len(name) <= 2*len(candidate) && fold(candidate) == fold(name) {
			return "write it as " + candidate
		}
	}
	if best := closest(name, known); best != "" {
		return fmt.Sprintf("did you mean %q?", best)
	}
	return ""
}

func (c converter) mapping(path string, fields map[string]any, wanted cty.Type) cty.Value {
	values := map[string]cty.Value{}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		values[name] = c.value(fieldPath(path, name), fields[name], wanted)
	}
	return cty.ObjectVal(values)
}

func (c converter) list(path string, items []any, wanted func(index int) cty.Type) cty.Value {
	values := make([]cty.Value, 0, len(items))
	for i, item := range items {
		values = append(values, c.value(indexPath(path, i), item, wanted(i)))
	}
	return cty.TupleVal(values)
}

// mismatch reports that raw has the wrong type.
func (c converter) mismatch(path string, raw any, wanted cty.Type) cty.Value {
	failed := &FieldError{Path: path, Fix: fix(path, wanted)}
	if !c.hides(path) {
		failed.Value = show(raw)
	}
	subject := "it"
	if failed.Value != "" && raw != nil {
		subject = failed.Value
	}
	failed.Problem = fmt.Sprintf("%s is required, but %s is %s", typeName(wanted), subject, nameOf(raw))
	c.fail(failed)
	return unknown(wanted)
}

// hides reports whether the value at a path must not be shown.
func (c converter) hides(path string) bool {
	return c.hide || module.NamesSecret(strings.TrimPrefix(path, valuePath))
}

// show returns a scalar as shortened JSON, or "" for lists and objects, whose kind says more.
func show(raw any) string {
	switch raw := raw.(type) {
	case string:
		return fmt.Sprintf("%q", shorten(raw))
	case json.Number:
		return shorten(raw.String())
	case bool:
		return fmt.Sprint(raw)
	default:
		return ""
	}
}

// fix returns how to write a value of the type at the path.
func fix(path string, wanted cty.Type) string {
	if at := strings.LastIndex(path, "."); at >= 0 && !strings.HasSuffix(path, "]") {
		return "write it as " + path[at+1:] + ": " + sample(wanted)
	}
	return "write it as " + sample(wanted)
}

// typeName returns the type's name for people, with an article.
func typeName(wanted cty.Type) string {
	switch {
	case wanted == cty.String:
		return "a string"
	case wanted == cty.Number:
		return "a number"
	case wanted == cty.Bool:
		return "a bool"
	case wanted.IsListType(), wanted.IsSetType():
		return "a list"
	case wanted.IsTupleType():
		return fmt.Sprintf("a list of %d items", wanted.Length())
	case wanted.IsMapType():
		return "a map"
	default:
		return "an object"
	}
}

// sample returns an example of the type in YAML's flow style, required fields only.
func sample(wanted cty.Type) string {
	switch {
	case wanted == cty.Number:
		return "4"
	case wanted == cty.Bool:
		return "true"
	case wanted == cty.String:
		return `"text"`
	case wanted.IsListType(), wanted.IsSetType():
		return "[" + sample(wanted.ElementType()) + "]"
	case wanted.IsTupleType():
		items := make([]string, 0, wanted.Length())
		for _, item := range wanted.TupleElementTypes() {
			items = append(items, sample(item))
		}
		return "[" + strings.Join(items, ", ") + "]"
	case wanted.IsMapType():
		return "{key: " + sample(wanted.ElementType()) + "}"
	}
	var fields []string
	for _, name := range slices.Sorted(maps.Keys(wanted.AttributeTypes())) {
		if !wanted.AttributeOptional(name) {
			fields = append(fields, name+": "+sample(wanted.AttributeType(name)))
		}
	}
	return "{" + strings.Join(fields, ", ") + "}"
}
