package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"testing"

	"github.com/zclconf/go-cty/cty"
)

// This file compares what a user wrote with what was rendered, as JSON without HCL's types.

func decodeJSON(t testing.TB, raw []byte) any {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var decoded any
	if err := decoder.Decode(&decoded); err != nil {
		t.Fatalf("decoding %.200s: %v", raw, err)
	}
	return decoded
}

// differ returns the first difference between two values, or "".
func differ(path string, want, got any) string {
	wantFields, wantObject := want.(map[string]any)
	gotFields, gotObject := got.(map[string]any)
	wantItems, wantList := want.([]any)
	gotItems, gotList := got.([]any)
	switch {
	case wantObject && gotObject:
		if w, g := slices.Sorted(maps.Keys(wantFields)), slices.Sorted(maps.Keys(gotFields)); !slices.Equal(w, g) {
			return fmt.Sprintf("%s: want the fields %.500q, got %.500q", path, w, g)
		}
		for name := range wantFields {
			if problem := differ(path+"."+name, wantFields[name], gotFields[name]); problem != "" {
				return problem
			}
		}
		return ""
	case wantList && gotList && len(wantItems) == len(gotItems):
		for i := range wantItems {
			if problem := differ(fmt.Sprintf("%s[%d]", path, i), wantItems[i], gotItems[i]); problem != "" {
				return problem
			}
		}
		return ""
	case !wantObject && !gotObject && !wantList && !gotList && sameScalar(want, got):
		return ""
	}
	return fmt.Sprintf("%.200s: want %.200v (%T), got %.200v (%T)", path, want, want, got, got)
}

// equals returns where the rendered value differs from the given one, or "". Rendered values have every field of the
// type: omitted ones hold defaults, unknown ones are gone. Scalars may be converted, texts are normalised, and lists
// may be sets.
func equals(path string, given, rendered any) string {
	switch rendered := rendered.(type) {
	case map[string]any:
		fields, ok := given.(map[string]any)
		if !ok {
			return fmt.Sprintf("%.200s: want %.200v, got an object", path, given)
		}
		normalized := map[string]any{}
		for name, value := range fields {
			normalized[cty.NormalizeString(name)] = value
		}
		for name, value := range rendered {
			if wanted := normalized[name]; wanted != nil {
				if problem := equals(path+"."+name, wanted, value); problem != "" {
					return problem
				}
			}
		}
		return ""
	case []any:
		items, ok := given.([]any)
		if !ok {
			return fmt.Sprintf("%.200s: want %.200v, got a list", path, given)
		}
		return equalItems(path, items, rendered)
	default:
		if !sameScalar(given, rendered) && text(given) != text(rendered) {
			return fmt.Sprintf("%.200s: want %.200v, got %.200v", path, given, rendered)
		}
		return ""
	}
}

func equalItems(path string, given, rendered []any) string {
	problem := ""
	if len(given) == len(rendered) {
		for i := range given {
			if problem = equals(fmt.Sprintf("%s[%d]", path, i), given[i], rendered[i]); problem != "" {
				break
			}
		}
		if problem == "" {
			return ""
		}
	}
	// Possibly a set.
	wanted, got := map[string]bool{}, map[string]bool{}
	for _, item := range given {
		wanted[text(item)] = true
	}
	for _, item := range rendered {
		got[text(item)] = true
	}
	if maps.Equal(wanted, got) && len(rendered) == len(got) {
		return ""
	}
	return fmt.Sprintf("%.200s: want %.200v, got %.200v (%s)", path, given, rendered, problem)
}

func sameScalar(want, got any) bool {
	wantNumber, wantOK := want.(json.Number)
	gotNumber, gotOK := got.(json.Number)
	if !wantOK || !gotOK {
		return want == got
	}
	w, ok1 := new(big.Rat).SetString(wantNumber.String())
	g, ok2 := new(big.Rat).SetString(gotNumber.String())
	return ok1 && ok2 && w.Cmp(g) == 0
}

// text returns a scalar as text, the same for any notation of a number.
func text(scalar any) string {
	switch scalar := scalar.(type) {
	case string:
		if number, ok := new(big.Rat).SetString(scalar); ok && decimal.MatchString(scalar) && len(scalar) < 400 {
			return number.RatString()
		}
		return cty.NormalizeString(scalar)
	case json.Number:
		return text(scalar.String())
	default:
		return fmt.Sprint(scalar)
	}
}
