package statefile

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tofu returns a state with one server for each "name=id", or "name" without an ID.
func tofu(lineage string, serial int, servers ...string) []byte {
	var list []string
	for _, server := range servers {
		name, id, known := strings.Cut(server, "=")
		attributes := `{"flavor":"small","id":null}`
		if known {
			attributes = fmt.Sprintf(`{"flavor":"small","id":%q}`, id)
		}
		list = append(list,
			fmt.Sprintf(`{"mode":"managed","type":"server","name":%q,"provider":"p","instances":[{"attributes":%s}]}`,
				name, attributes))
	}
	return fmt.Appendf(nil, `{"version":4,"serial":%d,"lineage":%q,"outputs":{},"resources":[%s]}`, serial, lineage,
		strings.Join(list, ","))
}

func pulumi(t *testing.T, serial uint64, checkpoint string) []byte {
	t.Helper()
	raw, err := Checkpoint{Serial: serial, Lineage: "l1", Raw: []byte(checkpoint)}.Encode()
	if err != nil {
		t.Fatalf("encoding: %v", err)
	}
	return raw
}

func TestCompare(t *testing.T) {
	many := []byte(`{"version":4,"serial":2,"lineage":"l1","resources":[
		{"mode":"managed","module":"module.a","type":"server","name":"this","instances":[
			{"index_key":0,"attributes":{"id":"1"}},{"index_key":"b","attributes":{"id":7}},{"deposed":"0a1b","attributes":{}}]},
		{"mode":"data","type":"image","name":"latest","instances":[{"attributes":{"id":"i"}}]}]}`)
	// The engine's own resource exists only in the state, and each create has a new one.
	builtin := []byte(`{"version":4,"serial":3,"lineage":"l2","resources":[
		{"mode":"managed","type":"terraform_data","name":"made_with","provider":"provider[\"terraform.io/builtin/terraform\"]","instances":[{"attributes":{"id":"u-1"}}]},
		{"mode":"managed","type":"server","name":"a","instances":[{"attributes":{"id":"1"}}]}]}`)
	empty := pulumi(t, 6, `{"version":3,"checkpoint":{"latest":{"manifest":{"version":"v3"}}}}`)
	for name, tc := range map[string]struct {
		stored, unsaved []byte
		want            Relation
		wantLacking     []string
	}{
		"the same": {tofu("l1", 3, "a=1"), tofu("l1", 3, "a=1"), RelationSame, nil},
		"the same with other white space": {tofu("l1", 3, "a=1"),
			[]byte(strings.ReplaceAll(string(tofu("l1", 3, "a=1")), ",", ",\n  ")), RelationSame, nil},
		"a newer one with a resource more": {tofu("l1", 3, "a=1"), tofu("l1", 4, "a=1", "b=2"), RelationNewer,
			[]string{"server.b (2)"}},
		"a newer one with nothing more": {tofu("l1", 3, "a=1"), tofu("l1", 4), RelationNewer, nil},
		"an older one":                  {tofu("l1", 3, "a=1", "b=2"), tofu("l1", 2, "a=1"), RelationOlder, nil},
		"an older one of another instance": {tofu("l1", 3, "a=1"), tofu("l1", 2, "a=9"), RelationOlder,
			[]string{"server.a (9)"}},
		"the same serial with other content": {tofu("l1", 3, "a=1"), tofu("l1", 3, "b=2"), RelationConflicting,
			[]string{"server.b (2)"}},
		"another lineage, another instance": {tofu("l1", 9, "a=1"), tofu("l2", 3, "a=2"), RelationForeign,
			[]string{"server.a (2)"}},
		"another lineage, the same instance": {tofu("l1", 9, "a=1"), tofu("l2", 3, "a=1"), RelationForeign, nil},
		"another lineage, the engine's own":  {tofu("l1", 9, "a=1"), builtin, RelationForeign, nil},
		"another lineage, an unknown ID": {tofu("l1", 9, "a"), tofu("l2", 3, "a"), RelationForeign,
			[]string{"server.a"}},
		"an unknown ID at a known address": {tofu("l1", 9, "a=1"), tofu("l1", 3, "a"), RelationOlder, nil},
		"an ID at an address without one": {tofu("l1", 9, "a"), tofu("l1", 3, "a=1"), RelationOlder,
			[]string{"server.a (1)"}},
		"one that was moved": {tofu("l1", 9, "b=1"), tofu("l1", 3, "a=1"), RelationOlder, nil},
		"an ID that all have, one more of it": {tofu("l1", 9, "a=none"), tofu("l1", 3, "b=none", "a=none"),
			RelationOlder, []string{"server.b (none)"}},
		"nothing stored": {nil, tofu("l1", 3, "a=1", "b"), RelationNewer,
			[]string{"server.a (1)", "server.b"}},
		"instances of one resource": {tofu("l1", 3), many, RelationOlder,
			[]string{`module.a.server.this[0] (1)`, `module.a.server.this["b"] (7)`,
				"module.a.server.this deposed 0a1b"}},
		"a checkpoint, and what it began": {empty, pulumi(t, 7, goodCheckpoint), RelationNewer,
			[]string{"kubectl:index/manifest:Manifest.this (n1)", "kubectl:index/manifest:Manifest.this (n0)",
				"acme:index:Pool.acme:index:Disk.data (d)", "acme:index:Address.a"}},
		"the same checkpoint": {pulumi(t, 7, goodCheckpoint), pulumi(t, 7, goodCheckpoint),
			RelationSame, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Compare(tc.stored, tc.unsaved)
			if err != nil {
				t.Fatalf("comparing: %v", err)
			}
			var lacks []string
			for _, r := range got.Missing {
				lacks = append(lacks, r.String())
			}
			if diff := cmp.Diff(tc.wantLacking, lacks); diff != "" || got.Relation != tc.want {
				t.Errorf("relation %s, want %s; lacking differs (-want +got):\n%s", got.Relation, tc.want, diff)
			}
		})
	}
}

func TestCompareFails(t *testing.T) {
	for name, pair := range map[string][2][]byte{"unsaved": {tofu("l1", 1), []byte("{")},
		"stored": {[]byte("{"), tofu("l1", 1)}} {
		_, err := Compare(pair[0], pair[1])
		if _, ok := errors.AsType[*RefusedError](err); !ok || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v, want a RefusedError that names which it is", name, err)
		}
	}
}
