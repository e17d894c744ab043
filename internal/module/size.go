package module

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/big"
	"regexp"
	"strings"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
)

// DefaultArchitecture is the default architecture of an instance.
const DefaultArchitecture = "amd64"

// LowerPrefix precedes a field in a label's template whose value is converted to lower case.
const LowerPrefix = "lower:"

// Size is what an instance offers. Fractions are rounded down, so that no more is expected than
// exists.
type Size struct {
	// CPU is the number of CPUs.
	CPU int64
	// MemoryMiB is the memory in MiB.
	MemoryMiB int64
	// GPU is the number of GPUs.
	GPU int64
	// Architecture is the CPU architecture, as in the label kubernetes.io/arch.
	Architecture string
	// Labels are other labels of the Node.
	Labels map[string]string
}

// UnknownTypeError means that a providerSpec has an instance type that is not in the module's
// catalog.
type UnknownTypeError struct {
	// Module is the module's name, and File its file for instance types.
	Module, File string
	// Field is the path of the providerSpec field with the type, joined by dots.
	Field string
	// Type is the unknown type.
	Type string
}

// Error implements error.
func (e *UnknownTypeError) Error() string {
	return fmt.Sprintf("%s: the module %q does not know the size of the instance type %q; add it to the module's %s, or use another type",
		e.Field, e.Module, e.Type, e.File)
}

// SizeError means that a field of a providerSpec is not a valid size.
type SizeError struct {
	// Field is the path of the field in the providerSpec, joined by dots.
	Field string
	// Problem is what is wrong, and Fix how to fix it.
	Problem, Fix string
}

// Error implements error.
func (e *SizeError) Error() string { return e.Field + ": " + e.Problem + "; " + e.Fix }

// SizeOf returns what an instance offers for a providerSpec, or nil if the module does not say. The
// value has the type of the variable provider_spec, with defaults applied. The error is an
// [*UnknownTypeError] or a [*SizeError].
func SizeOf(m *Module, providerSpec cty.Value) (*Size, error) {
	capacity := m.Spec().Capacity
	if capacity == nil {
		return nil, nil
	}
	catalogued := len(m.InstanceTypes()) > 0
	size := Size{Architecture: DefaultArchitecture}
	var typeErr error
	if catalogued {
		size, typeErr = sizeOfType(m, providerSpec)
	}
	reader := sizeReader{from: providerSpec}
	if fields := capacity.Fields; fields != nil {
		reader.read(*fields, &size)
	}
	switch {
	case reader.err != nil:
		return nil, reader.err
	case typeErr != nil && !reader.whole():
		return nil, typeErr
	case !catalogued && !reader.whole():
		return nil, reader.missing(*capacity.Fields)
	}
	size.Labels = nodeLabels(m, providerSpec)
	return &size, nil
}

// ReadSize returns the size of a providerSpec whose instance type is not in the catalog, from the
// output of capacity/.
func ReadSize(m *Module, providerSpec cty.Value, output []byte) (*Size, error) {
	read := struct {
		CPU          int64  `json:"cpu"`
		MemoryMiB    int64  `json:"memory_mib"`
		GPU          int64  `json:"gpu"`
		Architecture string `json:"architecture"`
	}{Architecture: DefaultArchitecture}
	if err := json.Unmarshal(output, &read); err != nil || read.CPU <= 0 || read.MemoryMiB <= 0 || read.GPU < 0 ||
		len(validation.IsValidLabelValue(read.Architecture)) > 0 {
		return nil, fmt.Errorf("module %s: output %q of capacity/ is not a size: %s", m.Name(), OutputCapacity, output)
	}
	size := Size{CPU: read.CPU, MemoryMiB: read.MemoryMiB, GPU: read.GPU, Architecture: read.Architecture}
	reader := sizeReader{from: providerSpec}
	if fields := m.Spec().Capacity.Fields; fields != nil {
		reader.read(*fields, &size)
	}
	size.Labels = nodeLabels(m, providerSpec)
	return &size, reader.err
}

// nodeLabels returns the labels whose fields all have values.
func nodeLabels(m *Module, providerSpec cty.Value) map[string]string {
	capacity := m.Spec().Capacity
	templates := map[string]string{}
	if len(m.InstanceTypes()) > 0 {
		templates[corev1.LabelInstanceTypeStable] = "{" + capacity.Path + "}"
	}
	maps.Copy(templates, capacity.Labels)
	labels := map[string]string{}
	for key, template := range templates {
		label, err := ExpandKey(template, func(field string) (string, error) {
			path, lower := strings.CutPrefix(field, LowerPrefix)
			value := textAt(providerSpec, path)
			if lower {
				value = strings.ToLower(value)
			}
			if value == "" {
				return "", errUnset
			}
			return value, nil
		})
		if err == nil {
			labels[key] = label
		}
	}
	return labels
}

func sizeOfType(m *Module, providerSpec cty.Value) (Size, error) {
	path := m.Spec().Capacity.Path
	name := textAt(providerSpec, path)
	if entry, known := m.InstanceTypes()[name]; known {
		return Size{CPU: floor(entry.CPU), MemoryMiB: floor(entry.Memory) >> 20, GPU: entry.GPU,
			Architecture: entry.Architecture}, nil
	}
	size := Size{Architecture: DefaultArchitecture}
	if name == "" {
		return size, &SizeError{Field: path, Problem: "the instance type is required to determine the size", Fix: "set it"}
	}
	file := m.Spec().Capacity.InstanceTypesFile
	if file == "" {
		file = MetadataFile
	}
	return size, &UnknownTypeError{Module: m.Name(), File: file, Field: path, Type: name}
}

// longQuantity matches absurd quantities. For a large exponent, the library computes all digits.
var longQuantity = regexp.MustCompile(`^.{65}|[eE][+-]?[0-9]{3}`)

// quantityOf parses a quantity.
func quantityOf(text string) (resource.Quantity, error) {
	if longQuantity.MatchString(text) {
		return resource.Quantity{}, resource.ErrNumeric
	}
	return resource.ParseQuantity(text)
}

// floor rounds a quantity down; Value would round up.
func floor(quantity resource.Quantity) int64 {
	whole := quantity.Value()
	if resource.NewQuantity(whole, resource.DecimalSI).Cmp(quantity) > 0 {
		whole--
	}
	return whole
}

// sizeReader reads the size from fields of a providerSpec.
type sizeReader struct {
	from cty.Value
	// cpu and memory mean that the fields set them.
	cpu, memory bool
	err         error
}

// whole reports whether the fields determine the size without a catalog.
func (r *sizeReader) whole() bool { return r.cpu && r.memory }

func (r *sizeReader) missing(fields v1alpha1.CapacityFields) error {
	field := strings.Join(fields.CPU, " and ")
	if r.cpu {
		field = fields.Memory
	}
	return &SizeError{Field: field, Problem: "required to determine the size", Fix: "set it"}
}

// read overwrites what the fields set. Null fields set nothing.
func (r *sizeReader) read(fields v1alpha1.CapacityFields, size *Size) {
	if product := r.product(fields.CPU); product != nil {
		size.CPU, r.cpu = *product, true
	}
	if text := textAt(r.from, fields.Memory); text != "" {
		quantity, err := quantityOf(text + fields.MemoryUnit)
		if err != nil || quantity.Sign() <= 0 {
			fix := "write a quantity, for example 16Gi"
			if fields.MemoryUnit != "" {
				fix = "write the number of " + fields.MemoryUnit
			}
			r.fail(fields.Memory, "not a valid amount of memory", fix)
			return
		}
		size.MemoryMiB, r.memory = quantity.Value()>>20, true
	}
	if fields.GPU != "" {
		if count := r.product([]string{fields.GPU}); count != nil {
			size.GPU = *count
		}
	}
	r.attachedGPUs(fields.AttachedGPUs, size)
	if text := textAt(r.from, fields.Architecture); text != "" {
		if len(validation.IsValidLabelValue(text)) > 0 {
			r.fail(fields.Architecture, "not a valid value of the label kubernetes.io/arch", "write for example amd64 or arm64")
		}
		size.Architecture = text
	}
}

// attachedGPUs adds the sum of a number field of a list's objects.
func (r *sizeReader) attachedGPUs(path string, size *Size) {
	list, field := SplitLast(path)
	for _, object := range entriesAt(r.from, list) {
		entry := sizeReader{from: object}
		if count := entry.product([]string{field}); count != nil {
			size.GPU += *count
		}
		if entry.err != nil {
			r.fail(path, "not a valid count", "write a number, for example 1")
		}
	}
}

// SplitLast splits a path before its last field.
func SplitLast(path string) (parent, field string) {
	at := max(strings.LastIndex(path, "."), 0)
	return path[:at], strings.TrimPrefix(path[at:], ".")
}

// product multiplies fields, or returns nil if there are none or one of them is unset.
func (r *sizeReader) product(paths []string) *int64 {
	if len(paths) == 0 {
		return nil
	}
	product := big.NewFloat(1)
	for _, path := range paths {
		value, ok := valueAt(r.from, path)
		if !ok {
			return nil
		}
		number, err := convert.Convert(value, cty.Number)
		if err != nil || number.AsBigFloat().Sign() < 0 || number.AsBigFloat().Cmp(big.NewFloat(math.MaxInt32)) > 0 {
			r.fail(path, "not a valid count", "write a number, for example 4")
			return nil
		}
		product.Mul(product, number.AsBigFloat())
	}
	whole, _ := product.Int64()
	return &whole
}

func (r *sizeReader) fail(field, problem, fix string) {
	if r.err == nil {
		r.err = &SizeError{Field: field, Problem: problem, Fix: fix}
	}
}

// valueAt returns the known, non-null value at a path of object attributes.
func valueAt(value cty.Value, path string) (cty.Value, bool) {
	if path == "" {
		return cty.NilVal, false
	}
	for step := range strings.SplitSeq(path, ".") {
		if !value.IsKnown() || value.IsNull() || !value.Type().IsObjectType() || !value.Type().HasAttribute(step) {
			return cty.NilVal, false
		}
		value = value.GetAttr(step)
	}
	return value, value.IsKnown() && !value.IsNull()
}

// textAt returns the string or number at a path as text, or "".
func textAt(value cty.Value, path string) string {
	found, ok := valueAt(value, path)
	if !ok {
		return ""
	}
	text, err := convert.Convert(found, cty.String)
	if err != nil {
		return ""
	}
	return text.AsString()
}
