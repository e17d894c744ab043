package offline

import "testing"

// BenchmarkPlan plans a new resource.
func BenchmarkPlan(b *testing.B) {
	schemas := responseOf(map[string][]byte{"example": exampleBlock()}, nil)
	read, err := schemasOf(schemas)
	if err != nil {
		b.Fatal(err)
	}
	proposed := packed(b, read["example"], pairs{
		{"name", "n"}, {"list", []any{pairs{{"given", "a"}}, pairs{{"given", "b"}}}},
		{"objects", pairs{{"x", pairs{{"a", nil}, {"b", nil}}}}},
	})
	request := appendField(appendField(nil, 1, []byte("example")), 3, appendField(nil, 1, proposed))
	served, err := newStub(stubOptions{Dir: b.TempDir(), Schemas: schemas, Protocol: 5})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(served.Close)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := served.respond(b.Context(), "/tfplugin5.Provider/PlanResourceChange", request); err != nil {
			b.Fatal(err)
		}
	}
}
