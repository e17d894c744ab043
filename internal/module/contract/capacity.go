package contract

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/zclconf/go-cty/cty"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/module"
)

// catalogue collects the instance types of a module while they are checked.
type catalogue map[string]v1alpha1.InstanceTypeCapacity

// readCatalogue reads the instance types of module.yaml and of the file that it names, and checks
// the parts of spec.capacity that do not depend on the HCL.
func readCatalogue(meta *Metadata, files module.Files) catalogue {
	capacity := meta.Spec.Capacity
	if capacity == nil {
		return nil
	}
	known := catalogue{}
	known.add(&meta.Document, "spec.capacity.instanceTypes", capacity.InstanceTypes)
	if capacity.InstanceTypesFile != "" {
		known.addFile(meta, files)
	}
	checkFields(meta, len(capacity.InstanceTypes) > 0 || capacity.InstanceTypesFile != "")
	return known
}

func (c catalogue) addFile(meta *Metadata, files module.Files) {
	const at = "spec.capacity.instanceTypesFile"
	name := meta.Spec.Capacity.InstanceTypesFile
	if path.Dir(name) != "." || path.Ext(name) != ".yaml" || name == module.MetadataFile || strings.HasPrefix(name, ".") {
		meta.AtField(at, fmt.Sprintf("is %q, which is not a YAML file next to %s", name, module.MetadataFile),
			"use one, for example capacity.yaml")
		return
	}
	content, exists := files[name]
	if !exists {
		meta.AtField(at, fmt.Sprintf("names %s, which is missing", name), "create it, or remove the field")
		return
	}
	file := Document{Report: meta.Report, File: name, Kind: instanceTypesKind}
	var read v1alpha1.InstanceTypes
	if !file.Decode(content, &read) {
		return
	}
	file.checkKind(read.TypeMeta)
	if len(read.InstanceTypes) == 0 {
		file.AtField("instanceTypes", "is empty", "list the instance types, or remove the file")
	}
	c.add(&file, "instanceTypes", read.InstanceTypes)
}

// add adds a list of instance types.
func (c catalogue) add(from *Document, at string, entries []v1alpha1.InstanceTypeCapacity) {
	for i := range entries {
		entry := &entries[i]
		path := fmt.Sprintf("%s[%d]", at, i)
		if _, taken := c[entry.Name]; taken || entry.Name == "" {
			from.AtField(path+".name", fmt.Sprintf("is %q, which is empty or already used", entry.Name),
				"give each instance type a unique name")
		}
		if entry.CPU.Sign() <= 0 {
			from.AtField(path+".cpu", "is not positive", `write the number of CPUs, for example "4"`)
		}
		if entry.Memory.Sign() <= 0 {
			from.AtField(path+".memory", "is not positive", `write the memory, for example "16Gi"`)
		}
		if entry.GPU < 0 {
			from.AtField(path+".gpu", "is negative", "write the number of GPUs, or remove it")
		}
		if entry.Architecture == "" {
			entry.Architecture = module.DefaultArchitecture
		}
		if len(validation.IsValidLabelValue(entry.Architecture)) > 0 {
			from.AtField(path+".architecture", fmt.Sprintf("is %q, which is not a valid value of the label kubernetes.io/arch",
				entry.Architecture), "write for example amd64 or arm64")
		}
		c[entry.Name] = *entry
	}
}

// checkFields checks that a module that describes its size describes it completely.
func checkFields(meta *Metadata, catalogued bool) {
	const at = "spec.capacity.fields"
	fields := meta.Spec.Capacity.Fields
	switch {
	case fields == nil && !catalogued:
		meta.AtField("spec.capacity", "does not describe the size",
			"set instanceTypes, instanceTypesFile or fields, or remove it")
		return
	case fields == nil:
		return
	case !catalogued && len(fields.CPU) == 0:
		meta.AtField(at, "has no cpu, and there is no catalog", "name the field with the number of CPUs")
	case !catalogued && fields.Memory == "":
		meta.AtField(at, "has no memory, and there is no catalog", "name the field with the memory")
	}
	if _, err := resource.ParseQuantity("1" + fields.MemoryUnit); err != nil {
		meta.AtField(at+".memoryUnit", fmt.Sprintf("is %q, which is not a suffix of a quantity", fields.MemoryUnit),
			"write Mi or Gi, or remove it for bytes")
	}
}

// checkCapacityPaths checks that the fields in spec.capacity exist and can hold the values that are
// read from them.
func checkCapacityPaths(meta *Metadata, providerSpec module.Variable) {
	capacity := meta.Spec.Capacity
	if len(meta.InstanceTypes) > 0 {
		checkPath(meta, providerSpec, "spec.capacity.path", capacity.Path, cty.String)
	}
	checkLabels(meta, providerSpec)
	if capacity.Fields == nil {
		return
	}
	for i, path := range capacity.Fields.CPU {
		checkPath(meta, providerSpec, fmt.Sprintf("spec.capacity.fields.cpu[%d]", i), path, cty.Number, cty.String)
	}
	for field, path := range map[string]string{"memory": capacity.Fields.Memory, "gpu": capacity.Fields.GPU} {
		if path != "" {
			checkPath(meta, providerSpec, "spec.capacity.fields."+field, path, cty.Number, cty.String)
		}
	}
	if path := capacity.Fields.AttachedGPUs; path != "" {
		list, field := module.SplitLast(path)
		entry, _ := fieldsOf(meta, providerSpec).entry(list)
		if constraint, exists := fieldType(entry, field); !exists || constraint != cty.Number {
			meta.AtField("spec.capacity.fields.attachedGPUs",
				fmt.Sprintf("is %q, which is not a number field of a list's objects in var.provider_spec", path), fieldFix)
		}
	}
	if path := capacity.Fields.Architecture; path != "" {
		checkPath(meta, providerSpec, "spec.capacity.fields.architecture", path, cty.String)
	}
}

// checkLabels checks that spec.capacity.labels has keys of labels, and templates with fields that exist.
func checkLabels(meta *Metadata, providerSpec module.Variable) {
	for key, template := range meta.Spec.Capacity.Labels {
		at := "spec.capacity.labels"
		if len(validation.IsQualifiedName(key)) > 0 {
			meta.AtField(at, fmt.Sprintf("has the key %q, which is not valid for a label", key),
				"write for example topology.kubernetes.io/zone")
		}
		fields := 0
		_, err := module.ExpandKey(template, func(field string) (string, error) {
			fields++
			path := strings.TrimPrefix(field, module.LowerPrefix)
			if constraint, exists := fieldType(providerSpec.Type, path); !exists ||
				constraint != cty.String && constraint != cty.Number {
				return "", fmt.Errorf("names %q, which is not a string or number field of var.provider_spec", path)
			}
			return "", nil
		})
		if err == nil && fields == 0 {
			err = errors.New("contains no field")
		}
		if err != nil {
			meta.AtField(at, fmt.Sprintf("has %q for %s, which %s", template, key, err),
				"use {field} for the value of a field of the providerSpec, joined by dots")
		}
	}
}

// IsCatalogue reports whether a file is the one in spec.capacity.instanceTypesFile. Runs do not see
// it.
func (m *Metadata) IsCatalogue(name string) bool {
	return m != nil && m.Spec.Capacity != nil && m.Spec.Capacity.InstanceTypesFile == name
}
