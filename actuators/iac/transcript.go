package iac

import (
	"context"
	"fmt"

	"github.com/machine-iac/machine-iac-operator/actuators/reporting"
	"github.com/machine-iac/machine-iac-operator/internal/engine"
)

// markPhase separates a lookup from what follows it: its errors may be expected.
func (t *task) markPhase(search engine.Search) {
	switch {
	case search != engine.SearchNone:
		t.transcript.Add("(A lookup: is there an instance that an earlier run has made?)")
	case t.decision.Lookup:
		t.transcript.Add(fmt.Sprintf("(After the lookup: the %s itself.)", t.decision.Operation))
	}
}

// keepOutput has the engine's output kept with the state, by the write that settles the run.
func (t *task) keepOutput(ctx context.Context) {
	if err := reporting.KeepOutput(ctx, t.session, &t.transcript, &t.withheld); err != nil {
		t.actuator.logger.V(1).Info("The engine's output is not kept whole", "Machine", t.key.String(), "reason", err.Error())
	}
}
