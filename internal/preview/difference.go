package preview

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/machine-iac/machine-iac-operator/internal/offline"
	"github.com/machine-iac/machine-iac-operator/internal/tofu"
)

// Differences answers what differs between two values, as JSON decodes them.
func Differences(before, after any) []Attribute {
	return differences(offline.Values{Before: before, After: after})
}

// differences answers what a change does to each value.
func differences(values offline.Values) []Attribute {
	was, is := leavesOf(offline.Values{After: values.Before, Sensitive: values.SensitiveBefore}), leavesOf(values)
	before, after := map[string]leaf{}, map[string]bool{}
	for _, one := range was {
		before[one.path] = one
	}
	var found []Attribute
	for _, one := range is {
		after[one.path] = true
		old, had := before[one.path]
		switch {
		case !had:
			found = append(found, Attribute{Path: one.path, Action: tofu.ActionCreate, Value: one.value})
		case !one.equals(old):
			found = append(found, Attribute{Path: one.path, Action: tofu.ActionUpdate, Before: &old.value, Value: one.value})
		}
	}
	for _, one := range was {
		if !after[one.path] {
			found = append(found, Attribute{Path: one.path, Action: tofu.ActionDelete, Before: &one.value})
		}
	}
	slices.SortStableFunc(found, func(a, b Attribute) int { return cmp.Compare(a.Path, b.Path) })
	return found
}

// equals tells whether two leaves have one value. What is not known is equal to nothing.
func (l leaf) equals(other leaf) bool {
	return !l.value.Unknown && !l.unknown && reflect.DeepEqual(l.raw, other.raw)
}

// markForced marks what lies at one of the paths, or in it, or around it. Each path is a list of names and indices.
func markForced(attributes []Attribute, paths []any) {
	for _, one := range paths {
		forced := pathOf(one)
		for n := range attributes {
			path := attributes[n].Path
			attributes[n].Forces = attributes[n].Forces || isWithin(path, forced) || isWithin(forced, path)
		}
	}
}

// pathOf writes a path as those of attributes are.
func pathOf(steps any) string {
	list, _ := steps.([]any)
	path := ""
	for _, step := range list {
		if name, ok := step.(string); ok {
			path = below(path, name)
			continue
		}
		path += fmt.Sprintf("[%v]", step)
	}
	return path
}

// isWithin tells whether a path is another or lies in it.
func isWithin(path, outer string) bool {
	rest, ok := strings.CutPrefix(path, outer)
	return ok && (rest == "" || outer == "" || rest[0] == '.' || rest[0] == '[')
}
