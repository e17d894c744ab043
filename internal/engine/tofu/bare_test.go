package tofu

import (
	"strings"
	"testing"

	"github.com/machine-iac/machine-iac-operator/internal/engine"
)

// needy is a module that cannot be evaluated any more once what it reads is gone.
const needy = `
variable "name" { type = string }
variable "user_data" {
  type = string
  validation {
    condition     = var.user_data != ""
    error_message = "There is no user data."
  }
}
resource "terraform_data" "this" {
  input = file("${path.module}/template")
  lifecycle {
    precondition {
      condition     = var.user_data == "given"
      error_message = "There is other user data."
    }
  }
}
resource "terraform_data" "attached" { input = terraform_data.this.id }
output "id" { value = terraform_data.this.id }
`

func TestWithoutTheModuleARunDestroysAndDoesNothingElse(t *testing.T) {
	e, backend := newEngine(t), newBackend(t)
	prepare(t, e, Module{Digest: "sha256:needy", Files: files(map[string]string{"main.tf": needy, "template": "v1"})})
	create := open(t, e, RunSpec{
		ID: "create", Module: "sha256:needy", Variables: []byte(`{"name":"x","user_data":"given"}`), Backend: backend.at("m"),
	})
	if _, err := create.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	closeNow(t, create)

	destroy := open(t, e, RunSpec{
		ID: "destroy", Module: "sha256:needy", Variables: []byte(`{"name":"x","user_data":""}`), Backend: backend.at("m"),
		Bare: &Bare{HCL: []byte(`variable "name" { type = string }`), Variables: []byte(`{"name":"x"}`)},
	})
	for name, operation := range map[string]func() (*engine.Report, error){
		"Plan":      func() (*engine.Report, error) { return destroy.Plan(t.Context(), PlanOptions{}) },
		"Apply":     func() (*engine.Report, error) { return destroy.Apply(t.Context()) },
		"ApplyPlan": func() (*engine.Report, error) { return destroy.ApplyPlan(t.Context()) },
	} {
		if _, err := operation(); err == nil || !strings.Contains(err.Error(), "only the module's providers") {
			t.Errorf("%s without the module: %v, want that it is refused", name, err)
		}
	}
	if resources, _ := backend.state(t, "m"); len(resources) != 2 {
		t.Fatalf("before the destroy the state has %v, want both resources", resources)
	}
	report, err := destroy.Destroy(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var removed []string
	for _, one := range report.Applied {
		removed = append(removed, one.Address)
		if one.Address == "terraform_data.this" && !one.Instance() {
			t.Errorf("%+v is not taken for the instance", one)
		}
	}
	if got := strings.Join(removed, " "); got != "terraform_data.attached terraform_data.this" {
		t.Errorf("removed are %s, want what depends on the instance first", got)
	}
	if resources, outputs := backend.state(t, "m"); len(resources)+len(outputs) != 0 || len(report.Diagnostics) > 0 {
		t.Errorf("after the destroy the state has %v and %v; the engine says %+v", resources, outputs, report.Diagnostics)
	}
}
