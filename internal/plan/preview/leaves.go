package preview

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"

	"github.com/machine-iac/machine-iac-operator/internal/plan/offline"
)

type leaf struct {
	path  string
	value Value
	// raw is the value, even if sensitive.
	raw any
	// unknown reports that part of a sensitive value is unknown.
	unknown bool
}

// leavesOf returns every value except null and empty collections, sorted by path.
func leavesOf(values offline.Values) []leaf {
	var found []leaf
	collect("", values, &found)
	return found
}

func collect(path string, at offline.Values, found *[]leaf) {
	add := func(value Value) { *found = append(*found, leaf{path: path, value: value, raw: at.After}) }
	switch {
	case at.Sensitive == true:
		if at.After != nil || at.Unknown != nil && at.Unknown != false {
			*found = append(*found,
				leaf{path: path, value: Value{Sensitive: true}, raw: at.After, unknown: offline.AnyMarked(at.Unknown)})
		}
		return
	case at.Unknown == true:
		add(Value{Unknown: true})
		return
	}
	switch at.After.(type) {
	case nil:
		if len(keysOf(at.Unknown)) > 0 {
			collectMap(path, offline.Values{After: map[string]any{}, Unknown: at.Unknown, Sensitive: at.Sensitive},
				found)
		}
	case map[string]any:
		collectMap(path, at, found)
	case []any:
		for n := range at.Len() {
			collect(fmt.Sprintf("%s[%d]", path, n), at.Item(n), found)
		}
	default:
		add(Value{Value: at.After})
	}
}

func collectMap(path string, at offline.Values, found *[]leaf) {
	names := map[string]bool{}
	for _, part := range []any{at.After, at.Unknown, at.Sensitive} {
		for _, name := range keysOf(part) {
			names[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		collect(below(path, name), at.Member(name), found)
	}
}

var plainName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

func below(path, name string) string {
	switch {
	case !plainName.MatchString(name):
		return path + "[" + strconv.Quote(name) + "]"
	case path == "":
		return name
	}
	return path + "." + name
}

func keysOf(value any) []string {
	object, _ := value.(map[string]any)
	return slices.Collect(maps.Keys(object))
}
