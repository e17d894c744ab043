package statefile

import (
	"strings"
	"testing"
)

func TestSetTainted(t *testing.T) {
	const raw = `{"version":4,"serial":3,"lineage":"l","check_results":null,"resources":[
		{"mode":"managed","type":"a","name":"this","instances":[{"status":"tainted","attributes":{"n":12345678901234567890}},{"deposed":"d","status":"tainted","attributes":{}}]},
		{"mode":"managed","type":"a","name":"other","instances":[{"status":"tainted","attributes":{}}]}]}`
	this := func(r Resource) bool { return r.Name == "this" }
	whole, err := SetTainted([]byte(raw), false, this)
	if err != nil {
		t.Fatal(err)
	}
	read, err := Parse(whole)
	if err != nil {
		t.Fatal(err)
	}
	if read.Serial != 4 || read.Resources[0].Tainted != 1 || read.Resources[0].Deposed != 1 ||
		read.Resources[1].Tainted != 1 {
		t.Errorf("untainted: got %+v, want serial 4, and nothing else changed than the one instance", read)
	}
	if !strings.Contains(string(whole), "12345678901234567890") {
		t.Error("a large number has changed")
	}
	again, err := SetTainted(whole, true, this)
	if err != nil {
		t.Fatal(err)
	}
	if read, err = Parse(again); err != nil || read.Serial != 5 || read.Resources[0].Tainted != 2 {
		t.Errorf("tainted: got %+v, %v, want serial 5 and both instances tainted", read, err)
	}
	pulumi, err := Checkpoint{Serial: 1, Lineage: "l", Raw: []byte(goodCheckpoint)}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := SetTainted(pulumi, false, this); err == nil {
		t.Error("a checkpoint of Pulumi's was taken for a state of Terraform's")
	}
}
