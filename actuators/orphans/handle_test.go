package orphans

import (
	"strings"
	"testing"

	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

func TestTheEventSaysWhatMayExist(t *testing.T) {
	for want, managed := range map[string]int{
		"lists 2 resources": 2,
		"its interrupted run may have created an instance": 0,
	} {
		if got := orphanedState(&record.MachineSetRef{Name: "workers"}, state.Head{Managed: managed}).Note; !strings.Contains(got, want) {
			t.Errorf("with %d resources the event says %q, want %q", managed, got, want)
		}
	}
}
