package contract_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-iac/machine-iac-operator/internal/module/contract"
	"github.com/machine-iac/machine-iac-operator/internal/module/load"
	"github.com/machine-iac/machine-iac-operator/test/moduletest"
)

// asserting returns a change of the valid module: a check block with an assertion in it.
func asserting(condition, message string) moduletest.Change {
	return moduletest.Change{"checks.tf", "", "check \"size\" {\n  assert {\n    condition     = " + condition + "\n    error_message = " + message + "\n  }\n}\n"}
}

func TestChecksAreAssertionsOfVariables(t *testing.T) {
	tests := map[string]struct {
		change moduletest.Change
		want   int
	}{
		"of the providerSpec":                  {asserting(`var.provider_spec.size != "huge"`, `"${var.provider_spec.size} is huge"`), 1},
		"of the Machine":                       {asserting(`var.machine.name != ""`, `"x"`), 1},
		"one that looks at the instance":       {asserting(`example_instance.this.id != var.machine.name`, `"x"`), 0},
		"one whose message looks at it":        {asserting(`var.provider_spec.size != "huge"`, `example_instance.this.id`), 0},
		"one that looks at a local value":      {asserting(`local.size != "huge"`, `"x"`), 0},
		"one that looks at nothing":            {asserting(`timestamp() != ""`, `"x"`), 0},
		"a block that only reads":              {moduletest.Change{"checks.tf", "", "check \"size\" {\n  data \"example_thing\" \"it\" {}\n}\n"}, 0},
		"the engine has what it can calculate": {asserting(`uuid() != local.file`, `"x"`), 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			loaded := moduletest.Load(t, tc.change)
			if got := loaded.Checks(); len(got) != tc.want || tc.want == 1 && (got[0].Name != "size" || got[0].Range.Start.Line != 2) {
				t.Errorf("got %+v, want %d", got, tc.want)
			}
			restored, err := load.Restore(loaded.Files())
			if err != nil || len(restored.Checks()) != tc.want {
				t.Errorf("a content that was kept has %d (%v), want %d", len(restored.Checks()), err, tc.want)
			}
		})
	}
}

func TestLoadRefusesACheckThatCannotBeEvaluatedBeforeARun(t *testing.T) {
	tests := map[string]struct {
		change moduletest.Change
		want   string
	}{
		"a field that there is not": {
			asserting(`var.provider_spec.zone != ""`, `"x"`),
			`checks.tf:3: check "size" assert condition refers to var.provider_spec.zone, which does not exist: ` +
				`This object does not have an attribute named "zone".; correct the spelling, or add it to the type`,
		},
		"a function that looks elsewhere": {
			asserting(`timecmp(timestamp(), var.provider_spec.size) == 0`, `"x"`),
			`checks.tf:3: check "size" assert condition calls timestamp, which cannot be evaluated before a run; ` +
				`use functions whose result depends only on their arguments; docs/contracts/module.md lists them`,
		},
		"a condition that is no bool": {
			asserting(`length(var.provider_spec.disks)`, `"x"`),
			`checks.tf:3: check "size" assert condition does not return bool; use an expression that returns true or false`,
		},
		"a message that shows user data": {
			asserting(`var.provider_spec.size != ""`, `"${var.user_data} is wrong"`),
			`checks.tf:4: check "size" assert error_message would show var.user_data, which is sensitive; remove it`,
		},
		"an assertion without a message": {
			moduletest.Change{"checks.tf", "", "check \"size\" {\n  assert {\n    condition = var.provider_spec.size != \"\"\n  }\n}\n"},
			`checks.tf:2: check "size" assert needs both condition and error_message; write both`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			files := moduletest.Changed(t, tc.change)
			_, err := load.Module(moduletest.FS(files))
			var broken *contract.Error
			if !errors.As(err, &broken) {
				t.Fatalf("got %v, want a breach of the contract", err)
			}
			if diff := cmp.Diff([]string{tc.want}, breachTexts(broken)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if restored, err := load.Restore(moduletest.FS(files)); err != nil || len(restored.Checks()) != 0 {
				t.Errorf("a content that was kept ends with %v and %v, want it without the check", restored, err)
			}
		})
	}
}

// breachTexts returns the breaches, each as a text.
func breachTexts(broken *contract.Error) []string {
	var found []string
	for _, breach := range broken.Breaches {
		found = append(found, breach.String())
	}
	return found
}
