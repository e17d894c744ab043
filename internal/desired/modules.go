package desired

import (
	"context"
	"fmt"
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/store"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// ModuleUpdates says what happens to a Machine when the operator brings a new version of the module
// that created its instance. It is a flag.Value.
type ModuleUpdates string

const (
	// ModuleUpdatesHold keeps the Machine on the module that created its instance.
	ModuleUpdatesHold ModuleUpdates = "Hold"
	// ModuleUpdatesInPlace updates the instance to the new module if that replaces nothing;
	// otherwise the Machine is held.
	ModuleUpdatesInPlace ModuleUpdates = "InPlace"
)

// ModuleUpdatesAnnotation sets the ModuleUpdates of one Machine; it overrides the operator's.
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
	return fmt.Errorf("invalid module updates %q: must be %s or %s", string(u), ModuleUpdatesHold, ModuleUpdatesInPlace)
}

// Modules are the modules of a Machine. At least one of Pinned and Current is set.
type Modules struct {
	// Current serves the providerSpec now; nil if none does.
	Current *module.Module
	// Reference identifies the module that created the Machine's resources; empty if there are
	// none.
	Reference string
	// Pinned is that module, or Current for a Machine without resources. It is nil if its content
	// is missing; missing says why.
	Pinned  *module.Module
	missing error
	// unproven reports that its content exists without a proof of its author; nil otherwise.
	unproven error
	// updates says whether the Machine may get another module than the pinned one. misread says
	// what is wrong with its annotation.
	updates ModuleUpdates
	misread string
}

// modulesFor returns the modules of a Machine. It reads modules from the API server the first time.
func (r *Reader) modulesFor(ctx context.Context, machine *machinev1beta1.Machine,
	f *lifecycle.Facts) (*Modules, error) {
	m := &Modules{Reference: f.PinnedModule()}
	m.updates, m.misread = updatesOf(machine, r.updates)
	current, unserved := r.current(machine)
	m.Current = current
	if m.Reference == "" || unserved == nil && current.Reference() == m.Reference {
		m.Pinned = current
		return m, unserved
	}
	pinned, err := r.load(ctx, machine.Namespace, m.Reference)
	switch {
	case err == nil:
		m.Pinned = pinned
	case store.IsUnproven(err) && unserved == nil:
		m.missing, m.unproven = err, ofSecret(err)
	case store.IsUnproven(err):
		return nil, ofSecret(fmt.Errorf("%w; and %w", err, unserved))
	case !store.IsMissing(err):
		return nil, fmt.Errorf("finding the module that created the instance: %w", err)
	case unserved != nil:
		return nil, invalid(fmt.Errorf("%w; module %s, which created the instance, is also unavailable: %w", unserved,
			m.Reference, err))
	default:
		m.missing = err
	}
	return m, nil
}

// load returns the module with a reference.
func (r *Reader) load(ctx context.Context, namespace, reference string) (*module.Module, error) {
	digest := store.DigestOf(reference)
	if digest == "" {
		return nil, fmt.Errorf("%q has no digest: %w", reference, store.ErrNotFound)
	}
	for _, loaded := range r.catalog.Modules() {
		if loaded.Digest() == digest {
			return loaded, nil
		}
	}
	loaded, err := r.modules.Load(ctx, namespace, digest)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", short(reference), err)
	}
	return loaded, nil
}

// updatesOf returns a Machine's ModuleUpdates, or the operator's. An invalid value holds the
// Machine.
func updatesOf(machine *machinev1beta1.Machine, fallback ModuleUpdates) (updates ModuleUpdates, misread string) {
	text, given := machine.Annotations[ModuleUpdatesAnnotation]
	if !given {
		return fallback, ""
	}
	if err := ModuleUpdates(text).check(); err != nil {
		return ModuleUpdatesHold, fmt.Sprintf("annotation %s is %q, so the Machine keeps its module; set it to %s or %s",
			ModuleUpdatesAnnotation, text, ModuleUpdatesHold, ModuleUpdatesInPlace)
	}
	return ModuleUpdates(text), ""
}

// Differ reports whether the current module differs from the pinned one.
func (m *Modules) Differ() bool {
	return m.Current != nil && m.Reference != "" && m.Current.Reference() != m.Reference
}

// updatable reports whether the Machine may be updated to another module.
func (m *Modules) updatable() bool {
	return m.Differ() && (m.updates == ModuleUpdatesInPlace || m.Pinned == nil)
}

// mayReplace returns why an operation must not use the current module instead of the pinned one, or
// nil. An unproven author neither blocks a destroy nor hides a lost instance.
func (m *Modules) mayReplace(operation runs.Operation) error {
	if operation == runs.Destroy || operation == runs.Drift || m.updates == ModuleUpdatesInPlace {
		return nil
	}
	return m.unproven
}

// missingMessage says why the pinned module is not used.
func (m *Modules) missingMessage() string {
	return fmt.Sprintf("module %s, which created the instance, is unavailable; using %s instead: %s",
		short(m.Reference), short(m.Current.Reference()), m.missing)
}

// short returns a reference with an abbreviated digest.
func short(reference string) string {
	const digits = 12
	if digest := store.DigestOf(reference); digest != "" {
		return strings.TrimSuffix(reference, digest[digits:])
	}
	return reference
}

// ModuleStatus compares a Machine's pinned module with the current one.
type ModuleStatus struct{ Reason, Message string }

// Reasons of a ModuleStatus.
const (
	ReasonCurrent       = "AsRecorded"
	reasonUpdateHeld    = "UpdateHeld"
	reasonUpdating      = "Updating"
	reasonUpdateRefused = "UpdateRefused"
	reasonContentLost   = "ContentLost"
	reasonNotServed     = "NotServed"
	reasonUnproven      = "ModuleUnproven"
)

// Status compares the pinned module with the current one. withheld says why the Machine does not
// get the current one although it may. It returns nil for a Machine without a pinned module.
func (m *Modules) Status(withheld error) *ModuleStatus {
	if m.Reference == "" {
		return nil
	}
	s := m.status(withheld)
	if m.misread != "" && s.Message != "" {
		s.Message += "; "
	}
	s.Message += m.misread
	return s
}

func (m *Modules) status(withheld error) *ModuleStatus {
	switch {
	case m.Current == nil:
		return &ModuleStatus{reasonNotServed,
			fmt.Sprintf("no module serves the providerSpec any more; the Machine stays on %s", short(m.Reference))}
	case !m.Differ():
		return &ModuleStatus{Reason: ReasonCurrent}
	case m.unproven != nil && m.updates != ModuleUpdatesInPlace:
		return &ModuleStatus{reasonUnproven,
			fmt.Sprintf("the instance is left unchanged: module %s, which created it, cannot be used: %s",
				short(m.Reference), m.unproven)}
	case withheld != nil:
		return &ModuleStatus{reasonUpdateRefused, fmt.Sprintf("the Machine stays on module %s and is not updated to %s: %s",
			short(m.Reference), short(m.Current.Reference()), withheld)}
	case m.Pinned == nil:
		return &ModuleStatus{reasonContentLost, m.missingMessage()}
	case m.updatable():
		return &ModuleStatus{reasonUpdating, fmt.Sprintf("updating the Machine to module %s from %s",
			short(m.Current.Reference()), short(m.Reference))}
	}
	return &ModuleStatus{reasonUpdateHeld,
		fmt.Sprintf("the Machine stays on module %s, which created its instance; the current one is %s, "+
			"and the annotation %s: %s allows an update in place", short(m.Reference), short(m.Current.Reference()),
			ModuleUpdatesAnnotation, ModuleUpdatesInPlace)}
}
