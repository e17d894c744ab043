package iac

import (
	"context"
	"fmt"
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/internal/cluster/events"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/store"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// ModuleUpdates says what becomes of a Machine when the operator comes with another content of the module that its instance was made
// with. It is a flag.Value.
type ModuleUpdates string

const (
	// ModuleUpdatesHold keeps the Machine with the content that its instance was made with.
	ModuleUpdatesHold ModuleUpdates = "Hold"
	// ModuleUpdatesInPlace brings the instance to the new content where that replaces nothing; else the Machine is held.
	ModuleUpdatesInPlace ModuleUpdates = "InPlace"
)

// ModuleUpdatesAnnotation is the annotation for the ModuleUpdates of one Machine; it wins over the operator's.
const ModuleUpdatesAnnotation = state.Prefix + "module-updates"

// String implements flag.Value.
func (u *ModuleUpdates) String() string { return string(*u) }

// Set implements flag.Value.
func (u *ModuleUpdates) Set(text string) error {
	read := ModuleUpdates(text)
	if err := read.check(); err != nil {
		return err
	}
	*u = read
	return nil
}

func (u ModuleUpdates) check() error {
	switch u {
	case ModuleUpdatesHold, ModuleUpdatesInPlace:
		return nil
	}
	return fmt.Errorf("module updates are %q; write %s or %s", string(u), ModuleUpdatesHold, ModuleUpdatesInPlace)
}

// choices are the modules that there are for a Machine. At least one of own and current is there.
type choices struct {
	// current serves the providerSpec now; nil for none.
	current *module.Module
	// bound refers to the module that made what the Machine has; empty while it has nothing.
	bound string
	// own is that module, or current for a Machine that is bound to none; nil when it cannot be had, and lost says why.
	own  *module.Module
	lost error
	// updates says whether a Machine with a module of its own may get the current one, misread what is wrong with the annotation for it.
	updates ModuleUpdates
	misread string
}

// choices answers the modules that there are for a Machine. It asks the API server for one that it has not met before.
func (r *reader) choices(ctx context.Context, machine *machinev1beta1.Machine, f *lifecycle.Facts) (*choices, error) {
	c := &choices{bound: f.PinnedModule()}
	c.updates, c.misread = updatesOf(machine, r.updates)
	current, unserved := r.served(machine)
	c.current = current
	if c.bound == "" || unserved == nil && current.Reference() == c.bound {
		c.own = current
		return c, unserved
	}
	own, err := r.recorded(ctx, machine.Namespace, c.bound)
	switch {
	case err == nil:
		c.own = own
	case !store.IsLost(err):
		return nil, fmt.Errorf("finding the module that the instance was made with: %w", err)
	case unserved != nil:
		return nil, invalid(fmt.Errorf("%w; nor can the module %s be had, which the instance was made with: %w", unserved, c.bound, err))
	default:
		c.lost = err
	}
	return c, nil
}

// recorded answers the module of a reference.
func (r *reader) recorded(ctx context.Context, namespace, reference string) (*module.Module, error) {
	digest := store.DigestOf(reference)
	if digest == "" {
		return nil, fmt.Errorf("%q names no content: %w", reference, store.ErrNotFound)
	}
	for _, loaded := range r.catalog.Modules() {
		if loaded.Digest() == digest {
			return loaded, nil
		}
	}
	return r.modules.Load(ctx, namespace, digest)
}

// updatesOf answers what a Machine says of updates of its module, else what the operator says. A value that is none holds the Machine.
func updatesOf(machine *machinev1beta1.Machine, standard ModuleUpdates) (updates ModuleUpdates, misread string) {
	text, given := machine.Annotations[ModuleUpdatesAnnotation]
	if !given {
		return standard, ""
	}
	if err := ModuleUpdates(text).check(); err != nil {
		return ModuleUpdatesHold, fmt.Sprintf("the annotation %s is %q, so the Machine keeps its module; write %s or %s",
			ModuleUpdatesAnnotation, text, ModuleUpdatesHold, ModuleUpdatesInPlace)
	}
	return ModuleUpdates(text), ""
}

// other reports whether there is another module than the Machine's own.
func (c *choices) other() bool {
	return c.current != nil && c.bound != "" && c.current.Reference() != c.bound
}

// renewable reports whether the Machine may be brought to another module.
func (c *choices) renewable() bool {
	return c.other() && (c.updates == ModuleUpdatesInPlace || c.own == nil)
}

// lostMessage says why a Machine's own module is not used.
func (c *choices) lostMessage() string {
	return fmt.Sprintf("module %s, which the instance was made with, cannot be had, so %s is used in its place: %s",
		short(c.bound), short(c.current.Reference()), c.lost)
}

// notices are to be sent when a run begins with a module that is not the Machine's own.
func (c *choices) notices(machine *machinev1beta1.Machine) []events.Event {
	if c.own != nil {
		return nil
	}
	return []events.Event{moduleLost(machine, c.lostMessage())}
}

// short answers a reference with as much of its digest as people compare.
func short(reference string) string {
	const digits = 12
	if digest := store.DigestOf(reference); digest != "" {
		return strings.TrimSuffix(reference, digest[digits:])
	}
	return reference
}
