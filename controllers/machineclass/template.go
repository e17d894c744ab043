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

// appliedAnnotation records what this controller has written, by the path in the nodeTemplate.
const appliedAnnotation = "machine-iac.io/node-template"

// field is one of a nodeTemplate.
type field struct {
	path string // its parts joined by dots
	// value is what it is to be; "" where that is not known.
	value string
	// optional says that MCM does without.
	optional bool
}

// The fields of the providerSpecs of the Machine API, and of values beside any module, that name an instance's type and place. The first that is
// there counts.
var (
	typePaths   = []string{"instanceType", "vmSize", "machineType", "flavor"}
	regionPaths = []string{"placement.region", "region", "location"}
	zonePaths   = []string{"placement.availabilityZone", "zone", "availabilityZone"}
)

// fieldsOf returns what is known of the nodeTemplate of a class.
func fieldsOf(class *unstructured.Unstructured, size actuators.Capacity) []field {
	spec, _, _ := unstructured.NestedMap(class.Object, "providerSpec")
	if values, found, err := unstructured.NestedMap(spec, "values"); found && err == nil {
		spec = values
	}
	return []field{
		{path: "capacity.cpu", value: strconv.FormatInt(size.CPU, 10)},
		{path: "capacity.gpu", value: strconv.FormatInt(size.GPU, 10)},
		// In the form that MCM gives it when it writes the class.
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

// complete returns a class with all of its nodeTemplate; nil where nothing is to be written. missing has the paths of what nobody has said: then
// nothing is written, since MCM refuses a nodeTemplate in part. An error is about a nodeTemplate that cannot be read.
func complete(class *unstructured.Unstructured, size actuators.Capacity) (completed *unstructured.Unstructured, missing []string, err error) {
	template, _, err := unstructured.NestedMap(class.Object, "nodeTemplate") // a copy
	if err != nil {
		return nil, nil, fmt.Errorf("nodeTemplate: it is no object: %w", err)
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
	if old, _, _ := unstructured.NestedMap(class.Object, "nodeTemplate"); len(missing) > 0 || equality.Semantic.DeepEqual(old, template) && maps.Equal(before, applied) {
		return nil, missing, nil
	}
	completed, err = withTemplate(class, template, applied)
	return completed, nil, err
}

// textAt returns what is at a path, "" for nothing. Quantities may be numbers.
func textAt(template map[string]any, parts []string) (string, error) {
	value, found, err := unstructured.NestedFieldNoCopy(template, parts...)
	if err != nil || !found || value == nil {
		return "", err
	}
	return fmt.Sprint(value), nil
}

// recorded returns what this controller has written, as the class says.
func recorded(class *unstructured.Unstructured) map[string]string {
	applied := map[string]string{}
	if json.Unmarshal([]byte(class.GetAnnotations()[appliedAnnotation]), &applied) != nil {
		return map[string]string{} // somebody has edited it: all is theirs
	}
	return applied
}

func withTemplate(class *unstructured.Unstructured, template map[string]any, applied map[string]string) (*unstructured.Unstructured, error) {
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
