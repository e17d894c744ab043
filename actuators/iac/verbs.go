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

// Exists implements actuators.Actuator. It decides from the state and the last sighting of the
// instance, and returns an UncertainError if neither is conclusive.
func (a *Actuator) Exists(ctx context.Context, machine *machinev1beta1.Machine) (bool, error) {
	f, err := a.facts(ctx, machine)
	if err != nil {
		return false, err
	}
	a.checkWitness(machine, f)
	switch {
	case f.BeingMade():
		return false, nil
	case f.Exists():
		actuators.HandOver(ctx, machine.UID, f)
		return true, nil
	case f.Missing():
		o := newObservation(runs.Drift, machine, f)
		a.publishCheck(o)
		o.write()
		return false, nil
	case f.Foreign() && f.Adoption.Requested():
		return false, reporting.NotAdopted(f, "") // Update searches for the instance
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

// Delete implements actuators.Actuator. It cancels the Machine's queued run, in the pool or in the
// cluster, unless an adoption or release was requested.
func (a *Actuator) Delete(ctx context.Context, machine *machinev1beta1.Machine) error {
	adoption, _ := lifecycle.AdoptionOf(machine)
	queued, known := a.pool.Status(runs.Key(machine.UID))
	if known && queued.Operation != runs.Destroy && adoption == lifecycle.AdoptionNone {
		a.pool.Cancel(runs.Key(machine.UID))
		a.pool.Interrupt(runs.Key(machine.UID))
	}
	return a.reconcile(ctx, machine, runs.Destroy)
}

// reconcile observes, decides, submits a run if needed, and publishes the result.
func (a *Actuator) reconcile(ctx context.Context, machine *machinev1beta1.Machine, asked runs.Operation) error {
	o, err := a.observe(ctx, machine, asked)
	if err != nil {
		return err
	}
	if o.waiting != nil {
		a.publish(o, o.waiting)
		a.beside(ctx, o, false)
		return o.waiting
	}
	if w := o.facts.RenewedWitness(machine, a.clock.Now()); w != nil {
		if err := a.writeWitness(ctx, machine, *w); err != nil {
			return err
		}
	}
	d := lifecycle.Decide(asked, o.facts, a.target(o))
	err = a.act(ctx, o, d)
	a.publish(o, err)
	if err == nil {
		err = a.withheld(o)
	}
	a.remember(o, d, err)
	a.beside(ctx, o, d.Action == lifecycle.ActionStart && o.choice.State != nil)
	return err
}

// act carries out the decision and returns the verb's error.
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
		a.searched.Delete(o.machine.UID)
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

// blocked returns the reason that the Machine cannot be reconciled, or nil.
func (a *Actuator) blocked(o *observation, d lifecycle.Decision) error {
	err := o.choiceErr
	switch {
	case err == nil, d.Release:
		return nil
	case o.asked == runs.Create && d.Action == lifecycle.ActionInProgress:
		return nil // the run started before the problem, and may still find or create the instance
	case o.asked == runs.Destroy:
		needless := d.Action == lifecycle.ActionDone || d.Action == lifecycle.ActionInProgress ||
			d.Action == lifecycle.ActionForeign
		if needless || !o.facts.HasResources() && !o.facts.Unrecorded() {
			return nil
		}
		err = reporting.Undeletable(o.facts, err)
	}
	reporting.Failure(a.recorder, a.metrics, o.asked, o.machine, err)
	return err
}

// noRun returns why a decision starts no run. It returns runs.ErrNothingToDo if the Machine is up
// to date.
func (a *Actuator) noRun(f *lifecycle.Facts, d lifecycle.Decision) error {
	switch d.Action {
	case lifecycle.ActionRequeueAfter:
		return actuators.InProgress(max(minRequeue, d.Until.Sub(a.clock.Now())), "%s; next lookup at %s", d.Reason,
			d.Until.UTC().Format(time.RFC3339))
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

// withheld returns why a Machine does not get the current module although it may. Until the Machine
// is Running, an error would keep it from getting there over an outdated module alone, so only the
// provider status reports it.
func (a *Actuator) withheld(o *observation) error {
	if o.choice.Withheld == nil || o.choice.State != nil &&
		ptr.Deref(o.machine.Status.Phase, "") != machinev1beta1.PhaseRunning {
		return nil
	}
	return reporting.Typed(runs.Update, o.choice.Withheld).In(max(reporting.ProgressInterval,
		a.recheckAfter(o.machine, &o.status)))
}
