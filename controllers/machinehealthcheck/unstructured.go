package machinehealthcheck

import (
	"errors"
	"fmt"
	"math"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// checkKind is the kind MachineHealthCheck. They are read as unstructured objects: the CRD accepts
// durations and numbers that the Go type cannot represent, and a list with one such object fails as
// a whole. The cache would never sync, and the manager would exit.
var checkKind = machinev1beta1.GroupVersion.WithKind("MachineHealthCheck")

// newUnstructured returns an empty MachineHealthCheck to read into.
func newUnstructured() *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(checkKind)
	return object
}

// newUnstructuredList returns an empty list to read into.
func newUnstructuredList() *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(checkKind.GroupVersion().WithKind(checkKind.Kind + "List"))
	return list
}

// fromUnstructured returns the MachineHealthCheck without the values of its spec that the Go type
// cannot represent, and specErr about these.
func fromUnstructured(object *unstructured.Unstructured) (check *machinev1beta1.MachineHealthCheck, specErr, err error) {
	content := runtime.DeepCopyJSON(object.Object)
	if spec, ok := content["spec"].(map[string]any); ok {
		specErr = dropInvalid(spec)
	}
	check = &machinev1beta1.MachineHealthCheck{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, check); err != nil {
		return nil, nil, fmt.Errorf("reading the MachineHealthCheck: %w", err)
	}
	return check, specErr, nil
}

// dropInvalid removes values from a spec that its type cannot represent, and returns an error about
// them.
func dropInvalid(spec map[string]any) error {
	problems := []error{dropDuration(spec, "nodeStartupTimeout", "spec.nodeStartupTimeout")}
	if number, ok := spec["maxUnhealthy"].(int64); ok && (number > math.MaxInt32 || number < math.MinInt32) {
		delete(spec, "maxUnhealthy")
		problems = append(problems,
			fmt.Errorf("spec.maxUnhealthy is %d, which is out of range; use a number such as 3, or a percentage such as 40%%",
				number))
	}
	conditions, _ := spec["unhealthyConditions"].([]any)
	for i := range conditions {
		if condition, ok := conditions[i].(map[string]any); ok {
			problems = append(problems,
				dropDuration(condition, "timeout", fmt.Sprintf("spec.unhealthyConditions[%d].timeout", i)))
		}
	}
	return errors.Join(problems...)
}

// dropDuration removes an invalid duration, and returns an error about it.
func dropDuration(from map[string]any, field, path string) error {
	text, ok := from[field].(string)
	if !ok {
		return nil
	}
	if _, err := time.ParseDuration(text); err != nil {
		delete(from, field)
		return fmt.Errorf("%s is %q, which is not a valid duration, or exceeds 292 years; use a value such as 10m", path,
			text)
	}
	return nil
}
