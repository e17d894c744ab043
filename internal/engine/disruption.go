package engine

import (
	"maps"
	"slices"
	"strings"
)

// Effects describe what an in-place update of an attribute does to a running instance, by resource
// type and attribute name.
type Effects map[string]map[string]string

// MayDisrupt reports whether a plan updates a resource whose type has disruptive attributes, so
// that the changed attributes must be known.
func (r *Report) MayDisrupt(effects Effects) bool {
	return slices.ContainsFunc(r.with(ActionUpdate), func(c Change) bool { return len(effects[c.Type]) > 0 })
}

// Disruption returns which updates disrupt a running instance, and how, or "". changed maps
// addresses to the names of the attributes that change.
func (r *Report) Disruption(effects Effects, changed map[string][]string) string {
	var found []string
	for _, change := range r.with(ActionUpdate) {
		byEffect := map[string][]string{}
		for _, name := range changed[change.Address] {
			if effect, ok := effects[change.Type][name]; ok {
				byEffect[effect] = append(byEffect[effect], name)
			}
		}
		for _, effect := range slices.Sorted(maps.Keys(byEffect)) {
			found = append(found, change.Address+" would change in "+strings.Join(byEffect[effect], ", ")+", which "+effect)
		}
	}
	return strings.Join(found, "; ")
}
