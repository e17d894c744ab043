package iac

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/actuators/reporting"
	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
)

// adoptionBegins marks a head as created for an adoption. It is not a state of the instance until
// the adoption is done.
func (t *task) adoptionBegins(p record.Patch) record.Patch {
	if t.facts.Record.AdoptionPlan == nil {
		p.SetAdoptionPlan(record.PlannedAdoption{Fingerprint: t.wanted.Fingerprint})
	}
	return p
}

// leavesForeign reports whether the run concerned an adoption that it did not carry out.
func (t *task) leavesForeign(outcome error) bool {
	return t.decision.Adopt && (outcome != nil || t.decision.Operation == runs.Drift)
}

// settleForeign records the findings about an adoption that was not carried out. The intent remains
// only if the engine may have started it.
func (t *task) settleForeign(ctx context.Context, outcome error) error {
	t.keepOutput(ctx)
	p := record.NewPatch()
	if t.intent != nil && !t.touched {
		p.ClearIntent()
	}
	if t.adoption == nil && outcome != nil && t.decision.Operation == runs.Drift && !runs.Interrupted(outcome) {
		failed := record.PlannedAdoption{
			At: t.actuator.clock.Now().UTC(), Fingerprint: t.wanted.Fingerprint,
			Refused: "planning failed: " + reporting.Typed(runs.Update, outcome).Message,
		}.Bounded()
		t.adoption = &failed
	}
	if t.adoption != nil {
		p.SetAdoptionPlan(*t.adoption)
	}
	p.SetLastRun(t.lastRun(outcome))
	if err := t.session.Release(ctx, p.MetaPatch); err != nil {
		return runs.NotSettled(fmt.Errorf("recording the outcome: %w", errors.Join(err, outcome)))
	}
	return t.report(outcome)
}

// forgetState deletes the state of a released instance. The Machine's annotation is removed first.
// Without it, but with a state, the Machine still counts as managed, so that the next manager
// completes the release after a crash.
func (t *task) forgetState(ctx context.Context) error {
	if t.facts.Witness != nil && !t.facts.Gone {
		if err := t.actuator.removeWitness(ctx, t.machine); err != nil {
			return t.releaseFailed(ctx, err)
		}
	}
	if err := t.session.Forget(ctx); err != nil {
		return t.releaseFailed(ctx, err)
	}
	reporting.Released(t.machine).Send(t.actuator.recorder)
	return nil
}

// publishAdoption publishes whether the Machine's existing instance is adopted, and any adoption
// plan. It clears both for an instance that this operator created.
func (a *Actuator) publishAdoption(o *observation, outcome error) {
	o.status.Adoption = nil
	refused := cannotAdopt(o)
	condition := reporting.AdoptedCondition(o.facts, refused, outcome)
	if condition == nil {
		if !o.facts.Adopted() {
			meta.RemoveStatusCondition(&o.status.Conditions, reporting.AdoptedType)
		}
		return
	}
	if o.facts.Foreign() {
		o.status.Adoption = reporting.AdoptionStatus(o.facts.Record.AdoptionPlan)
		if refused != "" {
			o.status.Adoption = a.refusedUnplanned(o, refused)
		}
	}
	condition.LastTransitionTime = metav1.NewTime(a.clock.Now())
	meta.SetStatusCondition(&o.status.Conditions, *condition)
}

// cannotAdopt returns why a requested adoption is refused without a plan, or "".
func cannotAdopt(o *observation) string {
	chosen, asked := o.choice.State, o.facts.Adoption
	invalid, ok := errors.AsType[*actuators.MachineError](o.choiceErr)
	switch {
	case !asked.Requested():
		return asked.Denied
	case ok:
		return "planning is impossible: " + invalid.Message
	case chosen == nil || len(chosen.Module.AdoptFiles()) > 0:
		return ""
	}
	return fmt.Sprintf("the %s %s does not support adoption: it has no adopt/ folder; "+
		"change the providerSpec to a module that does, or leave the instance to its owner",
		chosen.Module.Traits().Noun, chosen.Module.Name())
}

// refusedUnplanned returns a refusal that needs no plan. Its time changes only with a new request.
func (a *Actuator) refusedUnplanned(o *observation, why string) *v1alpha1.AdoptionStatus {
	why = record.PlannedAdoption{Refused: why}.Bounded().Refused
	if before := o.before.Adoption; before != nil && before.Refused == why &&
		!before.PlannedAt.Time.Before(o.facts.Adoption.Since) {
		return before
	}
	return &v1alpha1.AdoptionStatus{PlannedAt: metav1.NewTime(a.clock.Now()), Refused: why}
}
