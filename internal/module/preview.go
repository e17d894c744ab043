package module

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
)

// InstancePreview is what module.yaml derives about an instance from its providerSpec alone.
type InstancePreview struct {
	// Image is the boot image, or empty if module.yaml does not say.
	Image string
	// Disks of the instance, or none if module.yaml does not say.
	Disks []Disk
}

// Disk is a disk of an instance.
type Disk struct {
	// Size is a Kubernetes quantity, or empty if only the infrastructure knows.
	Size string
	// Type is the provider's name; may be empty.
	Type string
}

// PreviewOf returns the image and the disks of an instance for a providerSpec, as far as
// module.yaml says. The value has the type of the variable provider_spec, with defaults applied.
func PreviewOf(m *Module, providerSpec cty.Value) InstancePreview {
	spec := m.Spec().Preview
	if spec == nil {
		return InstancePreview{}
	}
	reader := previewReader{spec: *spec, from: providerSpec}
	return InstancePreview{Image: reader.image(), Disks: reader.disks()}
}

// previewReader reads the preview from a providerSpec.
type previewReader struct {
	spec v1alpha1.ModulePreview
	from cty.Value
}

// errUnset means that a field has no value.
var errUnset = errors.New("has no value")

// image returns the first text whose fields all have values.
func (r previewReader) image() string {
	for _, text := range r.spec.Image {
		found, err := ExpandKey(text, func(path string) (string, error) {
			if value := r.field(path); value != "" {
				return value, nil
			}
			return "", errUnset
		})
		if err == nil {
			return found
		}
	}
	return ""
}

// field returns the value of a field, possibly of the list entry that the instance boots from.
func (r previewReader) field(path string) string {
	for _, disk := range r.spec.Disks {
		if rest, inside := InsideEach(disk, path); inside {
			entries := entriesAt(r.from, disk.Each)
			if n := slices.IndexFunc(entries, func(entry cty.Value) bool { return meets(entry, disk.Boot) }); n >= 0 {
				return textAt(entries[n], rest)
			}
			return ""
		}
	}
	return textAt(r.from, path)
}

// InsideEach returns the rest of a path that leads into the objects from which a disk's boot
// selects one.
func InsideEach(disk v1alpha1.PreviewDisk, path string) (rest string, inside bool) {
	if disk.Each == "" || disk.Boot == nil {
		return "", false
	}
	return strings.CutPrefix(path, disk.Each+".")
}

func (r previewReader) disks() []Disk {
	var disks []Disk
	for _, one := range r.spec.Disks {
		entries := []cty.Value{r.from}
		if one.Each != "" {
			entries = entriesAt(r.from, one.Each)
		}
		if one.Boot != nil && !slices.ContainsFunc(entries, func(entry cty.Value) bool { return meets(entry, one.Boot) }) {
			disks = append(disks, Disk{}) // the image's disk
		}
		for _, entry := range entries {
			disks = append(disks, diskOf(entry, one))
		}
	}
	return disks
}

func diskOf(entry cty.Value, spec v1alpha1.PreviewDisk) Disk {
	disk := Disk{Type: spec.DefaultType}
	if !meets(entry, spec.SizeUnless) {
		disk.Size = diskSize(textAt(entry, spec.Size), spec.SizeUnit)
	}
	for _, path := range spec.Type {
		if text := textAt(entry, path); text != "" {
			disk.Type = text
			break
		}
	}
	return disk
}

// diskSize returns a size as written, with its unit. Bytes are converted to a larger unit if
// possible, since they are hard to read.
func diskSize(text, unit string) string {
	quantity, err := quantityOf(text + unit)
	switch {
	case err != nil:
		return text // its validation accepts it, so show it as it is
	case quantity.Sign() <= 0:
		return ""
	}
	if _, err := strconv.ParseUint(text+unit, 10, 64); err == nil {
		return resource.NewQuantity(quantity.Value(), resource.BinarySI).String()
	}
	return text + unit
}

// entriesAt returns the objects of a list, set or map at a path.
func entriesAt(value cty.Value, path string) []cty.Value {
	found, ok := valueAt(value, path)
	if !ok || !found.CanIterateElements() {
		return nil
	}
	var entries []cty.Value
	for _, entry := range found.Elements() {
		entries = append(entries, entry)
	}
	return entries
}

// meets reports whether a field has one of the values.
func meets(value cty.Value, wanted *v1alpha1.FieldValues) bool {
	return wanted != nil && slices.Contains(wanted.Values, textAt(value, wanted.Path))
}
