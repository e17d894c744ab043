package iac

import (
	"context"
	"fmt"

	"github.com/machine-iac/machine-iac-operator/actuators/reporting"
	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

const (
	// attachedOutput is the attachment of a state that holds the engine's output of the last run.
	attachedOutput = "output"
	// attachedWithheld is the one that holds what was withheld of it.
	attachedWithheld = "withheld"
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

// keepOutput has the engine's output kept with the state, by the write that settles the run. Where it has no room beside the inputs it is
// not kept, nor is that of an earlier run. What was withheld of it gives way first.
func (t *task) keepOutput(ctx context.Context) {
	output, withheld := t.transcript.Packed(reporting.MaxPackedTranscript), t.withheld.Packed(reporting.MaxPackedWithheld)
	for _, kept := range []state.Attachments{
		{attachedOutput: output, attachedWithheld: withheld}, {attachedOutput: output, attachedWithheld: nil}, {attachedOutput: nil, attachedWithheld: nil},
	} {
		err := t.session.Attach(ctx, kept)
		if err == nil {
			return // where nothing has room, the write that settles the run fails with the same, and says so
		}
		t.actuator.logger.V(1).Info("The engine's output is not kept whole", "Machine", t.machine.Namespace+"/"+t.machine.Name, "reason", err.Error())
	}
}
