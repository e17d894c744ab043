package module_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/contract"
	"github.com/machine-iac/machine-iac-operator/internal/module/load"
	"github.com/machine-iac/machine-iac-operator/test/moduletest"
)

// previewed is a module whose providerSpec has images and disks in every form, with spec.preview for them in its module.yaml.
func previewed(preview string) []moduletest.Change {
	return []moduletest.Change{
		{"module.yaml", "  capacity:\n", preview + "  capacity:\n"},
		{"variables.tf", "    disks             = optional(list(object({ gib = number })), [])\n", `    image   = optional(object({ id = optional(string), name = optional(string), release = optional(number) }), {})
    clone   = optional(string, "full")
    rootGiB = optional(number)
    bytes   = optional(string)
    labels  = optional(map(string), {})
    disks = optional(list(object({
      boot  = optional(bool)
      gib   = optional(number)
      image = optional(string)
      class = optional(object({ name = optional(string) }))
      tier  = optional(number)
    })), [])
    named = optional(map(object({ size = string })), {})
`},
	}
}

// given returns a providerSpec out of JSON, with the type of the module's variable.
func given(t *testing.T, from *module.Module, text string) cty.Value {
	t.Helper()
	variable := from.Variable(module.VariableProviderSpec)
	var fields map[string]any
	if err := json.Unmarshal([]byte(text), &fields); err != nil {
		t.Fatal(err)
	}
	fields["size"], fields["credentialsSecret"] = "small", map[string]any{"name": "c"}
	raw, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	implied, err := ctyjson.ImpliedType(raw)
	if err != nil {
		t.Fatal(err)
	}
	value, err := ctyjson.Unmarshal(raw, implied)
	if err != nil {
		t.Fatal(err)
	}
	value, err = convert.Convert(variable.Defaults.Apply(value), variable.Type)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func TestPreview(t *testing.T) {
	const (
		image = "  preview: {image: [\"{image.id}\", \"{image.name}:{image.release}\"]}\n"
		boot  = "  preview: {image: [\"{disks.image}\", \"{image.id}\"], disks: [{each: disks, boot: {path: boot, values: [\"true\"]}, size: gib, sizeUnit: Gi}]}\n"
		root  = "  preview: {disks: [{size: rootGiB, sizeUnit: Gi, sizeUnless: {path: clone, values: [linked]}}, {each: disks, size: gib, sizeUnit: Gi, " +
			"type: [class.name, tier], defaultType: slow}]}\n"
	)
	tests := map[string]struct {
		preview string
		spec    string
		want    module.InstancePreview
	}{
		"a module without a preview has none":            {spec: `{"image": {"id": "i"}}`},
		"an image is a field":                            {preview: image, spec: `{"image": {"id": "ami-1", "name": "n"}}`, want: module.InstancePreview{Image: "ami-1"}},
		"an image may be made of several fields":         {preview: image, spec: `{"image": {"name": "n", "release": 9}}`, want: module.InstancePreview{Image: "n:9"}},
		"a text with a field that is missing counts not": {preview: image, spec: `{"image": {"id": "", "name": "n"}}`},
		"the image may be that of the disk that is booted from": {
			preview: boot, spec: `{"disks": [{"image": "data", "gib": 1}, {"boot": true, "image": "os", "gib": 2}]}`,
			want: module.InstancePreview{Image: "os", Disks: []module.Disk{{Size: "1Gi"}, {Size: "2Gi"}}},
		},
		"another image counts where no disk is booted from, and then there is one more": {
			preview: boot, spec: `{"image": {"id": "i"}, "disks": [{"image": "data", "gib": 1}]}`,
			want: module.InstancePreview{Image: "i", Disks: []module.Disk{{}, {Size: "1Gi"}}},
		},
		"without a list there is the disk of the image": {preview: boot, spec: `{"disks": null}`, want: module.InstancePreview{Disks: []module.Disk{{}}}},
		"disks have sizes and types, in the words of the providerSpec": {
			preview: root, spec: `{"rootGiB": 120, "disks": [{"gib": 1.5, "class": {"name": "fast"}, "tier": 1}, {"gib": 2048, "class": {}, "tier": 7}, {"gib": 3}]}`,
			want: module.InstancePreview{Disks: []module.Disk{{Size: "120Gi"}, {Size: "1.5Gi", Type: "fast"}, {Size: "2048Gi", Type: "7"}, {Size: "3Gi", Type: "slow"}}},
		},
		"a size that is left out, or zero, is known to the infrastructure only": {
			preview: root, spec: `{"rootGiB": 0, "disks": [{}]}`, want: module.InstancePreview{Disks: []module.Disk{{}, {Type: "slow"}}},
		},
		"a size that does not count is known to the infrastructure only": {
			preview: root, spec: `{"rootGiB": 120, "clone": "linked"}`, want: module.InstancePreview{Disks: []module.Disk{{}}},
		},
		"bytes are written so that people can read them": {
			preview: "  preview: {disks: [{size: bytes}]}\n", spec: `{"bytes": "34359738368"}`, want: module.InstancePreview{Disks: []module.Disk{{Size: "32Gi"}}},
		},
		"a quantity stays as it is written": {
			preview: "  preview: {disks: [{size: bytes}]}\n", spec: `{"bytes": "30G"}`, want: module.InstancePreview{Disks: []module.Disk{{Size: "30G"}}},
		},
		"what is no quantity stays as it is written": {
			preview: "  preview: {disks: [{size: bytes, sizeUnit: Gi}]}\n", spec: `{"bytes": "large"}`, want: module.InstancePreview{Disks: []module.Disk{{Size: "large"}}},
		},
		"the disks of a map come by their names": {
			preview: "  preview: {disks: [{each: named, size: size}]}\n", spec: `{"named": {"b": {"size": "2Gi"}, "a": {"size": "1Gi"}}}`,
			want: module.InstancePreview{Disks: []module.Disk{{Size: "1Gi"}, {Size: "2Gi"}}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			loaded := moduletest.Load(t, previewed(tc.preview)...)
			if diff := cmp.Diff(tc.want, module.PreviewOf(loaded, given(t, loaded, tc.spec))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestLoadRefusesAPreviewThatCannotBeRead(t *testing.T) {
	const fields = "; write the path of the field, joined by dots"
	tests := map[string]struct{ preview, want string }{
		"nothing to show": {
			"  preview: {}\n", "module.yaml:23: spec.preview says nothing; set image or disks, or remove it",
		},
		"an image that is a field without braces, which would be shown as it is": {
			"  preview:\n    image: [image.id]\n", `module.yaml:24: spec.preview.image[0] is "image.id", which contains no field; ` +
				"use {field} for the value of a field of the providerSpec, joined by dots",
		},
		"an image with a brace too many": {
			"  preview:\n    image: [\"{image.id\"]\n", `module.yaml:24: spec.preview.image[0] is "{image.id", which has a { without } after it; ` +
				"use {field} for the value of a field of the providerSpec, joined by dots",
		},
		"an image by an object": {
			"  preview:\n    image: [\"{image.id}\", \"{image}\"]\n", `module.yaml:24: spec.preview.image[1] is "{image}", which names "image", which is neither a string or number ` +
				"field of var.provider_spec, nor one of a list whose entry a disk's boot finds; use {field} for the value of a field of the providerSpec, joined by dots",
		},
		"an image in a list of which nobody says which entry": {
			"  preview:\n    image: [\"{disks.image}\"]\n    disks: [{each: disks, size: gib}]\n", `module.yaml:24: spec.preview.image[0] is "{disks.image}", which names ` +
				`"disks.image", which is neither a string or number field of var.provider_spec, nor one of a list whose entry a disk's boot finds; ` +
				"use {field} for the value of a field of the providerSpec, joined by dots",
		},
		"a list that is none": {
			"  preview:\n    disks:\n      - {each: rootGiB, size: gib}\n", `module.yaml:25: spec.preview.disks[0].each is "rootGiB", which is not a list, set or map of objects in var.provider_spec` + fields,
		},
		"a map of texts": {
			"  preview:\n    disks:\n      - {each: labels, size: gib}\n", `module.yaml:25: spec.preview.disks[0].each is "labels", which is not a list, set or map of objects in var.provider_spec` + fields,
		},
		"a disk without a size": {
			"  preview:\n    disks:\n      - {type: [clone]}\n", `module.yaml:25: spec.preview.disks[0].size is "", which is not a number or string field of var.provider_spec` + fields,
		},
		"a field that the entries of a list lack": {
			"  preview:\n    disks:\n      - {size: rootGiB}\n      - each: disks\n        size: rootGiB\n        type: [class]\n",
			`module.yaml:27: spec.preview.disks[1].size is "rootGiB", which is not a number or string field of disks` + fields + "\n" +
				`module.yaml:28: spec.preview.disks[1].type[0] is "class", which is not a string or number field of disks` + fields,
		},
		"a unit that is none": {
			"  preview:\n    disks:\n      - {size: rootGiB, sizeUnit: GiB}\n",
			`module.yaml:25: spec.preview.disks[0].sizeUnit is "GiB", which is not a suffix of a quantity; write Mi or Gi, or remove it for bytes`,
		},
		"an entry to boot from without entries": {
			"  preview:\n    disks:\n      - {size: rootGiB, boot: {path: clone, values: [full]}}\n",
			"module.yaml:25: spec.preview.disks[0].boot selects one of several objects, but there is no each; set each, or remove it",
		},
		"a condition that nothing meets": {
			"  preview:\n    disks:\n      - {each: disks, size: gib, boot: {path: class, values: []}}\n",
			`module.yaml:25: spec.preview.disks[0].boot.path is "class", which is not a string or number or bool field of disks` + fields + "\n" +
				"module.yaml:25: spec.preview.disks[0].boot.values is empty; list at least one value",
		},
		"a condition of a field that is not there": {
			"  preview:\n    disks:\n      - {size: rootGiB, sizeUnless: {path: mode, values: [linked]}}\n",
			`module.yaml:25: spec.preview.disks[0].sizeUnless.path is "mode", which is not a string or number or bool field of var.provider_spec` + fields,
		},
		"a misspelt field": {
			"  preview:\n    images: [\"{image.id}\"]\n", "module.yaml:23: spec.preview says nothing; set image or disks, or remove it\n" +
				`module.yaml:24: spec.preview.images is invalid: unknown field "spec.preview.images"; remove it, or correct the spelling`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := load.Module(moduletest.FS(moduletest.Changed(t, previewed(tc.preview)...)))
			var broken *contract.Error
			if !errors.As(err, &broken) {
				t.Fatalf("want a contract.Error, got %v", err)
			}
			lines := make([]string, 0, len(broken.Breaches))
			for _, breach := range broken.Breaches {
				lines = append(lines, breach.String())
			}
			if diff := cmp.Diff(tc.want, strings.Join(lines, "\n")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
