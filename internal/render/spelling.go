package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/machine-iac/machine-iac-operator/internal/module"
)

// speller renames fields to the spelling of a type, like encoding/json: an exact match wins, else
// one that differs only in case.
type speller struct {
	*findings
}

// spelt returns a providerSpec's values with field names spelled as in the module's type, or values
// itself if the kind has no field aliases and is case-sensitive.
func spelt(from *module.Module, kind string, values map[string]any, found *findings) map[string]any {
	values = withoutAliases(from.FieldAliases(kind), values, found)
	if !from.FoldsCase(kind) {
		return values
	}
	return speller{found}.object(valuePath, values, from.Variable(module.VariableProviderSpec).Type)
}

// withoutAliases returns the values with aliases of fields replaced by the module's names.
func withoutAliases(aliases map[string]string, values map[string]any, found *findings) map[string]any {
	out := values
	for _, alias := range slices.Sorted(maps.Keys(aliases)) {
		value, given := values[alias]
		if !given {
			continue
		}
		canonical := aliases[alias]
		if _, twice := out[canonical]; twice {
			found.fail(givenTwice(fieldPath(valuePath, canonical), canonical, alias, canonical))
			continue
		}
		found.warn(readAs(fieldPath(valuePath, alias), canonical))
		out = maps.Clone(out)
		delete(out, alias)
		out[canonical] = value
	}
	return out
}

func givenTwice(at, one, other, canonical string) *FieldError {
	return &FieldError{Path: at, Problem: fmt.Sprintf("it is given twice, as %s and as %s", one, other),
		Fix: "keep one, as " + canonical}
}

func readAs(at, canonical string) Warning {
	return Warning{Path: at, Message: "read as " + canonical, Hint: "write it so", Canonical: canonical}
}

func (s speller) object(path string, fields map[string]any, wanted cty.Type) map[string]any {
	known := slices.Sorted(maps.Keys(wanted.AttributeTypes()))
	out := make(map[string]any, len(fields))
	given := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		canonical := canonicalName(name, known)
		if canonical == "" {
			out[name] = fields[name]
			continue
		}
		at := fieldPath(path, canonical)
		if other, twice := given[canonical]; twice {
			s.fail(givenTwice(at, other, name, canonical))
			continue
		}
		given[canonical] = name
		if name != canonical {
			s.warn(readAs(fieldPath(path, name), canonical))
		}
		out[canonical] = s.value(at, fields[name], wanted.AttributeType(canonical))
	}
	return out
}

// canonicalName returns the known name that a name matches, or "".
func canonicalName(name string, known []string) string {
	if slices.Contains(known, name) {
		return name
	}
	if at := slices.IndexFunc(known, func(one string) bool { return strings.EqualFold(one, name) }); at >= 0 {
		return known[at]
	}
	return ""
}

func (s speller) value(path string, raw any, wanted cty.Type) any {
	switch raw := raw.(type) {
	case map[string]any:
		switch {
		case wanted.IsObjectType():
			return s.object(path, raw, wanted)
		case wanted.IsMapType():
			out := make(map[string]any, len(raw))
			for key, inner := range raw {
				out[key] = s.value(fieldPath(path, key), inner, wanted.ElementType())
			}
			return out
		}
	case []any:
		return s.list(path, raw, wanted)
	}
	return raw
}

func (s speller) list(path string, items []any, wanted cty.Type) any {
	out := make([]any, 0, len(items))
	for n, item := range items {
		switch {
		case wanted.IsListType(), wanted.IsSetType():
			item = s.value(indexPath(path, n), item, wanted.ElementType())
		case wanted.IsTupleType() && n < wanted.Length():
			item = s.value(indexPath(path, n), item, wanted.TupleElementType(n))
		}
		out = append(out, item)
	}
	return out
}

// writtenAs returns the key of a field in an object: an exact match, or one in another case if the
// kind is case-insensitive.
func writtenAs(fields map[string]any, name string, folds bool) string {
	if _, exact := fields[name]; exact || !folds {
		return name
	}
	for _, other := range slices.Sorted(maps.Keys(fields)) {
		if strings.EqualFold(other, name) {
			return other
		}
	}
	return name
}
