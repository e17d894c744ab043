package iac

import (
	"context"
	"fmt"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
)

// Update implements actuators.Actuator.
func (a *Actuator) Update(ctx context.Context, machine *machinev1beta1.Machine) error {
	f, err := a.gather(ctx, machine)
	if err != nil {
		return err
	}
	r := newReport(machine)
	defer r.write()
	switch {
	case f.Foreign():
		return a.notOurs(f)
	case f.Lost():
		return a.recover(ctx, r, f)
	case f.State != nil:
		if err := a.publish(r, f); err != nil {
			return actuators.UpdateFailed("%s", err.Error())
		}
	}
	c, err := a.choices(ctx, machine, f)
	if err != nil {
		a.failed(runs.Update, machine, err)
		return err
	}
	p := a.prospects(ctx, machine, c)
	wanted, withheld := p.choose(f)
	r.module(moduleCondition(c, withheld), a.clock.Now())
	if wanted == nil && withheld == nil {
		a.failed(runs.Update, machine, p.ownErr)
		return p.ownErr
	}
	if wanted != nil {
		if err := a.carryOut(r, wanted, f, lifecycle.Decide(runs.Update, f, a.means(machine, f, wanted))); err != nil {
			return err
		}
	}
	if withheld != nil && (wanted == nil || running(machine)) {
		r.write()
		return withheld.In(max(inProgress, a.RecheckAfter(machine)))
	}
	return nil
}

// recover has the instance found that the state has lost.
func (a *Actuator) recover(ctx context.Context, r *report, f *lifecycle.Facts) error {
	wanted, _, err := a.want(ctx, r.machine, f, runs.Update)
	if err != nil {
		a.failed(runs.Update, r.machine, err)
		return err
	}
	return a.carryOut(r, wanted, f, lifecycle.Decide(runs.Update, f, a.means(r.machine, f, wanted)))
}

// running reports whether a Machine has come as far as it goes. Before, an error would hold it up, though its instance is as it should be
// but for the module: the provider status alone tells that then.
func running(machine *machinev1beta1.Machine) bool {
	return machine.Status.Phase != nil && *machine.Status.Phase == machinev1beta1.PhaseRunning
}

// prospects are what an update can bring a Machine to.
type prospects struct {
	// own is what the Machine asks of its own module; nil when that cannot be had, or not told, and ownErr says why.
	own    *desired
	ownErr error
	// next is what it asks of another module that it may get; nil when there is none, or when it cannot be told, and nextErr says why.
	next    *desired
	nextErr error
}

func (r *reader) prospects(ctx context.Context, machine *machinev1beta1.Machine, c *choices) prospects {
	var p prospects
	if c.own != nil {
		p.own, p.ownErr = r.desire(ctx, machine, c.own, runs.Update)
	}
	switch {
	case c.own == nil:
		p.next, p.nextErr = r.desireInstead(ctx, machine, c, runs.Update)
	case c.renewable():
		p.next, p.nextErr = r.desire(ctx, machine, c.current, runs.Update)
	case c.other() && actuators.IsInvalidConfiguration(p.ownErr):
		p.ownErr = invalid(fmt.Errorf("%w (the Machine keeps module %s)", p.ownErr, short(c.bound)))
	}
	return p
}

// choose answers what to bring a Machine to, and why that is not the other module that it may get. What is half done is finished
// first, with what began it. Both are nil when only ownErr is to be said.
func (p prospects) choose(f *lifecycle.Facts) (wanted *desired, withheld *actuators.MachineError) {
	switch {
	case p.nextErr != nil:
		return p.own, unsuited(p.nextErr)
	case p.next == nil:
		return p.own, nil
	case f.Record.ModuleRefusal.Of(p.next.fingerprint):
		return p.own, actuators.UnsupportedChange("%s", f.Record.ModuleRefusal.Message)
	case p.own != nil && f.Record.Intent != nil:
		return p.own, nil
	}
	return p.next, nil
}

// unsuited says why a Machine does not get another module that cannot take it as it is.
func unsuited(err error) *actuators.MachineError {
	if actuators.IsInvalidConfiguration(err) {
		return actuators.UnsupportedChange("the module's new content does not take this providerSpec: %s", err)
	}
	return typed(runs.Update, err)
}
