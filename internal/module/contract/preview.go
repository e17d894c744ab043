package contract

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/module"
)

// fieldFix is the fix for an invalid path.
const fieldFix = "write the path of the field, joined by dots"

// checkPreview checks that the fields in spec.preview exist and can hold the values that are read
// from them.
func checkPreview(meta *Metadata, providerSpec module.Variable) {
	preview := meta.Spec.Preview
	if len(preview.Image)+len(preview.Disks) == 0 {
		meta.AtField("spec.preview", "says nothing", "set image or disks, or remove it")
	}
	whole := fieldsOf(meta, providerSpec)
	for i, text := range preview.Image {
		whole.image(fmt.Sprintf("spec.preview.image[%d]", i), text, preview.Disks)
	}
	for i, disk := range preview.Disks {
		at := fmt.Sprintf("spec.preview.disks[%d]", i)
		fields := whole
		if disk.Each != "" {
			entry, ok := whole.entry(disk.Each)
			if !ok {
				meta.AtField(at+".each", fmt.Sprintf("is %q, which is not a list, set or map of objects in var.provider_spec",
					disk.Each), fieldFix)
				continue
			}
			fields = previewFields{Metadata: meta, of: disk.Each, fields: entry}
		}
		fields.disk(at, disk)
	}
}

// previewFields are the fields that paths in spec.preview may refer to.
type previewFields struct {
	*Metadata
	// of is what contains the fields, for messages.
	of     string
	fields cty.Type
}

// entry returns the element type of a list, set or map of objects.
func (f previewFields) entry(path string) (cty.Type, bool) {
	constraint, exists := fieldType(f.fields, path)
	if !exists || !constraint.IsCollectionType() || !constraint.ElementType().IsObjectType() {
		return cty.NilType, false
	}
	return constraint.ElementType(), true
}

// image checks a text that names the image.
func (f previewFields) image(at, text string, disks []v1alpha1.PreviewDisk) {
	const fix = "use {field} for the value of a field of the providerSpec, joined by dots"
	named := false
	_, err := module.ExpandKey(text, func(path string) (string, error) {
		named = true
		if !f.names(path, disks) {
			return "",
				fmt.Errorf("names %q, which is neither a string or number field of var.provider_spec, nor one of a list whose entry a disk's boot finds", path)
		}
		return "", nil
	})
	if err == nil && !named {
		err = errors.New("contains no field")
	}
	if err != nil {
		f.AtField(at, fmt.Sprintf("is %q, which %s", text, err), fix)
	}
}

// names reports whether an image can be named by a field.
func (f previewFields) names(path string, disks []v1alpha1.PreviewDisk) bool {
	fields := f.fields
	for _, disk := range disks {
		if rest, inside := module.InsideEach(disk, path); inside {
			if entry, ok := f.entry(disk.Each); ok {
				fields, path = entry, rest
			}
			break
		}
	}
	constraint, exists := fieldType(fields, path)
	return exists && (constraint == cty.String || constraint == cty.Number)
}

// disk checks the description of a disk.
func (f previewFields) disk(at string, disk v1alpha1.PreviewDisk) {
	f.field(at+".size", disk.Size, cty.Number, cty.String)
	if _, err := resource.ParseQuantity("1" + disk.SizeUnit); err != nil {
		f.AtField(at+".sizeUnit", fmt.Sprintf("is %q, which is not a suffix of a quantity", disk.SizeUnit),
			"write Mi or Gi, or remove it for bytes")
	}
	for i, path := range disk.Type {
		f.field(fmt.Sprintf("%s.type[%d]", at, i), path, cty.String, cty.Number)
	}
	f.values(at+".sizeUnless", disk.SizeUnless)
	if disk.Boot != nil && disk.Each == "" {
		f.AtField(at+".boot", "selects one of several objects, but there is no each", "set each, or remove it")
		return
	}
	f.values(at+".boot", disk.Boot)
}

// values checks a field that must have one of several values.
func (f previewFields) values(at string, wanted *v1alpha1.FieldValues) {
	if wanted == nil {
		return
	}
	f.field(at+".path", wanted.Path, cty.String, cty.Number, cty.Bool)
	if len(wanted.Values) == 0 {
		f.AtField(at+".values", "is empty", "list at least one value")
	}
}

// field checks that a path leads to a field of one of the types.
func (f previewFields) field(at, path string, types ...cty.Type) {
	if constraint, exists := fieldType(f.fields, path); exists && slices.ContainsFunc(types, constraint.Equals) {
		return
	}
	names := make([]string, 0, len(types))
	for _, one := range types {
		names = append(names, one.FriendlyName())
	}
	f.AtField(at, fmt.Sprintf("is %q, which is not a %s field of %s", path, strings.Join(names, " or "), f.of), fieldFix)
}

// fieldsOf are the fields of a providerSpec.
func fieldsOf(meta *Metadata, providerSpec module.Variable) previewFields {
	return previewFields{Metadata: meta, of: "var.provider_spec", fields: providerSpec.Type}
}
