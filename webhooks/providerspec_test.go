package webhooks

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/render"
)

func TestErrorsSayInWhichWayAFieldIsWrong(t *testing.T) {
	for fault, want := range map[render.Fault]string{
		render.Invalid:     `a.b: Invalid value: "x": p; m`,
		render.Missing:     `a.b: Required value: p; m`,
		render.Unsupported: `a.b: Unsupported value: "x": p; m`,
	} {
		errs := fieldErrors("", render.Errors{{Path: "a.b", Fault: fault, Value: `"x"`, Problem: "p", Fix: "m"}})
		if got := errs.ToAggregate().Error(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestWarningsSayWhatIsUnknownInTheWordsOfTheMachineAPI(t *testing.T) {
	const path = "spec.template.spec.providerSpec.value.a.b"
	for want, warning := range map[string]render.Warning{
		`providerSpec.value: Unsupported value: "a.b": Unknown field (a.b) will be ignored`:               {Path: path, Message: "m", Unknown: true},
		`providerSpec.value: Unsupported value: "a.b": Unknown field (a.b) will be ignored; write it; so`: {Path: path, Message: "m", Hint: "write it; so", Unknown: true},
		"providerSpec.a.b: it has no effect; leave it out":                                                {Path: path, Message: "it has no effect", Hint: "leave it out"},
	} {
		if got := warningText("spec.template", warning); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestBadValueIsShownAsItWasBefore(t *testing.T) {
	for shown, want := range map[string]string{
		"":                `Invalid value: d`,
		`"a"`:             `Invalid value: "a": d`,
		`"a\x00\n"`:       `Invalid value: "a\x00\n": d`,
		`4`:               `Invalid value: 4: d`,
		`1e400`:           `Invalid value: 1e400: d`,
		`true`:            `Invalid value: true: d`,
		`["a","b"]`:       `Invalid value: ["a","b"]: d`,
		`["a", "b", ...]`: `Invalid value: "[\"a\", \"b\", ...]": d`,
	} {
		err := &field.Error{Type: field.ErrorTypeInvalid, BadValue: badValue(shown), Detail: "d"}
		if got := err.ErrorBody(); got != want {
			t.Errorf("%s: got %s, want %s", shown, got, want)
		}
	}
}

func TestAMissingProviderIsAWarning(t *testing.T) {
	r := testRules(t, "cluster")
	if found := r.providerSpec(machineWith(), ""); len(found.warnings) > 0 {
		t.Fatalf("without it: %q", found.warnings)
	}
	r.lacking = func(m *module.Module) []string { return []string{"acme/" + m.Name() + " 1.0.0"} }
	found := r.providerSpec(machineWith(), "")
	const want = "module kubemark needs the provider acme/kubemark 1.0.0, which the manager's provider mirror lacks: " +
		"Machines wait until it is added, as docs/modules.md#get-the-provider shows"
	if len(found.errs) > 0 || !slices.Equal(found.warnings, []string{want}) {
		t.Errorf("got the errors %v and warnings %q, want only %q", found.errs, found.warnings, want)
	}
}
