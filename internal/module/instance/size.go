package instance

import (
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strings"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/module"
)

// DefaultArchitecture is the architecture of an instance where nothing else is said.
const DefaultArchitecture = "amd64"

// Size is what an instance offers. Fractions are rounded down, so that no more is expected than there is.
type Size struct {
	// CPU is the number of processors.
	CPU int64
	// MemoryMiB is the memory in MiB.
	MemoryMiB int64
	// GPU is the number of graphics processors.
	GPU int64
	// Architecture is the processor's, as the label kubernetes.io/arch writes it.
	Architecture string
}

// UnknownTypeError says that a providerSpec names an instance type that the module's catalogue does not have.
type UnknownTypeError struct {
	// Module is the module's name, File the file of it that the type would be added to.
	Module, File string
	// Field is the field of the providerSpec that names the type, its parts joined by dots.
	Field string
	// Type is what it names.
	Type string
}

// Error implements error.
func (e *UnknownTypeError) Error() string {
	return fmt.Sprintf("%s: the module %q does not know how large the instance type %q is; add it to the module's %s, or name a type that it has",
		e.Field, e.Module, e.Type, e.File)
}

// SizeError says that a field of a providerSpec cannot be read as a size.
type SizeError struct {
	// Field is the field's path in the providerSpec, its parts joined by dots.
	Field string
	// Problem says what is wrong, Fix what to write.
	Problem, Fix string
}

// Error implements error.
func (e *SizeError) Error() string { return e.Field + ": " + e.Problem + "; " + e.Fix }

// SizeOf returns what an instance of a module made of a providerSpec offers; nil when the module does not say. The value is of the type of the
// variable provider_spec, defaults filled in. The error is an [*UnknownTypeError] or a [*SizeError].
func SizeOf(m *module.Module, providerSpec cty.Value) (*Size, error) {
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
	return &size, nil
}

func sizeOfType(m *module.Module, providerSpec cty.Value) (Size, error) {
	path := m.Spec().Capacity.Path
	name := textAt(providerSpec, path)
	if entry, known := m.InstanceTypes()[name]; known {
		return Size{CPU: floor(entry.CPU), MemoryMiB: floor(entry.Memory) >> 20, GPU: entry.GPU, Architecture: entry.Architecture}, nil
	}
	size := Size{Architecture: DefaultArchitecture}
	if name == "" {
		return size, &SizeError{Field: path, Problem: "the instance type is needed for the size, but it is missing", Fix: "name one"}
	}
	file := m.Spec().Capacity.InstanceTypesFile
	if file == "" {
		file = module.MetadataFile
	}
	return size, &UnknownTypeError{Module: m.Name(), File: file, Field: path, Type: name}
}

// longQuantity matches what is no quantity that anybody would write. Of a large exponent the library computes all digits.
var longQuantity = regexp.MustCompile(`^.{65}|[eE][+-]?[0-9]{3}`)

// quantityOf reads a quantity.
func quantityOf(text string) (resource.Quantity, error) {
	if longQuantity.MatchString(text) {
		return resource.Quantity{}, resource.ErrNumeric
	}
	return resource.ParseQuantity(text)
}

// floor returns a quantity without its fraction; Value would round it up.
func floor(quantity resource.Quantity) int64 {
	whole := quantity.Value()
	if resource.NewQuantity(whole, resource.DecimalSI).Cmp(quantity) > 0 {
		whole--
	}
	return whole
}

// sizeReader reads the size that the fields of a providerSpec state.
type sizeReader struct {
	from cty.Value
	// cpu and memory say that the fields have stated them.
	cpu, memory bool
	err         error
}

// whole reports whether the fields state the size without the help of a catalogue.
func (r *sizeReader) whole() bool { return r.cpu && r.memory }

func (r *sizeReader) missing(fields v1alpha1.CapacityFields) error {
	field := strings.Join(fields.CPU, " and ")
	if r.cpu {
		field = fields.Memory
	}
	return &SizeError{Field: field, Problem: "it is needed for the size, but it is missing", Fix: "set it"}
}

// read overwrites what the fields state. A field that is null states nothing.
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
			r.fail(fields.Memory, "it cannot be read as an amount of memory", fix)
			return
		}
		size.MemoryMiB, r.memory = quantity.Value()>>20, true
	}
	if fields.GPU != "" {
		if count := r.product([]string{fields.GPU}); count != nil {
			size.GPU = *count
		}
	}
	if text := textAt(r.from, fields.Architecture); text != "" {
		if len(validation.IsValidLabelValue(text)) > 0 {
			r.fail(fields.Architecture, "it cannot be the value of the label kubernetes.io/arch", "write it as amd64 or arm64")
		}
		size.Architecture = text
	}
}

// product multiplies fields; nil when there are none, or one of them states nothing.
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
			r.fail(path, "it cannot be read as a count", "write a number, for example 4")
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

// valueAt returns the value at a path of object attributes that is known and not null.
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

// textAt returns the string or number at a path as text; "" when there is none.
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
