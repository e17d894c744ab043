package desired

import (
	"context"
	"fmt"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
)

// Choice is the desired state that a run is to reach, with the reason if it is not the current one.
type Choice struct {
	// State is nil if nothing is desired, or if Withheld says why.
	State *State
	// Withheld says why State does not use the current module although the Machine may get it; nil
	// otherwise.
	Withheld error
	// Pinned is the desired state with the pinned module, if State uses another. PinnedErr says why
	// there is none.
	Pinned    *State
	PinnedErr error
	// Modules are the Machine's modules; nil unless it is updated.
	Modules *Modules
}

// Choose returns the desired state for an operation. An instance that this operator did not create
// has none.
func (r *Reader) Choose(ctx context.Context, machine *machinev1beta1.Machine, f *lifecycle.Facts,
	operation runs.Operation) (Choice, error) {
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
	case f.CutShort():
		chosen, err = r.ofAbandonedRun(ctx, machine, f, operation)
	case operation == runs.Create:
		chosen, err = r.withPinned(ctx, machine, f, operation)
	default:
		return r.ChooseUpdate(ctx, machine, f)
	}
	return Choice{State: chosen}, err
}

// ChooseUpdate returns the desired state for updating an instance in the state.
func (r *Reader) ChooseUpdate(ctx context.Context, machine *machinev1beta1.Machine,
	f *lifecycle.Facts) (Choice, error) {
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

// identified returns the Machine as modules see it, with the UID that its instance was created
// with.
func identified(machine *machinev1beta1.Machine, f *lifecycle.Facts) *machinev1beta1.Machine {
	identity := f.Identity(machine.UID)
	if identity == machine.UID {
		return machine
	}
	seen := *machine // a shallow copy suffices: nothing it points to changes
	seen.UID = identity
	return &seen
}

// candidates are the desired states that an update can reach.
type candidates struct {
	// pinned is the desired state with the pinned module. It is nil if that is missing or cannot be
	// rendered; pinnedErr says why.
	pinned    *State
	pinnedErr error
	// next is the desired state with another module that the Machine may get. It is nil if there is
	// none or it cannot be rendered; nextErr says why.
	next    *State
	nextErr error
}

func (r *Reader) renderAll(ctx context.Context, machine *machinev1beta1.Machine, f *lifecycle.Facts,
	m *Modules) candidates {
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
		c.pinnedErr = invalid(fmt.Errorf("%w (the Machine stays on module %s)", c.pinnedErr, short(m.Reference)))
	}
	return c
}

// choose returns the desired state, and why it does not use the other module that the Machine may
// get. A run that has not settled is finished first with its own module.
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
func (r *Reader) withPinned(ctx context.Context, machine *machinev1beta1.Machine, f *lifecycle.Facts,
	operation runs.Operation) (*State, error) {
	m, err := r.modulesFor(ctx, machine, f)
	if err != nil {
		return nil, err
	}
	if m.Pinned == nil {
		return r.withReplacement(ctx, machine, f, m, operation)
	}
	return r.render(ctx, machine, f, m.Pinned, operation)
}

// withReplacement renders a Machine with the current module in place of its pinned one, which is
// missing.
func (r *Reader) withReplacement(ctx context.Context, machine *machinev1beta1.Machine, f *lifecycle.Facts, m *Modules,
	operation runs.Operation) (*State, error) {
	if err := m.mayReplace(operation); err != nil {
		return nil, err
	}
	s, err := r.render(ctx, machine, f, m.Current, operation)
	if s != nil {
		s.ModuleMissing = m.missingMessage()
	}
	return s, err
}
