package machineclass

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/machine-iac/machine-iac-operator/actuators"
)

// appliedAnnotation records the fields that this controller has written, by their path in the
// nodeTemplate.
const appliedAnnotation = "machine-iac.io/node-template"

// field is a field of a nodeTemplate.
type field struct {
	path string // its parts joined by dots
	// value is the desired value, or "" if unknown.
	value string
	// optional reports whether MCM works without the field.
	optional bool
}

// The providerSpec fields that name an instance's type and place, in the Machine API's kinds and in
// values passed to any module. The first one present wins.
var (
	typePaths   = []string{"instanceType", "vmSize", "machineType", "flavor"}
	regionPaths = []string{"placement.region", "region", "location"}
	zonePaths   = []string{"placement.availabilityZone", "zone", "availabilityZone"}
)

// fieldsOf returns the known fields of a class's nodeTemplate.
func fieldsOf(class *unstructured.Unstructured, size actuators.Capacity) []field {
	spec, _, _ := unstructured.NestedMap(class.Object, "providerSpec")
	if values, found, err := unstructured.NestedMap(spec, "values"); found && err == nil {
		spec = values
	}
	return []field{
		{path: "capacity.cpu", value: strconv.FormatInt(size.CPU, 10)},
		{path: "capacity.gpu", value: strconv.FormatInt(size.GPU, 10)},
		// In the format that MCM writes.
		{path: "capacity.memory", value: resource.NewQuantity(size.MemoryMiB<<20, resource.BinarySI).String()},
		{path: "instanceType", value: firstOf(spec, typePaths)},
		{path: "region", value: firstOf(spec, regionPaths)},
		{path: "zone", value: firstOf(spec, zonePaths)},
		{path: "architecture", value: size.Architecture, optional: true},
	}
}

func firstOf(spec map[string]any, paths []string) string {
	for _, path := range paths {
		if text, _, err := unstructured.NestedString(spec, strings.Split(path, ".")...); err == nil && text != "" {
			return text
		}
	}
	return ""
}

// complete returns a class with a complete nodeTemplate, or nil if nothing is to be written.
// missing has the paths of unknown fields; nothing is written then, since MCM rejects an incomplete
// nodeTemplate. An error means that the nodeTemplate cannot be read.
func complete(class *unstructured.Unstructured,
	size actuators.Capacity) (completed *unstructured.Unstructured, missing []string, err error) {
	template, _, err := unstructured.NestedMap(class.Object, "nodeTemplate") // a copy
	if err != nil {
		return nil, nil, fmt.Errorf("nodeTemplate: not an object: %w", err)
	}
	if template == nil {
		template = map[string]any{}
	}
	before, applied := recorded(class), map[string]string{}
	for _, f := range fieldsOf(class, size) {
		parts := strings.Split(f.path, ".")
		current, err := textAt(template, parts)
		if err != nil {
			return nil, nil, fmt.Errorf("nodeTemplate.%s: %w", f.path, err)
		}
		isOurs := current == "" || current == before[f.path]
		switch {
		case f.value == "" && current == "" && !f.optional:
			missing = append(missing, "nodeTemplate."+f.path)
		case f.value == "" || !isOurs:
		default:
			applied[f.path] = f.value
			if err := unstructured.SetNestedField(template, f.value, parts...); err != nil {
				return nil, nil, fmt.Errorf("nodeTemplate.%s: %w", f.path, err)
			}
		}
	}
	if old, _, _ := unstructured.NestedMap(class.Object, "nodeTemplate"); len(missing) > 0 ||
		equality.Semantic.DeepEqual(old, template) && maps.Equal(before, applied) {
		return nil, missing, nil
	}
	completed, err = withTemplate(class, template, applied)
	return completed, nil, err
}

// textAt returns the value at a path, or "". Quantities may be numbers.
func textAt(template map[string]any, parts []string) (string, error) {
	value, found, err := unstructured.NestedFieldNoCopy(template, parts...)
	if err != nil || !found || value == nil {
		return "", err
	}
	return fmt.Sprint(value), nil
}

// recorded returns the fields that this controller has written, as recorded in the class.
func recorded(class *unstructured.Unstructured) map[string]string {
	applied := map[string]string{}
	if json.Unmarshal([]byte(class.GetAnnotations()[appliedAnnotation]), &applied) != nil {
		return map[string]string{} // edited by someone: treat all fields as theirs
	}
	return applied
}

func withTemplate(class *unstructured.Unstructured, template map[string]any,
	applied map[string]string) (*unstructured.Unstructured, error) {
	completed := class.DeepCopy()
	completed.Object["nodeTemplate"] = template
	annotations := maps.Clone(class.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	delete(annotations, appliedAnnotation)
	if len(applied) > 0 {
		record, err := json.Marshal(applied)
		if err != nil {
			return nil, fmt.Errorf("encoding the annotation %s: %w", appliedAnnotation, err)
		}
		annotations[appliedAnnotation] = string(record)
	}
	completed.SetAnnotations(annotations)
	return completed, nil
}
