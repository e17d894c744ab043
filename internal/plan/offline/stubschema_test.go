package offline

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"
	"google.golang.org/protobuf/encoding/protowire"
)

// number appends a varint field.
func number(message []byte, field protowire.Number, value uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(message, field, protowire.VarintType), value)
}

// attributeOf returns a Schema.Attribute with the given boolean fields set.
func attributeOf(name, kind string, fields ...protowire.Number) []byte {
	message := appendField(nil, 1, []byte(name))
	if kind != "" {
		message = appendField(message, 2, []byte(kind))
	}
	for _, field := range fields {
		message = number(message, field, 1)
	}
	return message
}

const (
	optional = protowire.Number(5)
	computed = protowire.Number(6)
)

func blockOf(parts ...[]byte) []byte {
	var message []byte
	for _, part := range parts {
		message = append(message, part...)
	}
	return message
}

func nestedOf(name string, nesting, minItems uint64, inner []byte) []byte {
	message := appendField(appendField(nil, 1, []byte(name)), 2, inner)
	return number(number(message, 3, nesting), 4, minItems)
}

func responseOf(resources, data map[string][]byte) []byte {
	var message []byte
	for field, schemas := range map[protowire.Number]map[string][]byte{fieldResourceSchemas: resources,
		fieldDataSourceSchemas: data} {
		for name, block := range schemas {
			message = appendField(message, field,
				appendField(appendField(nil, 1, []byte(name)), 2, appendField(nil, 2, block)))
		}
	}
	return message
}

func schemasOf(response []byte) (map[string]block, error) {
	return schemasIn(response, fieldResourceSchemas)
}

func exampleBlock() []byte {
	inner := blockOf(appendField(nil, 2, attributeOf("given", `"string"`, optional)),
		appendField(nil, 2, attributeOf("key", `"number"`, computed)))
	plain := appendField(nil, 2, attributeOf("given", `"string"`, optional))
	objects := blockOf(
		appendField(nil, 1, attributeOf("a", `"string"`, optional)),
		appendField(nil, 1, attributeOf("b", `"string"`, optional, computed)),
		number(nil, 3, nestingMap))
	return blockOf(
		appendField(nil, 2, attributeOf("id", `"string"`, computed)),
		appendField(nil, 2, attributeOf("name", `"string"`, optional)),
		appendField(nil, 2, attributeOf("both", `"string"`, optional, computed)),
		appendField(nil, 2, attributeOf("secret6", `"string"`, optional, 11)),
		appendField(nil, 2, appendField(attributeOf("objects", "", optional), 10, objects)),
		appendField(nil, 3, nestedOf("list", nestingList, 0, inner)),
		appendField(nil, 3, nestedOf("set", nestingSet, 0, inner)),
		appendField(nil, 3, nestedOf("single", nestingSingle, 0, inner)),
		appendField(nil, 3, nestedOf("required", nestingList, 1, inner)),
		appendField(nil, 3, nestedOf("plain", nestingList, 0, plain)),
	)
}

// packed encodes an object of a block. Omitted values are null or empty collections.
func packed(t testing.TB, b block, given any) []byte {
	t.Helper()
	raw, err := b.marshal(ctyValueOf(b.Type(), given))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func ctyValueOf(of cty.Type, given any) cty.Value {
	switch given := given.(type) {
	case string:
		return cty.StringVal(given)
	case []any:
		var inner []cty.Value
		for _, one := range given {
			inner = append(inner, ctyValueOf(of.ElementType(), one))
		}
		switch {
		case len(inner) == 0 && of.IsListType():
			return cty.ListValEmpty(of.ElementType())
		case len(inner) == 0:
			return cty.SetValEmpty(of.ElementType())
		case of.IsListType():
			return cty.ListVal(inner)
		}
		return cty.SetVal(inner)
	case pairs:
		fields := map[string]cty.Value{}
		if of.IsMapType() {
			for _, one := range given {
				fields[one[0].(string)] = ctyValueOf(of.ElementType(), one[1])
			}
			return cty.MapVal(fields)
		}
		for name, inner := range of.AttributeTypes() {
			fields[name] = emptyOf(inner)
		}
		for _, one := range given {
			fields[one[0].(string)] = ctyValueOf(of.AttributeType(one[0].(string)), one[1])
		}
		return cty.ObjectVal(fields)
	case nil:
		return cty.NullVal(of)
	}
	return cty.UnknownVal(of)
}

func emptyOf(of cty.Type) cty.Value {
	switch {
	case of.IsListType():
		return cty.ListValEmpty(of.ElementType())
	case of.IsSetType():
		return cty.SetValEmpty(of.ElementType())
	case of.IsMapType():
		return cty.MapValEmpty(of.ElementType())
	}
	return cty.NullVal(of)
}

// has reports whether a value has the wanted parts.
func has(got cty.Value, want any) bool {
	switch want := want.(type) {
	case nil:
		return got.IsNull()
	case string:
		return got.RawEquals(cty.StringVal(want))
	case []any:
		if isUnset(got) || got.LengthInt() != len(want) {
			return false
		}
		for n, one := range got.AsValueSlice() {
			if !has(one, want[n]) {
				return false
			}
		}
		return true
	case pairs:
		if isUnset(got) {
			return false
		}
		fields := got.AsValueMap()
		for _, one := range want {
			if !has(fields[one[0].(string)], one[1]) {
				return false
			}
		}
		return true
	}
	return !got.IsKnown()
}

// pairs are a map's entries in order; unknown is an unknown value.
type (
	pairs   [][2]any
	unknown struct{}
)

func TestPlanNew(t *testing.T) {
	schemas, err := schemasOf(responseOf(map[string][]byte{"example": exampleBlock()}, nil))
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		legacy      bool
		given, want any
	}{
		"what is given is kept, what is computed and left out is unknown": {
			given: pairs{{"id", nil}, {"name", "n"}, {"both", nil}},
			want:  pairs{{"id", unknown{}}, {"name", "n"}, {"both", unknown{}}},
		},
		"what is computed unless it is given, and is given, is kept": {
			given: pairs{{"id", nil}, {"name", nil}, {"both", "b"}},
			want:  pairs{{"id", unknown{}}, {"name", nil}, {"both", "b"}},
		},
		"what is unknown stays so": {given: pairs{{"name", unknown{}}, {"list", unknown{}}},
			want: pairs{{"name", unknown{}}, {"list", unknown{}}}},
		"what is write-only is never planned": {
			given: pairs{{"secret6", "s"}}, want: pairs{{"secret6", nil}},
		},
		"objects in a map": {
			given: pairs{{"objects", pairs{{"x", pairs{{"a", nil}, {"b", nil}}}}}},
			want:  pairs{{"objects", pairs{{"x", pairs{{"a", nil}, {"b", unknown{}}}}}}},
		},
		"blocks": {
			given: pairs{
				{"list", []any{pairs{{"given", "a"}, {"key", nil}}, pairs{{"given", nil}, {"key", nil}}}},
				{"set", []any{pairs{{"given", "a"}, {"key", nil}}}}, {"single", pairs{{"key", nil}}},
			},
			want: pairs{
				{"list", []any{pairs{{"given", "a"}, {"key", unknown{}}}, pairs{{"given", nil}, {"key", unknown{}}}}},
				{"set", []any{pairs{{"given", "a"}, {"key", unknown{}}}}}, {"single", pairs{{"key", unknown{}}}},
			},
		},
		"blocks that are left out are not there": {
			given: pairs{{"list", []any{}}, {"single", nil}}, want: pairs{{"list", []any{}}, {"single", nil}},
		},
		"blocks that are left out, and that a provider of the older kind may make, are unknown": {
			legacy: true,
			given:  pairs{{"list", []any{}}, {"set", []any{}}, {"plain", []any{}}, {"required", []any{}}},
			want:   pairs{{"list", unknown{}}, {"set", unknown{}}, {"plain", []any{}}, {"required", []any{}}},
		},
		"what is left out, and that a provider of the older kind may have a default for, is unknown": {
			legacy: true,
			given:  pairs{{"name", nil}, {"single", pairs{{"given", nil}, {"key", nil}}}},
			want:   pairs{{"name", unknown{}}, {"single", pairs{{"given", unknown{}}, {"key", unknown{}}}}},
		},
		"nothing at all": {given: nil, want: nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := schemas["example"].planNew(ctyValueOf(schemas["example"].Type(), tc.given), tc.legacy)
			if !has(got, tc.want) {
				t.Errorf("planned is %#v; want %v", got, tc.want)
			}
			if _, err := schemas["example"].marshal(got); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestPrune(t *testing.T) {
	schemas, err := schemasOf(responseOf(map[string][]byte{"example": exampleBlock()}, nil))
	if err != nil {
		t.Fatal(err)
	}
	file, diags := hclwrite.ParseConfig([]byte("name = var.a\nset {\n  given = var.b\n}\nset {}\ndynamic \"single\" "+
		"{\n  for_each = var.c\n  content {\n    given = var.d\n  }\n}\n"), "main.tf", hcl.InitialPos)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	message := &configured{}
	message.Read(file.Body())
	object := func(names ...string) map[string]any {
		marks := map[string]any{}
		for _, name := range names {
			marks[name] = true
		}
		return marks
	}
	marks := object("id", "name", "both", "secret6", "required")
	marks["list"], marks["set"], marks["single"] = []any{object("given", "key")}, []any{object("given", "key"),
		object("key")}, []any{object("given")}
	schemas["example"].Prune(marks, message)
	want := object("id", "name", "both", "required")
	want["list"], want["set"], want["single"] = []any{object("key")}, []any{object("given", "key"),
		object("key")}, []any{object("given")}
	if diff := cmp.Diff(want, marks); diff != "" {
		t.Errorf("what is left (-want +got):\n%s", diff)
	}
	schemas["example"].Prune(true, nil) // all of it is unknown: nothing to remove
}

func TestWriteOnlyInProtocol5(t *testing.T) {
	schemas, err := schemasOf(
		responseOf(map[string][]byte{"example": appendField(nil, 2, attributeOf("secret", `"string"`, optional, 10))},
			nil))
	if err != nil {
		t.Fatal(err)
	}
	if !schemas["example"].attributes["secret"].writeOnly {
		t.Error("field 10 of protocol 5 says that it is write-only")
	}
}

func TestNarrow(t *testing.T) {
	block := appendField(nil, 2, attributeOf("name", `"string"`, optional))
	given := responseOf(map[string][]byte{"used": block, "other": block},
		map[string][]byte{"used": block, "other": block})
	for name, tc := range map[string]struct {
		legacy bool
		data   []byte
	}{
		"data sources of the newer kind say what they compute": {data: block},
		"an optional argument of an older data source is computed as well": {legacy: true,
			data: appendField(nil, 2, attributeOf("name", `"string"`, optional, computed))},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := narrow(given, tc.legacy, func(kind string) bool { return kind == "used" })
			if err != nil {
				t.Fatal(err)
			}
			found := map[protowire.Number][]byte{}
			if err := eachField(got, func(number protowire.Number, _ uint64, content []byte) error {
				found[number] = content
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			want := map[protowire.Number][]byte{}
			for field, inner := range map[protowire.Number][]byte{fieldResourceSchemas: block,
				fieldDataSourceSchemas: tc.data} {
				want[field] = appendField(appendField(nil, 1, []byte("used")), 2, appendField(nil, 2, inner))
			}
			if diff := cmp.Diff(want, found); diff != "" {
				t.Errorf("what is left (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNarrowReturnsTheErrorOfAProvider(t *testing.T) {
	diagnostic := appendField(appendField(number(nil, 1, severityError), 2, []byte("no schema")), 3, []byte("today"))
	if got, err := narrow(appendField(nil, fieldDiagnostics, diagnostic), false, nil); err == nil {
		t.Errorf("it returns %v", got)
	}
	warning := appendField(number(nil, 1, 2), 2, []byte("careful"))
	if _, err := narrow(appendField(nil, fieldDiagnostics, warning), false, nil); err != nil {
		t.Errorf("a warning is no failure: %v", err)
	}
}

// FuzzPlanNew plans anything an engine could send: what can be decoded must have a planned value that can be encoded.
func FuzzPlanNew(f *testing.F) {
	schemas, err := schemasOf(responseOf(map[string][]byte{"example": exampleBlock()}, nil))
	if err != nil {
		f.Fatal(err)
	}
	schema := schemas["example"]
	f.Add(packed(f, schema,
		pairs{{"id", nil}, {"list", []any{pairs{{"key", nil}}}}, {"objects", pairs{{"x", pairs{{"b", nil}}}}}}), true)
	for first := range 256 {
		f.Add([]byte{byte(first), 0, 0, 0, 1, 0xc0, 0xc0}, false)
	}
	f.Fuzz(func(t *testing.T, raw []byte, legacy bool) {
		value, err := schema.unmarshal(raw)
		if err != nil {
			return
		}
		if _, err := schema.marshal(schema.planNew(value, legacy)); err != nil {
			t.Errorf("%x: %v", raw, err)
		}
	})
}

// FuzzNarrow tries anything a provider could respond.
func FuzzNarrow(f *testing.F) {
	f.Add(responseOf(map[string][]byte{"example": exampleBlock()}, map[string][]byte{"example": exampleBlock()}))
	f.Fuzz(func(t *testing.T, raw []byte) {
		narrowed, err := narrow(raw, true, func(string) bool { return true })
		if err != nil {
			return
		}
		if _, err := schemasOf(narrowed); err != nil {
			if _, before := schemasOf(raw); before == nil {
				t.Errorf("%x can be read, but not %x: %v", raw, narrowed, err)
			}
		}
	})
}
