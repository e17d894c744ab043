package v1alpha1

// ModulePreview says what a preview shows people of an instance besides what its outputs say, from the providerSpec alone. At least one
// of its fields is set. No run reads it.
type ModulePreview struct {
	// image lists texts that name what the instance boots from. {image.id} in one stands for that field of the providerSpec, a string or
	// a number; the first text counts whose fields all have a value. A field inside of a list that a disk's each names is that of the entry
	// which the disk's boot finds. Where no text counts, no image is shown.
	Image []string `json:"image,omitempty"`
	// disks lists the disks of the instance. May be empty, and then none are shown.
	Disks []PreviewDisk `json:"disks,omitempty"`
}

// PreviewDisk says how large a disk of the instance is, or each disk of a list. Paths have their parts joined by dots.
type PreviewDisk struct {
	// each is a field of the providerSpec: a list, set or map of objects, and there is a disk for each. The paths below are then fields of
	// such an object. When left out, there is one disk, and they are fields of the providerSpec.
	Each string `json:"each,omitempty"`
	// boot finds the object of each that the instance boots from. When none has such a value, the instance has one disk more, its image's.
	// When left out, nothing is said of that.
	Boot *FieldValues `json:"boot,omitempty"`
	// size is the field with the size: a Kubernetes quantity ("16Gi"), or a number in sizeUnit. When it has no value, or 0, the size is one
	// that only the infrastructure knows, such as the image's.
	Size string `json:"size"`
	// sizeUnit is the suffix of a Kubernetes quantity that a number in the field size counts, for example "Gi". Defaults to bytes.
	SizeUnit string `json:"sizeUnit,omitempty"`
	// sizeUnless finds an instance whose disk has the size that only the infrastructure knows, whatever the field size says. May be left
	// out.
	SizeUnless *FieldValues `json:"sizeUnless,omitempty"`
	// type lists fields that name the type of the disk, of which the first that has a value counts. May be empty.
	Type []string `json:"type,omitempty"`
	// defaultType is the type that the module asks for where no field names one. When left out, none is shown then.
	DefaultType string `json:"defaultType,omitempty"`
}

// FieldValues is met by a field with one of the values.
type FieldValues struct {
	// path is the field, its parts joined by dots: a string, a number or a bool.
	Path string `json:"path"`
	// values are the values, as texts; "" stands for a field without one as well. At least one.
	Values []string `json:"values"`
}
