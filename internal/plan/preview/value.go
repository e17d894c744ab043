package preview

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/machine-iac/machine-iac-operator/internal/engine/tofu"
	"github.com/machine-iac/machine-iac-operator/internal/plan/offline"
)

// leaf is a value at a path.
type leaf struct {
	path  string
	value Value
	// raw is what the value is, shown or not.
	raw any
	// unknown says that some of a value that is not shown is not known.
	unknown bool
}

// leavesOf answers every value with something to show, in the order of paths. Null and empty collections say nothing.
func leavesOf(values offline.Values) []leaf {
	var found []leaf
	collect("", values, &found)
	return found
}

func collect(path string, at offline.Values, found *[]leaf) {
	add := func(value Value) { *found = append(*found, leaf{path: path, value: value, raw: at.After}) }
	switch {
	case isTrue(at.Sensitive):
		if at.After != nil || at.Unknown != nil && at.Unknown != false {
			*found = append(*found, leaf{path: path, value: Value{Sensitive: true}, raw: at.After, unknown: anyTrue(at.Unknown)})
		}
		return
	case isTrue(at.Unknown):
		add(Value{Unknown: true})
		return
	}
	switch after := at.After.(type) {
	case nil:
		if names := keysOf(at.Unknown); len(names) > 0 {
			collectMap(path, offline.Values{After: map[string]any{}, Unknown: at.Unknown, Sensitive: at.Sensitive}, found)
		}
	case map[string]any:
		collectMap(path, at, found)
	case []any:
		for n := range max(len(after), lengthOf(at.Unknown)) {
			collect(fmt.Sprintf("%s[%d]", path, n), offline.Values{
				After: entry(at.After, n), Unknown: entry(at.Unknown, n), Sensitive: entry(at.Sensitive, n),
			}, found)
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
		collect(below(path, name), offline.Values{
			After: member(at.After, name), Unknown: member(at.Unknown, name), Sensitive: member(at.Sensitive, name),
		}, found)
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

func isTrue(mark any) bool { return mark == true }

// anyTrue tells whether something is marked in a value.
func anyTrue(marks any) bool {
	switch marks := marks.(type) {
	case bool:
		return marks
	case map[string]any:
		return slices.ContainsFunc(slices.Collect(maps.Values(marks)), anyTrue)
	case []any:
		return slices.ContainsFunc(marks, anyTrue)
	}
	return false
}

func keysOf(value any) []string {
	object, _ := value.(map[string]any)
	return slices.Collect(maps.Keys(object))
}

func member(value any, name string) any {
	if object, ok := value.(map[string]any); ok {
		return object[name]
	}
	return nil
}

func lengthOf(value any) int {
	list, _ := value.([]any)
	return len(list)
}

func entry(value any, n int) any {
	if list, ok := value.([]any); ok && n < len(list) {
		return list[n]
	}
	return nil
}

// outputOf answers an output that is a text.
func outputOf(outputs offline.Values, name string) Value {
	at := offline.Values{After: member(outputs.After, name), Unknown: member(outputs.Unknown, name), Sensitive: member(outputs.Sensitive, name)}
	if isTrue(outputs.Unknown) {
		return Value{Unknown: true}
	}
	leaves := leavesOf(at)
	if len(leaves) != 1 || leaves[0].path != "" {
		return Value{}
	}
	return leaves[0].value
}

// addressesOf reads the output addresses: a list of which each entry, and any part of it, may not be known.
func addressesOf(outputs offline.Values) []Address {
	const name = "addresses"
	after, unknown := member(outputs.After, name), member(outputs.Unknown, name)
	if isTrue(unknown) || isTrue(outputs.Unknown) {
		return []Address{{Address: Value{Unknown: true}}}
	}
	var found []Address
	for n := range max(lengthOf(after), lengthOf(unknown)) {
		one := offline.Values{After: entry(after, n), Unknown: entry(unknown, n)}
		kind, _ := member(one.After, "type").(string)
		found = append(found, Address{Type: kind, Address: outputOf(one, "address")})
	}
	return found
}

// attributesOf answers what a resource that is created is made of, or what of one changes.
func attributesOf(resource offline.Resource) []Attribute {
	attributes := []Attribute{}
	if resource.Action == tofu.ActionUpdate || resource.Action == tofu.ActionReplace {
		attributes = append(attributes, differences(resource.Values)...)
		if markForced(attributes, resource.Forces) && resource.Action == tofu.ActionReplace {
			// The rest is what any new one has of its own.
			attributes = slices.DeleteFunc(attributes, func(one Attribute) bool { return !one.Forces })
		}
		return attributes
	}
	for _, one := range leavesOf(resource.Values) {
		attributes = append(attributes, Attribute{Path: one.path, Action: tofu.ActionCreate, Value: one.value})
	}
	return attributes
}

// text renders a value for people: as JSON, or as what it lacks.
func (v Value) text() string {
	switch {
	case v.Sensitive:
		return sensitiveText
	case v.Unknown:
		return unknownText
	}
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v.Value); err != nil {
		return printable(fmt.Sprint(v.Value))
	}
	return printable(strings.TrimSuffix(text.String(), "\n"))
}

// cell renders a value for a table, without quotes.
func (v Value) cell() string {
	if text, ok := v.Value.(string); ok {
		return printable(text)
	}
	if v.Value == nil && !v.Unknown && !v.Sensitive {
		return ""
	}
	return v.text()
}

// The words for what is not shown.
const (
	unknownText   = "(known after apply)"
	sensitiveText = "(sensitive)"
)
