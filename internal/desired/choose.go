package desired

import (
	"context"
	"fmt"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
)

// Choice is the desired state that a run is to bring about, and why it is not another.
type Choice struct {
	// State is nil where nothing is asked for, or where Withheld says why.
	State *State
	// Withheld says why State is not of the current module, which the Machine may get; nil where it is, or may not.
	Withheld error
	// Pinned is the desired state with the pinned module, where State is of another. PinnedErr says why there is none.
	Pinned    *State
	PinnedErr error
	// Modules are those that there are for the Machine; nil unless it is updated.
	Modules *Modules
}

// Choose returns the desired state for an operation. An instance that was not made by this operator has none.
func (r *Reader) Choose(ctx context.Context, machine *machinev1beta1.Machine, f *lifecycle.Facts, operation runs.Operation) (Choice, error) {
	machine = identified(machine, f)
	var chosen *State
	var err error
	switch {
	case f.Foreign() && (operation == runs.Create || !f.Adoption.Requested()):
	case f.Foreign():
		chosen, err = r.withPinned(ctx, machine, f, runs.Update)
	case f.Adoption.Adoption == lifecycle.AdoptionRelease:
	case operation == runs.Destroy:
		chosen, err = r.lastApplied(ctx, machine, f)
	case f.Unrecorded():
		chosen, err = r.ofAbandonedRun(ctx, machine, f, operation)
	case operation == runs.Create:
		chosen, err = r.withPinned(ctx, machine, f, operation)
	default:
		return r.ChooseUpdate(ctx, machine, f)
	}
	return Choice{State: chosen}, err
}

// ChooseUpdate returns the desired state for an update of an instance that the state has.
func (r *Reader) ChooseUpdate(ctx context.Context, machine *machinev1beta1.Machine, f *lifecycle.Facts) (Choice, error) {
	machine = identified(machine, f)
	modules, err := r.modulesFor(ctx, machine, f)
	if err != nil {
		return Choice{}, err
	}
	c := r.renderAll(ctx, machine, f, modules).choose(f)
	c.Modules = modules
	if c.State == nil && c.Withheld == nil {
		return c, c.PinnedErr
	}
	return c, nil
}

// identified returns the Machine as modules see it: with the UID that its instance was made with.
func identified(machine *machinev1beta1.Machine, f *lifecycle.Facts) *machinev1beta1.Machine {
	identity := f.Identity(machine.UID)
	if identity == machine.UID {
		return machine
	}
	seen := *machine // nothing that it points to is changed
	seen.UID = identity
	return &seen
}

// candidates are the desired states that an update can bring about.
type candidates struct {
	// pinned is the desired state with the pinned module; nil when that is missing or cannot be rendered, and pinnedErr says why.
	pinned    *State
	pinnedErr error
	// next is the desired state with another module that the Machine may get; nil when there is none or it cannot be rendered, and nextErr says why.
	next    *State
	nextErr error
}

func (r *Reader) renderAll(ctx context.Context, machine *machinev1beta1.Machine, f *lifecycle.Facts, m *Modules) candidates {
	var c candidates
	if m.Pinned != nil {
		c.pinned, c.pinnedErr = r.render(ctx, machine, f, m.Pinned, runs.Update)
	}
	switch {
	case m.Pinned == nil:
		c.next, c.nextErr = r.withReplacement(ctx, machine, f, m, runs.Update)
	case m.updatable():
		c.next, c.nextErr = r.render(ctx, machine, f, m.Current, runs.Update)
	case m.Differ() && IsInvalid(c.pinnedErr):
		c.pinnedErr = invalid(fmt.Errorf("%w (the Machine keeps module %s)", c.pinnedErr, short(m.Reference)))
	}
	return c
}

// choose returns what to bring a Machine to, and why that is not the other module that it may get. A run that has not settled is finished
// first, with the module that began it.
func (c candidates) choose(f *lifecycle.Facts) Choice {
	chosen := Choice{State: c.pinned, PinnedErr: c.pinnedErr}
	switch {
	case c.nextErr != nil:
		chosen.Withheld = unsupported(c.nextErr)
	case c.next == nil:
	case f.Record.ModuleRefusal.Of(c.next.Fingerprint):
		chosen.Withheld = &UnsupportedError{Message: f.Record.ModuleRefusal.Message}
	case c.pinned != nil && f.Record.Intent != nil:
	default:
		chosen.State, chosen.Pinned = c.next, c.pinned
	}
	return chosen
}

// withPinned renders a Machine for an operation with its pinned module.
func (r *Reader) withPinned(ctx context.Context, machine *machinev1beta1.Machine, f *lifecycle.Facts, operation runs.Operation) (*State, error) {
	m, err := r.modulesFor(ctx, machine, f)
	if err != nil {
		return nil, err
	}
	if m.Pinned == nil {
		return r.withReplacement(ctx, machine, f, m, operation)
	}
	return r.render(ctx, machine, f, m.Pinned, operation)
}

// withReplacement renders a Machine with the current module in place of its pinned one, which is missing.
func (r *Reader) withReplacement(ctx context.Context, machine *machinev1beta1.Machine, f *lifecycle.Facts, m *Modules, operation runs.Operation) (*State, error) {
	if err := m.mayReplace(operation); err != nil {
		return nil, err
	}
	s, err := r.render(ctx, machine, f, m.Current, operation)
	if s != nil {
		s.ModuleMissing = m.missingMessage()
	}
	return s, err
}
