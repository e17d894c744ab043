package offline

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"
	ctymsgpack "github.com/zclconf/go-cty/cty/msgpack"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/machine-iac/machine-iac-operator/test/shortdir"
)

func TestWhatAStateHasOfDataSources(t *testing.T) {
	values := `{"id":"dc-1","name":"DC0","size":12,"ratio":0.1,"tags":["a","b"],"filter":[{"name":"n","values":["x"]}],"hidden":false}`
	cases := map[string]struct {
		kind   string
		config any
		want   bool
	}{
		"the same arguments, and what is computed is left out": {kind: "dc",
			config: pairs{{"id", nil}, {"name", "DC0"}}, want: true},
		"lists and blocks": {kind: "dc",
			config: pairs{{"tags", []any{"a", "b"}}, {"filter", []any{pairs{{"name", "n"}, {"values", []any{"x"}}}}}},
			want:   true},
		"another argument":                      {kind: "dc", config: pairs{{"name", "DC1"}}},
		"a longer list":                         {kind: "dc", config: pairs{{"tags", []any{"a", "b", "c"}}}},
		"a list that is empty":                  {kind: "dc", config: pairs{{"tags", []any{}}}},
		"a block that is left out":              {kind: "dc", config: pairs{{"filter", []any{}}}},
		"an empty list where there was nothing": {kind: "dc", config: pairs{{"more", []any{}}}, want: true},
		"empty ones where there was nothing": {kind: "dc",
			config: pairs{{"owner", ""}, {"place", pairs{{"zone", ""}}}}, want: true},
		"an empty text in place of one":    {kind: "dc", config: pairs{{"name", ""}}},
		"a block with something in it":     {kind: "dc", config: pairs{{"place", pairs{{"zone", "a"}}}}},
		"another type":                     {kind: "pool", config: pairs{{"name", "DC0"}}},
		"an argument that is not known":    {kind: "dc", config: pairs{{"name", unknown{}}}},
		"an argument that it did not have": {kind: "dc", config: pairs{{"owner", "me"}}},
		"a text in place of a number":      {kind: "dc", config: pairs{{"size", "12"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := (dataSource{Type: "dc", Attributes: []byte(values)}).matches(tc.kind,
				argumentsOf(tc.config)); got != tc.want {
				t.Errorf("it matches: %t, want %t", got, tc.want)
			}
		})
	}
	for name, tc := range map[string]struct {
		value []byte
		field string
		want  bool
	}{
		"a small number":        {value: []byte{12}, field: "size", want: true},
		"a number of two bytes": {value: []byte{0xcd, 0, 12}, field: "size", want: true},
		"a signed number":       {value: []byte{0xd0, 12}, field: "size", want: true},
		"a negative number":     {value: []byte{0xf4}, field: "size"},
		"a float": {value: []byte{0xcb, 0x3f, 0xb9, 0x99, 0x99, 0x99, 0x99, 0x99, 0x9a},
			field: "ratio", want: true},
		"a float that is an even one":        {value: []byte{0xca, 0x41, 0x40, 0, 0}, field: "size", want: true},
		"a zero where there was nothing":     {value: []byte{0}, field: "count", want: true},
		"a one where there was nothing":      {value: []byte{1}, field: "count"},
		"an untruth where there was nothing": {value: []byte{0xc2}, field: "open", want: true},
		"a truth where there was nothing":    {value: []byte{0xc3}, field: "open"},
		"a truth":                            {value: []byte{0xc2}, field: "hidden", want: true},
		"the contrary of a truth":            {value: []byte{0xc3}, field: "hidden"},
	} {
		t.Run(name, func(t *testing.T) {
			of := cty.Number
			if tc.field == "open" || tc.field == "hidden" {
				of = cty.Bool
			}
			config, err := ctymsgpack.Unmarshal(slices.Concat([]byte{0x81, 0xa0 | byte(len(tc.field))},
				[]byte(tc.field), tc.value), cty.Object(map[string]cty.Type{tc.field: of}))
			if err != nil {
				t.Fatal(err)
			}
			if got := (dataSource{Type: "dc", Attributes: []byte(values)}).matches("dc", config); got != tc.want {
				t.Errorf("it matches: %t, want %t", got, tc.want)
			}
		})
	}
}

// argumentsOf returns a data source's arguments, all of them strings.
func argumentsOf(given any) cty.Value {
	switch given := given.(type) {
	case string:
		return cty.StringVal(given)
	case pairs:
		fields := map[string]cty.Value{}
		for _, one := range given {
			fields[one[0].(string)] = argumentsOf(one[1])
		}
		return cty.ObjectVal(fields)
	case []any:
		var inner []cty.Value
		for _, one := range given {
			inner = append(inner, argumentsOf(one))
		}
		return cty.TupleVal(inner)
	case nil:
		return cty.NullVal(cty.String)
	}
	return cty.UnknownVal(cty.String)
}

func TestPlanChange(t *testing.T) {
	schemas, err := schemasOf(responseOf(map[string][]byte{"example": exampleBlock()}, nil))
	if err != nil {
		t.Fatal(err)
	}
	set := &configured{attributes: map[string]bool{"name": true}, blocks: map[string]*configured{}}
	cases := map[string]struct{ prior, proposed, want any }{
		"what changes": {prior: pairs{{"name", "a"}}, proposed: pairs{{"name", "b"}},
			want: pairs{{"name", "b"}}},
		"what is written and becomes null": {prior: pairs{{"name", "a"}}, proposed: pairs{{"name", nil}},
			want: pairs{{"name", nil}}},
		"what is written, and was nothing of note": {prior: pairs{{"name", ""}}, proposed: pairs{{"name", nil}},
			want: pairs{{"name", ""}}},
		"a default of the provider, which nobody wrote": {prior: pairs{{"both", "default"}},
			proposed: pairs{{"both", nil}}, want: pairs{{"both", "default"}}},
		"what is not known": {prior: pairs{{"name", "a"}},
			proposed: pairs{{"name", unknown{}}}, want: pairs{{"name", unknown{}}}},
		"a default in a block": {prior: pairs{{"list", []any{pairs{{"given", "default"}}}}},
			proposed: pairs{{"list", []any{pairs{{"given", nil}}}}},
			want:     pairs{{"list", []any{pairs{{"given", "default"}}}}}},
		"a block that is new": {prior: pairs{{"list", []any{}}},
			proposed: pairs{{"list", []any{pairs{{"given", nil}}}}},
			want:     pairs{{"list", []any{pairs{{"given", nil}}}}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			of := schemas["example"].Type()
			if got := schemas["example"].planChange(ctyValueOf(of, tc.prior), ctyValueOf(of, tc.proposed),
				set); !has(got, tc.want) {
				t.Errorf("planned is %#v; want %v", got, tc.want)
			}
		})
	}
}

func TestAStubProviderWithAPriorState(t *testing.T) {
	data := appendField(appendField(nil, 2, attributeOf("id", `"string"`, computed)), 2,
		attributeOf("name", `"string"`, optional))
	schemas := responseOf(map[string][]byte{"example": exampleBlock()}, map[string][]byte{"dc": data})
	resources, err := schemasOf(schemas)
	if err != nil {
		t.Fatal(err)
	}
	sources, err := schemasIn(schemas, fieldDataSourceSchemas)
	if err != nil {
		t.Fatal(err)
	}
	dynamic := func(value any) []byte { return appendField(nil, 1, packed(t, resources["example"], value)) }
	change := appendField(appendField(appendField(nil, 1, []byte("example")), 2, dynamic(pairs{{"name", "a"}})), 3,
		dynamic(pairs{{"name", "b"}}))
	wrong := appendField(nil, 4,
		appendField(protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), severityError), 2,
			[]byte("no")))
	upgrade := appendField(appendField(nil, 1, []byte("example")), 3, appendField(nil, 1, []byte(`{"name":"a"}`)))
	read := func(name string) []byte {
		return appendField(appendField(nil, 1, []byte("dc")), 2,
			appendField(nil, 1, packed(t, sources["dc"], pairs{{"name", name}})))
	}
	cases := map[string]struct {
		method                          string
		request                         []byte
		response                        []byte
		err                             error
		want                            []byte
		wantErr, wantUnsure, wantMissed bool
	}{
		"the provider plans the change": {method: "PlanResourceChange", request: change,
			response: appendField(nil, 1, []byte("planned")), want: appendField(nil, 1, []byte("planned"))},
		"it crashes, so the change is as the engine proposes": {
			method: "PlanResourceChange", request: change, err: errors.New("gone"),
			want: appendField(nil, 1, dynamic(pairs{{"name", "b"}})), wantUnsure: true,
		},
		"it needs to be configured": {
			method: "PlanResourceChange", request: change, response: wrong,
			want: appendField(nil, 1, dynamic(pairs{{"name", "b"}})), wantUnsure: true,
		},
		"the provider reads what is in the state": {method: "UpgradeResourceState", request: upgrade,
			response: appendField(nil, 1, []byte("v")), want: appendField(nil, 1, []byte("v"))},
		"it does not, so the state is as it is": {method: "UpgradeResourceState", request: upgrade,
			err: errors.New("gone"), want: appendField(nil, 1, appendField(nil, 2, []byte(`{"name":"a"}`)))},
		"a data source that a state has": {method: "ReadDataSource", request: read("DC0"),
			want: appendField(nil, 1, appendField(nil, 2, []byte(`{"name":"DC0","id":"1"}`)))},
		"a data source that none has": {method: "ReadDataSource", request: read("DC1"), wantErr: true,
			wantMissed: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			prior := &priorState{
				DataSources: []dataSource{{Type: "dc", Attributes: []byte(`{"name":"DC0","id":"1"}`)}},
				Configured:  func(string) *configured { return &configured{attributes: map[string]bool{"name": true}} },
				Call:        func(context.Context, string, []byte) ([]byte, error) { return tc.response, tc.err },
			}
			started, err := newStub(stubOptions{Dir: shortdir.New(t), Schemas: schemas, Protocol: 6, Call: prior.Call,
				Prior: prior})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(started.Close)
			got, err := started.respond(t.Context(), "/tfplugin6.Provider/"+tc.method, tc.request)
			if (err != nil) != tc.wantErr {
				t.Errorf("it ends with %v; want an error: %t", err, tc.wantErr)
			}
			if diff := cmp.Diff(string(tc.want), string(got)); diff != "" {
				t.Errorf("the response (-want +got):\n%s", diff)
			}
			if prior.IsUnsure("example") != tc.wantUnsure || prior.Missed() != tc.wantMissed {
				t.Errorf("it is unsure: %t, and has missed something: %t", prior.IsUnsure("example"), prior.Missed())
			}
		})
	}
}
