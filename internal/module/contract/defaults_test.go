package contract_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/contract"
	"github.com/machine-iac/machine-iac-operator/internal/module/load"
	"github.com/machine-iac/machine-iac-operator/test/moduletest"
)

// filling returns a change of the valid module: the entries of spec.defaults, and fields that they fill in.
func filling(entries string) []moduletest.Change {
	return []moduletest.Change{
		{"module.yaml", "  lookup:\n", "  defaults:\n" + entries + "  lookup:\n"},
		{"variables.tf", "    size              = string\n", "    size = string\n    zones = optional(list(string))\n    place = optional(object({ region = string, rack = optional(number) }))\n" +
			"    labels = optional(map(object({ text = string })))\n"},
	}
}

func TestLoadRefusesADefaultThatCannotBeFilledIn(t *testing.T) {
	const aField = "write the path of a field, joined by dots"
	tests := map[string]struct {
		entries string
		want    []string
	}{
		"a field that there is not": {
			entries: "    - {path: place.zone, value: a}\n",
			want:    []string{`module.yaml:21: spec.defaults[0].path is "place.zone", which is not a field of var.provider_spec; ` + aField},
		},
		"a value of another type": {
			entries: "    - {path: place.rack, value: many}\n",
			want:    []string{"module.yaml:21: spec.defaults[0].value does not match the field's type: a number is required; write number"},
		},
		"an object that lacks a field": {
			entries: "    - path: place\n      value: {rack: 3}\n",
			want:    []string{`module.yaml:22: spec.defaults[0].value does not match the field's type: attribute "region" is required; write object`},
		},
		"an object with a field too many, which would be dropped without a word": {
			entries: "    - path: place\n      value: {region: r, Rack: 3}\n",
			want:    []string{`module.yaml:22: spec.defaults[0].value does not match the field's type: unknown attribute "Rack"; write object`},
		},
		"a field too many deep inside": {
			entries: "    - path: disks\n      value: [{gib: 3, type: x}]\n    - path: labels\n      value: {a: {text: b, more: c}}\n",
			want: []string{
				`module.yaml:22: spec.defaults[0].value does not match the field's type: unknown attribute "type"; write list of object`,
				`module.yaml:24: spec.defaults[1].value does not match the field's type: unknown attribute "more"; write map of object`,
			},
		},
		"a value that there is not": {
			entries: "    - path: size\n      value: \"{zone}-size\"\n",
			want: []string{`module.yaml:22: spec.defaults[0].value uses {zone}, which is not a value of the cluster; use one of {architecture}, {clusterID}, ` +
				`{namespace}, {networkResourceGroup}, {platform}, {project}, {region}, {resourceGroup}; braces have no other use`},
		},
		"braces that do not close": {
			entries: "    - path: size\n      value: \"{region\"\n",
			want: []string{`module.yaml:22: spec.defaults[0].value has a { without } after it; use one of {architecture}, {clusterID}, ` +
				`{namespace}, {networkResourceGroup}, {platform}, {project}, {region}, {resourceGroup}; braces have no other use`},
		},
		"a value that fills in nothing": {
			entries: "    - path: zones\n      value: []\n    - path: size\n",
			want: []string{
				`module.yaml:22: spec.defaults[0].value is missing, or is null, "" or [], which would set nothing; write a value, or remove the default`,
				`module.yaml:23: spec.defaults[1].value is missing, or is null, "" or [], which would set nothing; write a value, or remove the default`,
			},
		},
		"a value for one architecture that does not fit": {
			entries: "    - path: zones\n      value: [a]\n      byArchitecture: {arm64: 3}\n",
			want:    []string{"module.yaml:23: spec.defaults[0].byArchitecture.arm64 does not match the field's type: list of string required, but have number; write list of string"},
		},
		"a condition on a field that there is not": {
			entries: "    - path: zones\n      value: [a]\n      unless: [size, zone]\n",
			want:    []string{`module.yaml:23: spec.defaults[0].unless[1] is "zone", which is not a field of var.provider_spec; ` + aField},
		},
		"a field twice": {
			entries: "    - {path: size, value: a}\n    - {path: size, value: b}\n",
			want:    []string{`module.yaml:22: spec.defaults[1].path is "size", which the default of "size" sets as well; keep one`},
		},
		"a field and a part of it, which would be overwritten": {
			entries: "    - {path: place.region, value: a}\n    - {path: place, value: {region: b}}\n",
			want:    []string{`module.yaml:22: spec.defaults[1].path is "place", which the default of "place.region" sets as well; keep one`},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := load.Module(moduletest.FS(moduletest.Changed(t, filling(tc.entries)...)))
			var broken *contract.Error
			if !errors.As(err, &broken) {
				t.Fatalf("got %v, want a breach of the contract", err)
			}
			if diff := cmp.Diff(tc.want, breachTexts(broken)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestDefaultHasAValueAsSoonAsItsClusterValuesAreKnown(t *testing.T) {
	const entries = `    - path: place
      value: {region: "{region}", rack: 12345678901234567890}
    - path: zones
      value: ["{clusterID}-{region}-a", b]
      byArchitecture: {arm64: [c]}
`
	tests := map[string]struct {
		cluster     module.ClusterValues
		want        string
		wantMissing []string
	}{
		"all values are known":                    {module.ClusterValues{module.ValueRegion: "r", module.ValueClusterID: "c"}, `[{"rack":12345678901234567890,"region":"r"},["c-r-a","b"]]`, nil},
		"a value is missing":                      {module.ClusterValues{module.ValueRegion: "r"}, `[{"rack":12345678901234567890,"region":"r"},null]`, []string{module.ValueClusterID}},
		"no value is known, each is named once":   {nil, `[null,null]`, []string{module.ValueRegion, module.ValueClusterID, module.ValueRegion}},
		"another architecture with its own value": {module.ClusterValues{module.ValueArchitecture: "arm64"}, `[null,["c"]]`, []string{module.ValueRegion}},
		"an architecture without one":             {module.ClusterValues{module.ValueArchitecture: "s390x", module.ValueRegion: "r", module.ValueClusterID: "c"}, `[{"rack":12345678901234567890,"region":"r"},["c-r-a","b"]]`, nil},
	}
	defaults := moduletest.Load(t, filling(entries)...).Defaults()
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var values []any
			var missing []string
			for _, one := range defaults {
				value, lacks := one.Value(tc.cluster)
				values, missing = append(values, value), append(missing, lacks...)
			}
			raw, err := json.Marshal(values)
			if err != nil || string(raw) != tc.want {
				t.Errorf("got %s, want %s (%v)", raw, tc.want, err)
			}
			if diff := cmp.Diff(tc.wantMissing, missing); diff != "" {
				t.Errorf("missing values (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRestoreLeavesOutDefaultsThatCannotBeFilledIn(t *testing.T) {
	restored, err := load.Restore(moduletest.FS(moduletest.Changed(t, filling("    - {path: size, value: a}\n    - {path: zone, value: a}\n    - {path: zones, value: [\"{later}\"]}\n")...)))
	if err != nil {
		t.Fatal(err)
	}
	if got := restored.Defaults(); len(got) != 1 || got[0].Path != "size" {
		t.Errorf("got %v, want that of size only", got)
	}
}
