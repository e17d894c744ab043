package statefile

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestObjectsAreThoseThatADestroyWouldRemove(t *testing.T) {
	checkpoint, err := Checkpoint{Serial: 7, Lineage: "l1", Raw: []byte(goodCheckpoint)}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		raw  string
		want map[string]string
	}{
		"a state": {`{"version":4,"serial":1,"lineage":"l","resources":[
			{"mode":"managed","type":"vm","name":"this","instances":[{"index_key":0,"attributes":{"id":"1"}},{"deposed":"x","attributes":{"id":"0"}}]},
			{"mode":"managed","type":"disk","name":"a","instances":[{"index_key":"b","attributes":{"id":"2"}}]},
			{"mode":"managed","type":"ip","name":"this","instances":[{"attributes":{"id":"3"}}]},
			{"mode":"data","type":"image","name":"this","instances":[{"attributes":{"id":"4"}}]}]}`,
			map[string]string{"vm.this[0]": `{"id":"1"}`, `disk.a["b"]`: `{"id":"2"}`, "ip.this": `{"id":"3"}`}},
		"a checkpoint": {string(checkpoint),
			map[string]string{"kubectl:index/manifest:Manifest.this": "null",
				"acme:index:Pool.acme:index:Disk.data": "null"}},
		"an empty one": {`{"version":4,"serial":1,"lineage":"l"}`, map[string]string{}},
	} {
		parsed, err := Parse([]byte(tc.raw))
		if err != nil {
			t.Fatal(err)
		}
		objects, err := Objects([]byte(tc.raw), parsed)
		got := map[string]string{}
		for address, object := range objects {
			got[address] = string(object)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	if _, err := Objects([]byte("{"), &State{}); err == nil {
		t.Error("what is no JSON has objects")
	}
}
