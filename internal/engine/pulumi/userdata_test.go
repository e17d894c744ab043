package pulumi

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/machine-iac/machine-iac-operator/test/long"
)

// A string of the configuration is that string, whatever it looks like.
func TestUserDataIsTheStringThatItIs(t *testing.T) {
	long.Test(t)
	for name, userData := range map[string]string{
		"json": `{"ignition":{"version":"3.2.0"},"tenant":"s3cr3t"}`, "quoted": `"s3cr3t"`, "float": "1e3", "bool": "t", "zeros": "007",
		"lines": "#cloud-config\nusers: [\"s3cr3t\", ${machine.name}]\n",
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, "text-"+name)
			r := b.run("create", small)
			var variables map[string]any
			if err := json.Unmarshal(r.Variables, &variables); err != nil {
				t.Fatal(err)
			}
			variables["user_data"] = userData
			var err error
			if r.Variables, err = json.Marshal(variables); err != nil {
				t.Fatal(err)
			}
			r.Sensitive = []string{userData}
			workspace := b.open(r)
			report, err := workspace.Apply(t.Context())
			if err != nil {
				t.Fatalf("%v\n%s", err, report.Text)
			}
			_, object := b.call(http.MethodGet, "/api/v1/nodes/"+b.name, "")
			annotations := object["metadata"].(map[string]any)["annotations"].(map[string]any)
			if annotations["user-data"] != userData {
				t.Errorf("the instance has %q, want %q", annotations["user-data"], userData)
			}
			if strings.Contains(string(b.last()), "s3cr3t") {
				t.Error("the checkpoint shows it")
			}
			if plan, err := workspace.Plan(t.Context()); err != nil || !plan.NoChange() {
				t.Errorf("a plan right after the create: %v, %+v; want no change", err, plan)
			}
		})
	}
}
