package instance

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/credential"
)

// Preview is what module.yaml derives about an instance from its providerSpec alone.
type Preview struct {
	// Image names what the instance boots from; empty where module.yaml does not say.
	Image string
	// Disks are those of the instance; none where module.yaml does not say.
	Disks []Disk
}

// Disk is one of an instance's.
type Disk struct {
	// Size is a Kubernetes quantity; empty where only the infrastructure knows.
	Size string
	// Type is in the provider's words; may be empty.
	Type string
}

// PreviewOf returns the image and the disks of an instance of a module made of a providerSpec, as far as module.yaml says. The value is of the
// type of the variable provider_spec, defaults filled in.
func PreviewOf(m *module.Module, providerSpec cty.Value) Preview {
	spec := m.Spec().Preview
	if spec == nil {
		return Preview{}
	}
	reader := previewReader{spec: *spec, from: providerSpec}
	return Preview{Image: reader.image(), Disks: reader.disks()}
}

// previewReader reads what a preview shows from a providerSpec.
type previewReader struct {
	spec v1alpha1.ModulePreview
	from cty.Value
}

// errUnset says that a field has no value.
var errUnset = errors.New("has no value")

// image returns the first text whose fields all have a value.
func (r previewReader) image() string {
	for _, text := range r.spec.Image {
		found, err := credential.ExpandKey(text, func(path string) (string, error) {
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

// field returns the value of a field, which may be one of the entry that the instance boots from.
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

// InsideEach returns the rest of a path that leads into the objects among which a disk's boot finds one.
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
			disks = append(disks, Disk{}) // the image's
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

// diskSize returns a size as its author wrote it, with its unit. Bytes are shown in a larger unit where possible, since they are hard to read.
func diskSize(text, unit string) string {
	quantity, err := quantityOf(text + unit)
	switch {
	case err != nil:
		return text // its validation lets it pass, so people may read it as it is
	case quantity.Sign() <= 0:
		return ""
	}
	if _, err := strconv.ParseUint(text+unit, 10, 64); err == nil {
		return resource.NewQuantity(quantity.Value(), resource.BinarySI).String()
	}
	return text + unit
}

// entriesAt returns the objects of a list, a set or a map at a path.
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
