package iac

import (
	"context"
	"fmt"

	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// attachedOutput is the attachment of a state that holds the engine's output of the last run.
const attachedOutput = "output"

// markPhase separates a lookup from what follows it: its errors may be expected.
func (t *task) markPhase(search engine.Search) {
	switch {
	case search != engine.SearchNone:
		t.transcript.Add("(A lookup: is there an instance that an earlier run has made?)")
	case t.decision.Lookup:
		t.transcript.Add(fmt.Sprintf("(After the lookup: the %s itself.)", t.decision.Operation))
	}
}

// keepOutput has the engine's output kept with the state, by the write that settles the run. Where it has no room beside the inputs it is
// not kept, nor is that of an earlier run.
func (t *task) keepOutput(ctx context.Context) {
	err := t.session.Attach(ctx, state.Attachments{attachedOutput: t.transcript.Packed()})
	if err != nil {
		t.actuator.logger.V(1).Info("The engine's output is not kept", "Machine", t.machine.Namespace+"/"+t.machine.Name, "reason", err.Error())
		_ = t.session.Attach(ctx, state.Attachments{attachedOutput: nil}) // the write that settles the run fails with the same, and says so
	}
}
