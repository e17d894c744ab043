package render

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/machine-iac/machine-iac-operator/internal/module"
)

// Unfilled is a field whose default needs unknown values of the cluster.
type Unfilled struct {
	// Path is the field's path in the Machine.
	Path string
	// Missing are the names of these values.
	Missing []string
}

// Complete returns the Machine with the defaults of module.yaml in its providerSpec: the Machine
// itself if nothing changes, else a copy. Admission does this for new objects. A caller that
// renders a Machine does it first, so that the same providerSpec gives the same instance without
// admission. Complete does not change fields that are set, or a providerSpec that is unreadable,
// which [Check] and [Render] reject.
func Complete(machine *machinev1beta1.Machine, from *module.Module,
	cluster module.ClusterValues) (*machinev1beta1.Machine, []Unfilled) {
	if len(from.Defaults()) == 0 {
		return machine, nil
	}
	fields, failed := decodeProviderSpec(machine)
	if failed != nil {
		return machine, nil
	}
	values, at := valuesOf(fields)
	if values == nil {
		return machine, nil
	}
	kind, folds := kindFor(fields, from), false
	seen := seenBy(from, fields, values)
	if !isGeneric(fields) {
		found := &findings{}
		if seen, folds = spelt(from, kind, seen, found), from.FoldsCase(kind); len(found.errs) > 0 {
			return machine, nil
		}
	}
	additions, unfilled := additionsTo(seen, from, clusterValuesOf(machine, cluster))
	for i := range unfilled {
		unfilled[i].Path = at + "." + unfilled[i].Path
	}
	written := false
	for _, one := range additions {
		written = putAs(values, one.path, one.value, folds) || written
	}
	if !written {
		return machine, unfilled
	}
	if at == genericValuesPath {
		fields["values"] = values
	}
	raw, err := encode(fields)
	if err != nil {
		return machine, unfilled
	}
	completed := *machine
	completed.Spec.ProviderSpec.Value = &runtime.RawExtension{Raw: raw}
	return &completed, unfilled
}

// clusterValuesOf returns the cluster's values for the Machine, which may name its own cluster.
func clusterValuesOf(machine *machinev1beta1.Machine, cluster module.ClusterValues) module.ClusterValues {
	own := module.ClusterValues{}
	maps.Copy(own, cluster)
	own[module.ValueNamespace] = machine.Namespace
	if label := machine.Labels[machinev1beta1.MachineClusterIDLabel]; label != "" {
		own[module.ValueClusterID] = label
	}
	return own
}

// valuesOf returns the part of a providerSpec that a module sees, and its path in the Machine, or
// nil if it is unreadable.
func valuesOf(fields map[string]any) (values map[string]any, at string) {
	if !isGeneric(fields) {
		return fields, valuePath
	}
	if fields["values"] == nil {
		return map[string]any{}, genericValuesPath
	}
	values, _ = fields["values"].(map[string]any)
	return values, genericValuesPath
}

// seenBy returns the values as the module sees them: a generic kind names Secrets outside of its
// values.
func seenBy(from *module.Module, fields, values map[string]any) map[string]any {
	if !isGeneric(fields) {
		return values
	}
	seen := runtime.DeepCopyJSON(values)
	if credentials := from.Spec().Credentials; credentials != nil && credentials.Path != "" &&
		fields["credentialsSecret"] != nil {
		put(seen, credentials.Path, rawAt(fields, "credentialsSecret.name"))
	}
	if path := from.Spec().UserData.Path; path != "" && fields["userDataSecret"] != nil {
		put(seen, path, rawAt(fields, "userDataSecret.name"))
	}
	return seen
}

// addition is a value to set at a path of field names, joined by dots.
type addition struct {
	path  string
	value any
}

// additionsTo returns the defaults to add to values. They depend only on the fields that the author
// has set.
func additionsTo(values map[string]any, from *module.Module, cluster module.ClusterValues) (additions []addition,
	unfilled []Unfilled) {
	for _, one := range from.Defaults() {
		given := func(path string) bool { return !module.IsUnset(rawAt(values, path)) }
		if given(one.Path) || slices.ContainsFunc(one.Unless, given) {
			continue
		}
		value, missing := one.Value(cluster)
		if len(missing) > 0 {
			unfilled = append(unfilled, Unfilled{Path: one.Path, Missing: missing})
			continue
		}
		additions = append(additions, addition{path: one.Path, value: value})
	}
	return additions, unfilled
}

// put sets the value at a path of field names, joined by dots, and creates missing parents. It does
// nothing if a parent is not an object.
func put(fields map[string]any, path string, value any) { _ = putAs(fields, path, value, false) }

// putAs is put with names as the author spelled them, if their case does not matter. It reports
// whether the value was set.
func putAs(fields map[string]any, path string, value any, folds bool) bool {
	steps := strings.Split(path, ".")
	last := len(steps) - 1
	for _, step := range steps[:last] {
		step = writtenAs(fields, step, folds)
		inner, ok := fields[step].(map[string]any)
		if !ok {
			if fields[step] != nil {
				return false
			}
			inner = map[string]any{}
			fields[step] = inner
		}
		fields = inner
	}
	fields[writtenAs(fields, steps[last], folds)] = value
	return true
}

// encode returns decoded JSON as JSON without escaping HTML.
func encode(value any) ([]byte, error) {
	var raw bytes.Buffer
	encoder := json.NewEncoder(&raw)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(raw.Bytes()), nil
}
