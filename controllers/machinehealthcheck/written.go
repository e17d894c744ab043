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

// checkKind is what MachineHealthChecks are. They are read as they were written and not by their Go type: the CRD lets durations and
// numbers through that the type cannot hold, and a list with one such object fails as a whole. The cache would never be ready, and the
// manager would end.
var checkKind = machinev1beta1.GroupVersion.WithKind("MachineHealthCheck")

// written answers an empty MachineHealthCheck to read into.
func written() *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(checkKind)
	return object
}

// writtenList is written for a list.
func writtenList() *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(checkKind.GroupVersion().WithKind(checkKind.Kind + "List"))
	return list
}

// typed answers the MachineHealthCheck that was written, without the values of its spec that no MachineHealthCheck can have, and an
// error about these.
func typed(object *unstructured.Unstructured) (check *machinev1beta1.MachineHealthCheck, misread, err error) {
	content := runtime.DeepCopyJSON(object.Object)
	if spec, ok := content["spec"].(map[string]any); ok {
		misread = withoutMisfits(spec)
	}
	check = &machinev1beta1.MachineHealthCheck{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, check); err != nil {
		return nil, nil, fmt.Errorf("reading the MachineHealthCheck: %w", err)
	}
	return check, misread, nil
}

// withoutMisfits removes values from a spec that its type cannot hold, and tells which.
func withoutMisfits(spec map[string]any) error {
	problems := []error{dropDuration(spec, "nodeStartupTimeout", "spec.nodeStartupTimeout")}
	if number, ok := spec["maxUnhealthy"].(int64); ok && (number > math.MaxInt32 || number < math.MinInt32) {
		delete(spec, "maxUnhealthy")
		problems = append(problems, fmt.Errorf("spec.maxUnhealthy is %d, which is out of range; use a number such as 3, or a percentage such as 40%%", number))
	}
	conditions, _ := spec["unhealthyConditions"].([]any)
	for i := range conditions {
		if condition, ok := conditions[i].(map[string]any); ok {
			problems = append(problems, dropDuration(condition, "timeout", fmt.Sprintf("spec.unhealthyConditions[%d].timeout", i)))
		}
	}
	return errors.Join(problems...)
}

// dropDuration removes a duration that cannot be read, and tells so.
func dropDuration(from map[string]any, field, path string) error {
	text, ok := from[field].(string)
	if !ok {
		return nil
	}
	if _, err := time.ParseDuration(text); err != nil {
		delete(from, field)
		return fmt.Errorf("%s is %q, which is not a valid duration, or exceeds 292 years; use a value such as 10m", path, text)
	}
	return nil
}
