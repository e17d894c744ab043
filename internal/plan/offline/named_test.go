package offline

import (
	"strings"
	"testing"
	"testing/fstest"
)

// TestANameThatIsGeneratedMayBeAKey plans resources keyed by the Machine's name, as disks of some clouds are, and by
// values that no plan knows.
func TestANameThatIsGeneratedMayBeAKey(t *testing.T) {
	planner := newPlanner(t, nil)
	with := func(key string) Module {
		return Module{Files: fstest.MapFS{"main.tf": {Data: []byte(`variable "machine" { type = any }
variable "provider_spec" { type = any }
variable "user_data" { type = string }
resource "terraform_data" "disk" {
  for_each = { (` + key + `) = "x" }
  input    = each.value
}
output "uid" { value = var.machine.uid }
`)}}}
	}
	unknown := Unknown{Name: true, NamePrefix: "worker-", UID: true}
	plan := planOne(t, planner, with(`"${var.machine.name}-1"`), inputWith(t, nil, unknown))
	if len(plan.Resources) != 1 || plan.Resources[0].Address != `terraform_data.disk["worker-xxxxx-1"]` {
		t.Errorf("got %+v", plan.Resources)
	}
	if got := plan.Outputs.Unknown.(map[string]any)["uid"]; got != true {
		t.Errorf("the UID is known: %v", got)
	}
	outcome := planner.Plan(t.Context(), with("var.machine.uid"), []Input{inputWith(t, nil, unknown)})[0]
	if found := diagnosticsOf(outcome.Err); len(found) != 1 ||
		!strings.HasPrefix(found[0].Summary, "Invalid for_each") {
		t.Errorf("got %+v, %v", outcome.Plan, outcome.Err)
	}
}
