package v1alpha1

// ModulePreview names an instance's image and disks for previews, from the providerSpec alone. At least one field is
// set. Runs ignore it.
type ModulePreview struct {
	// image lists templates such as {image.id}; the first whose fields all have values is shown. A field inside a
	// disk's each is read from the boot entry.
	Image []string `json:"image,omitempty"`
	// disks lists the instance's disks.
	Disks []PreviewDisk `json:"disks,omitempty"`
}

// PreviewDisk describes a disk, or each disk of a list. Paths are joined by dots.
type PreviewDisk struct {
	// each is a list, set or map of objects with one disk per object. The other paths are then inside the object.
	Each string `json:"each,omitempty"`
	// boot finds the object that the instance boots from. If none matches, the image's own disk comes first.
	Boot *FieldValues `json:"boot,omitempty"`
	// size is the field with the size: a quantity ("16Gi"), or a number in sizeUnit. Unknown without a value, or with
	// 0.
	Size string `json:"size"`
	// sizeUnit is the unit of a number in size, such as "Gi". Defaults to bytes.
	SizeUnit string `json:"sizeUnit,omitempty"`
	// sizeUnless finds an instance whose size is unknown, whatever size says.
	SizeUnless *FieldValues `json:"sizeUnless,omitempty"`
	// type lists fields with the disk's type; the first with a value wins.
	Type []string `json:"type,omitempty"`
	// defaultType is the type that the module requests if no field names one.
	DefaultType string `json:"defaultType,omitempty"`
}

// FieldValues matches a field with one of several values.
type FieldValues struct {
	// path is a string, number or bool field, joined by dots.
	Path string `json:"path"`
	// values lists texts; "" also matches a field without a value. At least one.
	Values []string `json:"values"`
}
