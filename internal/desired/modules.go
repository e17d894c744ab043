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

// Modules are the modules that there are for a Machine: at least one of Pinned and Current.
type Modules struct {
	// Current serves the providerSpec now; nil for none.
	Current *module.Module
	// Reference is that of the module that made what the Machine has; empty while it has nothing.
	Reference string
	// Pinned is that module, or Current for a Machine that has nothing; nil when its content is missing, and missing says why.
	Pinned  *module.Module
	missing error
	// unproven says that its content is there, and nobody proves who wrote it; nil where it is another matter.
	unproven error
	// updates says whether the Machine may get another module than the pinned one, misread what is wrong with the annotation for it.
	updates ModuleUpdates
	misread string
}

// modulesFor returns the modules that there are for a Machine. It asks the API server for one that it has not read before.
func (r *Reader) modulesFor(ctx context.Context, machine *machinev1beta1.Machine, f *lifecycle.Facts) (*Modules, error) {
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
		return nil, fmt.Errorf("finding the module that the instance was made with: %w", err)
	case unserved != nil:
		return nil, invalid(fmt.Errorf("%w; nor can the module %s be had, which the instance was made with: %w", unserved, m.Reference, err))
	default:
		m.missing = err
	}
	return m, nil
}

// load returns the module of a reference.
func (r *Reader) load(ctx context.Context, namespace, reference string) (*module.Module, error) {
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

// updatesOf returns what a Machine says of updates of its module, else what the operator says. A value that cannot be read holds the Machine.
func updatesOf(machine *machinev1beta1.Machine, fallback ModuleUpdates) (updates ModuleUpdates, misread string) {
	text, given := machine.Annotations[ModuleUpdatesAnnotation]
	if !given {
		return fallback, ""
	}
	if err := ModuleUpdates(text).check(); err != nil {
		return ModuleUpdatesHold, fmt.Sprintf("the annotation %s is %q, so the Machine keeps its module; write %s or %s",
			ModuleUpdatesAnnotation, text, ModuleUpdatesHold, ModuleUpdatesInPlace)
	}
	return ModuleUpdates(text), ""
}

// Differ reports whether the current module is another than the pinned one.
func (m *Modules) Differ() bool {
	return m.Current != nil && m.Reference != "" && m.Current.Reference() != m.Reference
}

// updatable reports whether the Machine may be brought to another module.
func (m *Modules) updatable() bool {
	return m.Differ() && (m.updates == ModuleUpdatesInPlace || m.Pinned == nil)
}

// mayReplace returns why an operation is not done with the current module in place of the pinned one, nil where it may be. An instance that
// goes is not kept by who may have written what.
func (m *Modules) mayReplace(operation runs.Operation) error {
	if operation == runs.Destroy || m.updates == ModuleUpdatesInPlace {
		return nil
	}
	return m.unproven
}

// missingMessage says why the pinned module is not used.
func (m *Modules) missingMessage() string {
	return fmt.Sprintf("module %s, which the instance was made with, cannot be had, so %s is used in its place: %s",
		short(m.Reference), short(m.Current.Reference()), m.missing)
}

// short returns a reference with as much of its digest as people compare.
func short(reference string) string {
	const digits = 12
	if digest := store.DigestOf(reference); digest != "" {
		return strings.TrimSuffix(reference, digest[digits:])
	}
	return reference
}

// ModuleStatus says how the pinned module of a Machine stands to the current one.
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

// Status returns how the pinned module stands to the current one; withheld says why the Machine does not get that although it may. It is nil
// for a Machine that has no pinned module.
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
		return &ModuleStatus{reasonNotServed, fmt.Sprintf("no module serves the providerSpec any more; the Machine keeps %s", short(m.Reference))}
	case !m.Differ():
		return &ModuleStatus{Reason: ReasonCurrent}
	case m.unproven != nil && m.updates != ModuleUpdatesInPlace:
		return &ModuleStatus{reasonUnproven, fmt.Sprintf("nothing is changed about the instance: module %s, which it was made with, cannot be used: %s",
			short(m.Reference), m.unproven)}
	case withheld != nil:
		return &ModuleStatus{reasonUpdateRefused, fmt.Sprintf("the Machine keeps module %s and does not get %s: %s",
			short(m.Reference), short(m.Current.Reference()), withheld)}
	case m.Pinned == nil:
		return &ModuleStatus{reasonContentLost, m.missingMessage()}
	case m.updatable():
		return &ModuleStatus{reasonUpdating, fmt.Sprintf("the Machine gets module %s in place of %s", short(m.Current.Reference()), short(m.Reference))}
	}
	return &ModuleStatus{reasonUpdateHeld, fmt.Sprintf("the Machine keeps module %s, which its instance was made with; the current one is %s, "+
		"and the annotation %s: %s lets the instance be brought to it in place", short(m.Reference), short(m.Current.Reference()),
		ModuleUpdatesAnnotation, ModuleUpdatesInPlace)}
}
