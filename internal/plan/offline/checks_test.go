package offline

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
)

func TestWarningsAboutTheCallOfAModuleAreLeftOut(t *testing.T) {
	deprecated := failure.Diagnostic{Summary: "Argument is deprecated"}
	plan := &Plan{}
	addWarnings([]*Plan{plan}, []failure.Diagnostic{{Summary: "Redundant empty provider block"}, deprecated})
	if diff := cmp.Diff([]failure.Diagnostic{deprecated}, plan.Warnings); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
