package preview

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/machine-iac/machine-iac-operator/internal/engine/tofu"
	"github.com/machine-iac/machine-iac-operator/internal/plan/offline"
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

// markForced marks what lies at one of the paths, or in it, or around it, and tells whether anything does. Each path is a list of names and
// indices.
func markForced(attributes []Attribute, paths []any) (marked bool) {
	for _, one := range paths {
		forced := pathOf(one)
		for n := range attributes {
			path := attributes[n].Path
			attributes[n].Forces = attributes[n].Forces || isWithin(path, forced) || isWithin(forced, path)
			marked = marked || attributes[n].Forces
		}
	}
	return marked
}

// changedLines answers the lines that differ between two values of several lines, with signs before them; nil for other values.
func changedLines(before, after Value) []string {
	was, is := linesOf(before), linesOf(after)
	if was == nil || is == nil || len(was)*len(is) > maxCompared {
		return nil
	}
	common := commonLines(was, is)
	var lines []string
	for i, k := 0, 0; i < len(was) || k < len(is); {
		switch {
		case i < len(was) && k < len(is) && was[i] == is[k]:
			i, k = i+1, k+1
		case k == len(is) || i < len(was) && common[i+1][k] >= common[i][k+1]:
			lines, i = append(lines, "- "+was[i]), i+1
		default:
			lines, k = append(lines, "+ "+is[k]), k+1
		}
	}
	return lines
}

// linesOf answers the lines of a text that has several and may be shown; nil for any other value.
func linesOf(value Value) []string {
	text, isText := value.Value.(string)
	if !isText || value.Sensitive || !strings.Contains(text, "\n") {
		return nil
	}
	return strings.Split(text, "\n")
}

// commonLines answers at i and k how many lines of was[i:] and is[k:] are the same, in their order.
func commonLines(was, is []string) [][]int {
	common := make([][]int, len(was)+1)
	for i := range common {
		common[i] = make([]int, len(is)+1)
	}
	for i := len(was) - 1; i >= 0; i-- {
		for k := len(is) - 1; k >= 0; k-- {
			common[i][k] = max(common[i+1][k], common[i][k+1])
			if was[i] == is[k] {
				common[i][k] = common[i+1][k+1] + 1
			}
		}
	}
	return common
}

// maxCompared bounds the lines that are compared with one another.
const maxCompared = 1 << 20

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
