package statefile

import "testing"

func TestForget(t *testing.T) {
	raw := []byte(`{"version":4,"serial":7,"lineage":"l","outputs":{},"check_results":null,"resources":[` +
		`{"mode":"managed","type":"tag","name":"user","instances":[{"index_key":"a"},{"index_key":"b"}]},` +
		`{"mode":"managed","type":"server","name":"this","instances":[{}]},{"mode":"data","type":"tag","name":"all","instances":[{}]}]}`)
	of := func(resourceType string) func(Resource) bool {
		return func(r Resource) bool { return r.Type == resourceType && r.Mode == ModeManaged }
	}
	left, err := Forget(raw, of("tag"))
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := Parse(left)
	if err != nil || parsed.Serial != 7 || parsed.Lineage != "l" || len(parsed.Resources) != 2 ||
		parsed.Resources[0].Type != "server" || parsed.Resources[1].Mode != ModeData {
		t.Errorf("%v: what is left is %+v", err, parsed)
	}
	if same, err := Forget(raw, of("port")); err != nil || string(same) != string(raw) {
		t.Errorf("%v: a state without any becomes %s", err, same)
	}
	if _, err := Forget([]byte(`{}`), of("tag")); err == nil {
		t.Error("what is no state is taken")
	}
}
