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

// adoptionBegins records that the head was made for an adoption: it is no state of the instance until that is done.
func (t *task) adoptionBegins(p record.Patch) record.Patch {
	if t.facts.Record.AdoptionPlan == nil {
		p.SetAdoptionPlan(record.PlannedAdoption{Fingerprint: t.wanted.Fingerprint})
	}
	return p
}

// leavesForeign reports whether the run was about an adoption that it did not carry out.
func (t *task) leavesForeign(outcome error) bool {
	return t.decision.Adopt && (outcome != nil || t.decision.Operation == runs.Drift)
}

// settleForeign records what a run has found about an adoption that it did not carry out. The intent stays only where the engine may have
// begun to carry it out.
func (t *task) settleForeign(ctx context.Context, outcome error) error {
	t.keepOutput(ctx)
	p := record.NewPatch()
	if t.intent != nil && !t.touched {
		p.ClearIntent()
	}
	if t.adoption == nil && outcome != nil && t.decision.Operation == runs.Drift && !runs.Interrupted(outcome) {
		failed := record.PlannedAdoption{
			At: t.actuator.clock.Now().UTC(), Fingerprint: t.wanted.Fingerprint, Refused: "it could not be planned: " + reporting.Typed(runs.Update, outcome).Message,
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

// forgetState removes the state of an instance that is released, which stays. The Machine says so first: without its annotation and with a state it
// is still this operator's, so that a manager that dies between the two goes on.
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

// publishAdoption writes whether the Machine's instance, which something else has made, is adopted, and what was planned about that. A Machine whose
// instance this operator has made has nothing of it.
func (a *Actuator) publishAdoption(o *observation, outcome error) {
	o.status.Adoption = nil
	condition := metav1.Condition{Type: adoptedCondition, LastTransitionTime: metav1.NewTime(a.clock.Now())}
	switch {
	case o.facts.Foreign():
		condition.Status, condition.Reason = metav1.ConditionFalse, reporting.AdoptionReason(o.facts)
		if outcome != nil {
			condition.Message = outcome.Error()
		}
		o.status.Adoption = reporting.AdoptionStatus(o.facts.Record.AdoptionPlan)
		if refused := cannotAdopt(o); refused != "" {
			condition.Reason, o.status.Adoption = reporting.AdoptionRefused, a.refusedUnplanned(o, refused)
		}
	case o.facts.Adopted() && o.facts.HasInstance():
		condition.Status, condition.Reason = metav1.ConditionTrue, "Adopted"
	case meta.FindStatusCondition(o.status.Conditions, adoptedCondition) != nil && !o.facts.Adopted():
		meta.RemoveStatusCondition(&o.status.Conditions, adoptedCondition)
		return
	default:
		return
	}
	meta.SetStatusCondition(&o.status.Conditions, condition)
}

// cannotAdopt returns why an adoption that is requested is refused whatever there is; empty where it can be planned, or is not requested.
func cannotAdopt(o *observation) string {
	chosen := o.choice.State
	if invalid, ok := errors.AsType[*actuators.MachineError](o.choiceErr); ok && o.facts.Adoption.Requested() {
		return "it cannot be planned: " + invalid.Message
	}
	if chosen == nil || !o.facts.Adoption.Requested() || len(chosen.Module.AdoptFiles()) > 0 {
		return ""
	}
	kind := "module"
	if chosen.Module.Engine() == v1alpha1.EnginePulumi {
		kind = "stack"
	}
	return fmt.Sprintf("the %s %s cannot adopt: it has no folder adopt/; give the Machine a providerSpec of a module that has one, or leave it to its owner", kind, chosen.Module.Name())
}

// refusedUnplanned returns the refusal of an adoption that needs no plan. Its time changes only when the adoption is requested anew.
func (a *Actuator) refusedUnplanned(o *observation, why string) *v1alpha1.AdoptionStatus {
	why = record.PlannedAdoption{Refused: why}.Bounded().Refused
	if before := o.before.Adoption; before != nil && before.Refused == why && !before.PlannedAt.Time.Before(o.facts.Adoption.Since) {
		return before
	}
	return &v1alpha1.AdoptionStatus{PlannedAt: metav1.NewTime(a.clock.Now()), Refused: why}
}
