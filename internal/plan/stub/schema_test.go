package stub

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"google.golang.org/protobuf/encoding/protowire"
)

// number appends a field that is a number.
func number(message []byte, field protowire.Number, value uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(message, field, protowire.VarintType), value)
}

// attributeOf returns a Schema.Attribute with numbers in fields.
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
	for field, schemas := range map[protowire.Number]map[string][]byte{fieldResourceSchemas: resources, fieldDataSourceSchemas: data} {
		for name, block := range schemas {
			message = appendField(message, field, appendField(appendField(nil, 1, []byte(name)), 2, appendField(nil, 2, block)))
		}
	}
	return message
}

func exampleBlock() []byte {
	inner := blockOf(appendField(nil, 2, attributeOf("given", `"string"`, optional)), appendField(nil, 2, attributeOf("key", `"number"`, computed)))
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

// packed writes the values that tests need as MessagePack.
func packed(value any) []byte {
	switch value := value.(type) {
	case nil:
		return packedNull
	case string:
		return append([]byte{0xd9, byte(len(value))}, value...)
	case []any:
		out := []byte{0x90 | byte(len(value))}
		for _, one := range value {
			out = append(out, packed(one)...)
		}
		return out
	case pairs:
		out := []byte{0x80 | byte(len(value))}
		for _, one := range value {
			out = append(append(out, packed(one[0])...), packed(one[1])...)
		}
		return out
	}
	return packedUnknown
}

// pairs are the entries of a map, in order; unknown stands for what is not known.
type (
	pairs   [][2]any
	unknown struct{}
)

func TestPlanNew(t *testing.T) {
	schemas, err := resourceSchemas(responseOf(map[string][]byte{"example": exampleBlock()}, nil))
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
		"what is unknown stays so": {given: pairs{{"name", unknown{}}, {"list", unknown{}}}, want: pairs{{"name", unknown{}}, {"list", unknown{}}}},
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
			got, err := schemas["example"].planNew(packed(tc.given), tc.legacy)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(packed(tc.want), got); diff != "" {
				t.Errorf("what is planned (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPrune(t *testing.T) {
	schemas, err := resourceSchemas(responseOf(map[string][]byte{"example": exampleBlock()}, nil))
	if err != nil {
		t.Fatal(err)
	}
	file, diags := hclwrite.ParseConfig([]byte("name = var.a\nset {\n  given = var.b\n}\nset {}\ndynamic \"single\" {\n  for_each = var.c\n  content {\n    given = var.d\n  }\n}\n"), "main.tf", hcl.InitialPos)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	said := &Configured{}
	said.Read(file.Body())
	object := func(names ...string) map[string]any {
		marks := map[string]any{}
		for _, name := range names {
			marks[name] = true
		}
		return marks
	}
	marks := object("id", "name", "both", "secret6", "required")
	marks["list"], marks["set"], marks["single"] = []any{object("given", "key")}, []any{object("given", "key"), object("key")}, []any{object("given")}
	schemas["example"].Prune(marks, said)
	want := object("id", "name", "both", "required")
	want["list"], want["set"], want["single"] = []any{object("key")}, []any{object("given", "key"), object("key")}, []any{object("given")}
	if diff := cmp.Diff(want, marks); diff != "" {
		t.Errorf("what is left (-want +got):\n%s", diff)
	}
	schemas["example"].Prune(true, nil) // all of it is unknown: nothing to take away
}

func TestWriteOnlyInProtocol5(t *testing.T) {
	schemas, err := resourceSchemas(responseOf(map[string][]byte{"example": appendField(nil, 2, attributeOf("secret", `"string"`, optional, 10))}, nil))
	if err != nil {
		t.Fatal(err)
	}
	if !schemas["example"].attributes["secret"].writeOnly {
		t.Error("field 10 of protocol 5 says that it is write-only")
	}
}

func TestNarrow(t *testing.T) {
	block := appendField(nil, 2, attributeOf("name", `"string"`, optional))
	given := responseOf(map[string][]byte{"used": block, "other": block}, map[string][]byte{"used": block, "other": block})
	for name, tc := range map[string]struct {
		legacy bool
		data   []byte
	}{
		"data sources of the newer kind say what they compute":             {data: block},
		"an optional argument of an older data source is computed as well": {legacy: true, data: appendField(nil, 2, attributeOf("name", `"string"`, optional, computed))},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Narrow(given, tc.legacy, func(kind string) bool { return kind == "used" })
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
			for field, inner := range map[protowire.Number][]byte{fieldResourceSchemas: block, fieldDataSourceSchemas: tc.data} {
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
	if got, err := Narrow(appendField(nil, fieldDiagnostics, diagnostic), false, nil); err == nil {
		t.Errorf("it answers %v", got)
	}
	warning := appendField(number(nil, 1, 2), 2, []byte("careful"))
	if _, err := Narrow(appendField(nil, fieldDiagnostics, warning), false, nil); err != nil {
		t.Errorf("a warning is no failure: %v", err)
	}
}

// FuzzForesee tries whatever an engine could send: it must neither panic nor answer what is no MessagePack.
func FuzzPlanNew(f *testing.F) {
	schemas, err := resourceSchemas(responseOf(map[string][]byte{"example": exampleBlock()}, nil))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(packed(pairs{{"id", nil}, {"list", []any{pairs{{"key", nil}}}}, {"objects", pairs{{"x", pairs{{"b", nil}}}}}}), true)
	for first := range 256 {
		f.Add([]byte{byte(first), 0, 0, 0, 1, 0xc0, 0xc0}, false)
	}
	f.Fuzz(func(t *testing.T, raw []byte, legacy bool) {
		value, _, err := cutValue(raw)
		if err != nil {
			return
		}
		got, err := schemas["example"].planNew(value, legacy)
		if err != nil {
			return
		}
		if again, rest, err := cutValue(got); err != nil || len(rest) > 0 || len(again) != len(got) {
			t.Errorf("%x became %x, of which %x is left: %v", value, got, rest, err)
		}
		same, err := rewriteObject(value, func(_ string, value []byte) ([]byte, error) { return value, nil })
		if err == nil && string(same) != string(value) {
			t.Errorf("%x became %x, although nothing is to change", value, same)
		}
	})
}

// FuzzNarrow tries whatever a provider could answer.
func FuzzNarrow(f *testing.F) {
	f.Add(responseOf(map[string][]byte{"example": exampleBlock()}, map[string][]byte{"example": exampleBlock()}))
	f.Fuzz(func(t *testing.T, raw []byte) {
		narrowed, err := Narrow(raw, true, func(string) bool { return true })
		if err != nil {
			return
		}
		if _, err := resourceSchemas(narrowed); err != nil {
			if _, before := resourceSchemas(raw); before == nil {
				t.Errorf("%x can be read, but not %x: %v", raw, narrowed, err)
			}
		}
	})
}
