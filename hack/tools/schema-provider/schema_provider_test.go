package main

import (
	"bytes"
	"io/fs"
	"path"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov5"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

func TestEveryRecordIsServed(t *testing.T) {
	files, err := fs.Glob(records, "schemas/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("records %v, %v", files, err)
	}
	for _, file := range files {
		t.Run(path.Base(file), func(t *testing.T) {
			name, version, _ := strings.Cut(strings.TrimSuffix(path.Base(file), ".json"), "-")
			schema, err := readRecord(name, version)
			if err != nil {
				t.Fatal(err)
			}
			served := provider{version: version, schema: schema}
			if path.Dir(path.Dir(schema.Address)) != "registry.opentofu.org" || path.Base(schema.Address) != name {
				t.Errorf("got address %s, want registry.opentofu.org/NAMESPACE/%s", schema.Address, name)
			}
			for _, argument := range schema.Provider.Block.Attributes {
				if argument.Required {
					t.Errorf("the provider's argument %s is required; a run may set it in the environment", argument.Name)
				}
			}
			response, err := served.GetProviderSchema(t.Context(), nil)
			if err != nil || len(response.ResourceSchemas) == 0 || len(response.DataSourceSchemas) == 0 {
				t.Errorf("want resources and data sources, got %v and %v", response, err)
			}
			configured, err := served.ConfigureProvider(t.Context(), nil)
			if err != nil || len(configured.Diagnostics) != 1 || !strings.Contains(configured.Diagnostics[0].Summary, "only the recorded schema of "+schema.Address) {
				t.Errorf("want a refusal that names the provider, got %v and %v", configured, err)
			}
		})
	}
}

func TestTheNameOfTheBinaryTellsTheRecord(t *testing.T) {
	for name, tc := range map[string]struct{ binary, wantName, wantVersion string }{
		"as a mirror has it":      {"terraform-provider-aws_v6.25.0", "aws", "6.25.0"},
		"on another system":       {"terraform-provider-google_v7.45.0.exe", "google", "7.45.0"},
		"a name without a record": {"schema-provider", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			gotName, gotVersion, err := recordOf(tc.binary)
			if gotName != tc.wantName || gotVersion != tc.wantVersion || (err == nil) != (tc.wantName != "") {
				t.Errorf("got %q, %q, %v", gotName, gotVersion, err)
			}
		})
	}
}

const small = `{"format_version":"1.0","provider_schemas":{"registry.opentofu.org/a/b":{"provider":{"version":0,"block":{"attributes":{"user":{"type":"string","required":true}}}},
"resource_schemas":{"b_x":{"version":1,"block":{"attributes":{"id":{"type":"string","description":"long","computed":true}},
"block_types":{"part":{"nesting_mode":"list","max_items":1,"block":{"attributes":{"n":{"type":"number","required":true}}}}}}},"b_y":{"version":0,"block":{}}},
"data_source_schemas":{"b_z":{"version":0,"block":{}}}}}}`

func TestRecordKeepsWhatIsNamed(t *testing.T) {
	var out bytes.Buffer
	if err := record([]string{"-provider", "registry.opentofu.org/a/b", "-also", "b_x,b_z"}, strings.NewReader(small), &out); err != nil {
		t.Fatal(err)
	}
	schema, err := parseRecord(out.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	want := tftypes.Object{AttributeTypes: map[string]tftypes.Type{
		"id":   tftypes.String,
		"part": tftypes.List{ElementType: tftypes.Object{AttributeTypes: map[string]tftypes.Type{"n": tftypes.Number}}},
	}}
	if got := schema.Resources["b_x"]; !got.ValueType().Equal(want) || got.Version != 1 || len(schema.Resources) != 1 || len(schema.DataSources) != 1 {
		t.Errorf("got %v of %d and %d\n%s", got, len(schema.Resources), len(schema.DataSources), out.String())
	}
	if strings.Contains(out.String(), "long") {
		t.Error("want no descriptions in a record")
	}
	if user := schema.Provider.Block.Attributes[0]; user.Required || !user.Optional {
		t.Errorf("got %+v, want an optional argument of the provider", user)
	}
}

func TestRecordNamesWhatTheProviderLacks(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"another provider":      {[]string{"-provider", "a/c", "-also", "b_x"}, `-provider="a/c" is not there, but ["registry.opentofu.org/a/b"]`},
		"an unknown resource":   {[]string{"-provider", "registry.opentofu.org/a/b", "-also", "b_x,b_q"}, "the provider has no b_q"},
		"nothing to keep":       {[]string{"-provider", "registry.opentofu.org/a/b"}, "nothing would be kept"},
		"a record that is none": {[]string{"-provider", "registry.opentofu.org/a/b", "-like", "aws-0"}, "reading the record that -like names"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := record(tc.args, strings.NewReader(small), &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestAStateIsReadAgain(t *testing.T) {
	schema, err := parseRecord([]byte(small))
	if err != nil {
		t.Fatal(err)
	}
	served := provider{version: "1.0.0", schema: schema}
	state := &tfprotov5.RawState{JSON: []byte(`{"id":"i-1","part":[{"n":4}]}`)}
	response, err := served.UpgradeResourceState(t.Context(), &tfprotov5.UpgradeResourceStateRequest{TypeName: "b_x", Version: 1, RawState: state})
	if err != nil || len(response.Diagnostics) > 0 {
		t.Fatalf("got %v, %v", response, err)
	}
	value, err := response.UpgradedState.Unmarshal(schema.Resources["b_x"].ValueType())
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]tftypes.Value
	if err := value.As(&fields); err != nil || !fields["id"].Equal(tftypes.NewValue(tftypes.String, "i-1")) {
		t.Errorf("got %v, %v", fields, err)
	}
}
