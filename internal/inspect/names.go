package inspect

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/agext/levenshtein"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Missing returns an error for a name that is not there, with names that are.
func Missing(kind, name, namespace string, known []string) error {
	where := "in namespace " + namespace
	if namespace == "" {
		where = "in any namespace"
	}
	if len(known) == 0 {
		return fmt.Errorf("there is no %s %q %s, nor any other; name the namespace with -n, for example -n openshift-machine-api", kind, name, where)
	}
	if near := nearest(name, known); len(near) > 0 {
		return fmt.Errorf("there is no %s %q %s; did you mean %s?", kind, name, where, strings.Join(near, ", "))
	}
	return fmt.Errorf("there is no %s %q %s; 'kubectl machine tree' shows what there is", kind, name, where)
}

// nearby is how many names are offered in place of one that is not there.
const nearby = 3

// nearest returns the names that are most alike, the nearest first.
func nearest(name string, known []string) []string {
	limit := max(2, len(name)/3)
	type candidate struct {
		name string
		far  int
	}
	var near []candidate
	for _, k := range known {
		far := levenshtein.Distance(name, k, nil)
		if strings.HasPrefix(k, name) || strings.HasSuffix(k, name) {
			far = min(far, limit)
		}
		if far <= limit {
			near = append(near, candidate{k, far})
		}
	}
	slices.SortFunc(near, func(a, b candidate) int { return cmp.Or(cmp.Compare(a.far, b.far), cmp.Compare(a.name, b.name)) })
	var names []string
	for _, c := range near[:min(nearby, len(near))] {
		names = append(names, c.name)
	}
	return slices.Compact(names)
}

func byName(a, b client.Object) int {
	return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
}
