package iac

import (
	"context"
	"fmt"

	"github.com/machine-iac/machine-iac-operator/actuators/reporting"
	"github.com/machine-iac/machine-iac-operator/internal/engine"
)

// markPhase separates a lookup's output from what follows, because its errors may be expected.
func (t *task) markPhase(search engine.Search) {
	switch {
	case search != engine.SearchNone:
		t.transcript.Add("(Lookup of an instance from an earlier run)")
	case t.decision.Lookup:
		t.transcript.Add(fmt.Sprintf("(End of the lookup; %s follows)", t.decision.Operation))
	}
}

// keepOutput stores the engine's output with the state, in the write that settles the run.
func (t *task) keepOutput(ctx context.Context) {
	if err := reporting.KeepOutput(ctx, t.session, &t.transcript, &t.withheld); err != nil {
		t.actuator.logger.V(1).Info("The engine's output is kept incomplete", "Machine", t.key.String(), "reason",
			err.Error())
	}
}
