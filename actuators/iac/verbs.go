package iac

import (
	"context"
	"errors"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/utils/ptr"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/actuators/reporting"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
)

// Exists implements actuators.Actuator. It is decided from the state and what was last seen of the instance, and is an UncertainError where
// neither says anything.
func (a *Actuator) Exists(ctx context.Context, machine *machinev1beta1.Machine) (bool, error) {
	f, err := a.facts(ctx, machine)
	switch {
	case err != nil:
		return false, err
	case f.Exists():
		actuators.HandOver(ctx, machine.UID, f)
		return true, nil
	case f.Missing():
		o := newObservation(runs.Drift, machine, f)
		a.publishCheck(o)
		o.write()
		return false, nil
	case f.Destroyed() || !f.Provisioned || f.Unrecorded() && f.ConfirmedAbsent():
		return false, nil
	case f.Foreign():
		return false, reporting.NotAdopted(f, "")
	}
	return false, reporting.StateMissing(f)
}

// Create implements actuators.Actuator.
func (a *Actuator) Create(ctx context.Context, machine *machinev1beta1.Machine) error {
	return a.reconcile(ctx, machine, runs.Create)
}

// Update implements actuators.Actuator.
func (a *Actuator) Update(ctx context.Context, machine *machinev1beta1.Machine) error {
	return a.reconcile(ctx, machine, runs.Update)
}

// Delete implements actuators.Actuator. What is queued for the Machine is cancelled, be it in the pool or in the cluster, but for an adoption or a
// release that was requested.
func (a *Actuator) Delete(ctx context.Context, machine *machinev1beta1.Machine) error {
	adoption, _ := lifecycle.AdoptionOf(machine)
	queued, known := a.pool.Status(machine.UID)
	if known && queued.Operation != runs.Destroy && adoption == lifecycle.AdoptionNone {
		a.pool.Cancel(machine.UID)
		a.pool.Interrupt(machine.UID)
	}
	return a.reconcile(ctx, machine, runs.Destroy)
}

// reconcile observes, decides, submits a run where one is needed, and publishes.
func (a *Actuator) reconcile(ctx context.Context, machine *machinev1beta1.Machine, asked runs.Operation) error {
	o, err := a.observe(ctx, machine, asked)
	if err != nil {
		return err
	}
	if o.waiting != nil {
		a.publish(o, o.waiting)
		return o.waiting
	}
	d := lifecycle.Decide(asked, o.facts, a.target(o))
	err = a.act(ctx, o, d)
	a.publish(o, err)
	if err == nil {
		err = a.withheld(o)
	}
	a.remember(o, d, err)
	return err
}

// act does what was decided and returns the verb's error.
func (a *Actuator) act(ctx context.Context, o *observation, d lifecycle.Decision) error {
	if err := a.blocked(o, d); err != nil {
		return err
	}
	switch {
	case o.choice.State == nil && o.choice.Withheld != nil:
		return nil
	case d.Action == lifecycle.ActionInProgress:
		return o.inProgress(*o.facts.Run)
	case d.Action == lifecycle.ActionStart:
		return a.submit(o, d)
	case d.Action == lifecycle.ActionDone && o.asked == runs.Destroy:
		a.metrics.Forget(o.machine)
		a.looks.Forget(o.machine.UID)
		if err := a.releaseAddresses(ctx, o); err != nil {
			return err
		}
	case d.Action == lifecycle.ActionLook:
		a.look(o)
	}
	if err := a.noRun(o.facts, d); !errors.Is(err, runs.ErrNothingToDo) {
		o.status.Run = nil
		return err
	}
	return nil
}

// blocked returns why nothing can be done about the Machine as it is; nil where something can.
func (a *Actuator) blocked(o *observation, d lifecycle.Decision) error {
	err := o.choiceErr
	switch {
	case err == nil, d.Release:
		return nil
	case o.asked == runs.Destroy:
		needless := d.Action == lifecycle.ActionDone || d.Action == lifecycle.ActionInProgress || d.Action == lifecycle.ActionForeign
		if needless || !o.facts.HasResources() && !o.facts.Unrecorded() {
			return nil
		}
		err = reporting.Undeletable(o.facts, err)
	}
	reporting.Failure(a.recorder, a.metrics, o.asked, o.machine, err)
	return err
}

// noRun returns why a decision starts no run: runs.ErrNothingToDo where there is nothing to do.
func (a *Actuator) noRun(f *lifecycle.Facts, d lifecycle.Decision) error {
	switch d.Action {
	case lifecycle.ActionRequeueAfter:
		return actuators.InProgress(max(minRequeue, d.Until.Sub(a.clock.Now())), "%s; it is looked for again after %s", d.Reason, d.Until.UTC().Format(time.RFC3339))
	case lifecycle.ActionRefuse:
		return actuators.UnsupportedChange("%s", f.Record.Refusal.Message).In(reporting.ProgressInterval)
	case lifecycle.ActionUnresolved:
		return reporting.Unresolved(f, d.Operation)
	case lifecycle.ActionForeign:
		return reporting.NotAdopted(f, d.Reason)
	default:
		return runs.ErrNothingToDo
	}
}

// withheld returns why a Machine does not get the current module, although it may. Until the Machine is Running, an error would stop it from
// getting there while its instance is as it should be but for the module: only the provider status says so then.
func (a *Actuator) withheld(o *observation) error {
	if o.choice.Withheld == nil || o.choice.State != nil && ptr.Deref(o.machine.Status.Phase, "") != machinev1beta1.PhaseRunning {
		return nil
	}
	return reporting.Typed(runs.Update, o.choice.Withheld).In(max(reporting.ProgressInterval, a.recheckAfter(o.machine, &o.status)))
}
