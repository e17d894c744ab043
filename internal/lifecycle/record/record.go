package record

import (
	"encoding/json"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-iac/machine-iac-operator/internal/module/instance"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// Keys of what is recorded beside a state.
const (
	metaFingerprint   = "fingerprint"
	metaModule        = "module"
	metaIntent        = "intent"
	metaCheck         = "drift-check"
	metaRefusal       = "refusal"
	metaModuleRefusal = "module-refusal"
	metaRepair        = "drift-repair"
	metaLast          = "last-run"
	metaPlace         = "place"
	metaSecondLook    = "second-look"
	metaAdoption      = "adoption-plan"
)

// Record is what the state Secret keeps of a Machine beside the state. It is written with the state's lock, in the same write.
type Record struct {
	// Fingerprint of the desired state that was applied last: inputs, module, credentials. Empty while nothing has settled.
	Fingerprint string
	// Module is the reference of the module that last touched the infrastructure, or was about to. A destroy uses it.
	Module string
	// Intent of a run that began and has not settled.
	Intent *Intent
	// IdentityUID is the UID that the instance was made with; empty where it is the Machine's own.
	IdentityUID types.UID
	// Check is the last drift check.
	Check *DriftCheck
	// Refusal is a change that was planned and refused.
	Refusal *Refusal
	// ModuleRefusal is a change to another module that was planned and refused.
	ModuleRefusal *Refusal
	// Place is where the instance is, as the module that made it declares; empty where it does not, or for a state from before places were kept.
	Place instance.Place
	// SecondLook is when to look for a second instance, after a create that followed a lookup which found nothing; nil for never.
	SecondLook *time.Time
	// AdoptionPlan is what was found about the adoption of an instance that something else has made; nil where none was planned.
	AdoptionPlan *PlannedAdoption
	// Repair is the last try to bring back an instance that has drifted, unless a check has found it as applied since.
	Repair *Repair
}

// Intent says that a run was about to touch infrastructure.
type Intent struct {
	Operation runs.Operation `json:"operation"`
	Run       string         `json:"run"`
	Since     time.Time      `json:"since"`
	// Reason says for people why the run did what it did.
	Reason string `json:"reason,omitempty"`
	// Abandoned is an earlier run that may have made an instance which the state lacks. This one was to find it.
	Abandoned string `json:"lost,omitempty"`
	// Died is when the abandoned run could act no more, zero while that is not known. Looked says that a lookup has found nothing since.
	Died   time.Time `json:"died,omitzero"`
	Looked bool      `json:"looked,omitempty"`
}

// AbandonedRun names the run that may have made an instance which the state lacks, empty for none: only a create makes one.
func (i *Intent) AbandonedRun() string {
	if i.Abandoned == "" && i.Operation == runs.Create {
		return i.Run
	}
	return i.Abandoned
}

// Results of a run.
const (
	RunSucceeded   = "Succeeded"
	RunFailed      = "Failed"
	RunInterrupted = "Interrupted"
	// RunUndecided is the result of a run that found nothing where an instance may be: it is looked for again.
	RunUndecided = "Undecided"
)

// LastRun describes, for people, the last run that ended; nothing is decided from it. It is written with what settles the run, so it costs no write.
type LastRun struct {
	Operation runs.Operation `json:"operation"`
	Run       string         `json:"run"`
	Began     time.Time      `json:"began"`
	Ended     time.Time      `json:"ended"`
	Result    string         `json:"result"`
	// Message says why it failed, Reason why it was begun.
	Message string `json:"message,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

// CheckDriftAnnotation on a Machine requests a drift check. A value that no check was made with yet is a request, such as the time.
const CheckDriftAnnotation = "machine-iac.io/check-drift"

// DriftResult is what a drift check found.
type DriftResult string

// Results of a drift check.
const (
	DriftNone    DriftResult = "None"
	DriftChanged DriftResult = "Changed"
	DriftMissing DriftResult = "Missing"
)

// DriftCheck is a comparison of the state with the infrastructure.
type DriftCheck struct {
	At     time.Time   `json:"at"`
	Result DriftResult `json:"verdict"`
	// Summary names what was found, for people.
	Summary string `json:"summary,omitempty"`
	// Request is the value of CheckDriftAnnotation that the check was made with.
	Request string `json:"request,omitempty"`
}

// Refusal is a refused change. It is not planned again until the desired state changes.
type Refusal struct {
	Fingerprint string `json:"fingerprint"`
	Message     string `json:"message"`
}

// Of reports whether the refused change is the one with a fingerprint.
func (r *Refusal) Of(fingerprint string) bool { return r != nil && r.Fingerprint == fingerprint }

// Read reads a record from the metadata of a state.
func Read(meta map[string]string) (Record, error) {
	r := Record{Fingerprint: meta[metaFingerprint], Module: meta[metaModule], IdentityUID: types.UID(meta[IdentityUIDKey])}
	var err error
	if r.Intent, err = ReadIntent(meta); err != nil {
		return Record{}, err
	}
	if r.Check, err = decode[DriftCheck](meta, metaCheck); err != nil {
		return Record{}, err
	}
	if r.Refusal, err = decode[Refusal](meta, metaRefusal); err != nil {
		return Record{}, err
	}
	if r.ModuleRefusal, err = decode[Refusal](meta, metaModuleRefusal); err != nil {
		return Record{}, err
	}
	if r.Repair, err = decode[Repair](meta, metaRepair); err != nil {
		return Record{}, err
	}
	if r.SecondLook, err = decode[time.Time](meta, metaSecondLook); err != nil {
		return Record{}, err
	}
	if r.AdoptionPlan, err = decode[PlannedAdoption](meta, metaAdoption); err != nil {
		return Record{}, err
	}
	place, err := decode[instance.Place](meta, metaPlace)
	if place != nil {
		r.Place = *place
	}
	return r, err
}

// ModuleIn returns the reference of the module in a record that need not be whole.
func ModuleIn(meta map[string]string) string { return meta[metaModule] }

// HasIntent reports whether a record has an intent, which need not be one that can be read.
func HasIntent(meta map[string]string) bool { return meta[metaIntent] != "" }

// ReadIntent returns the intent in a record that need not be whole; nil for none.
func ReadIntent(meta map[string]string) (*Intent, error) { return decode[Intent](meta, metaIntent) }

// ReadLastRun returns what a record says of the last run; nil for nothing.
func ReadLastRun(meta map[string]string) (*LastRun, error) { return decode[LastRun](meta, metaLast) }

// decode returns nil for a key that is not there.
func decode[T any](meta map[string]string, key string) (*T, error) {
	raw, ok := meta[key]
	if !ok {
		return nil, nil
	}
	value := new(T)
	if err := json.Unmarshal([]byte(raw), value); err != nil {
		return nil, &state.AnnotationError{Name: state.Prefix + key, Fix: "remove the annotation when it was edited by hand", Err: err}
	}
	return value, nil
}

// Patch is a change of a record.
type Patch struct{ state.MetaPatch }

// NewPatch returns a patch that changes nothing.
func NewPatch() Patch { return Patch{state.MetaPatch{}} }

// SetIntent records the intent of a run.
func (p Patch) SetIntent(i Intent) Patch { return p.set(metaIntent, encode(i)) }

// ClearIntent records that the run has settled.
func (p Patch) ClearIntent() Patch {
	p.MetaPatch[metaIntent] = nil
	return p
}

// SetApplied records which desired state was applied, with which module.
func (p Patch) SetApplied(fingerprint, module string) Patch {
	p.MetaPatch[metaRefusal] = nil
	return p.set(metaFingerprint, fingerprint).SetModule(module)
}

// SetModule records the module that is about to touch the infrastructure.
func (p Patch) SetModule(module string) Patch { return p.set(metaModule, module) }

// ClearModuleRefusal removes the refused change to another module.
func (p Patch) ClearModuleRefusal() { p.MetaPatch[metaModuleRefusal] = nil }

// SetModuleRefusal records a refused change to another module.
func (p Patch) SetModuleRefusal(r Refusal) { p.set(metaModuleRefusal, encode(r)) }

// SetCheck records a drift check.
func (p Patch) SetCheck(c DriftCheck) { p.set(metaCheck, encode(c)) }

// SetRepair records a repair.
func (p Patch) SetRepair(r Repair) { p.set(metaRepair, encode(r)) }

// ClearRepair removes the last repair.
func (p Patch) ClearRepair() { p.MetaPatch[metaRepair] = nil }

// SetPlace records where the instance is, or is about to be made.
func (p Patch) SetPlace(place instance.Place) {
	if len(place) > 0 {
		p.set(metaPlace, encode(place))
	}
}

// SetSecondLook records when to look for a second instance; nil for never.
func (p Patch) SetSecondLook(at *time.Time) {
	if at == nil {
		p.MetaPatch[metaSecondLook] = nil
		return
	}
	p.set(metaSecondLook, encode(at.UTC()))
}

// SetLastRun records the run that has ended.
func (p Patch) SetLastRun(e LastRun) { p.set(metaLast, encode(e)) }

// SetAdoptionPlan records what was found about the adoption of an instance.
func (p Patch) SetAdoptionPlan(plan PlannedAdoption) { p.set(metaAdoption, encode(plan)) }

// ClearAdoptionPlan removes what was found about an adoption.
func (p Patch) ClearAdoptionPlan() { p.MetaPatch[metaAdoption] = nil }

// SetRefusal records a refused change.
func (p Patch) SetRefusal(r Refusal) { p.set(metaRefusal, encode(r)) }

func (p Patch) set(key, value string) Patch {
	p.MetaPatch[key] = &value
	return p
}

// encode writes types of this package, which always can be.
func encode(value any) string {
	raw, err := json.Marshal(value)
	if err != nil {
		return "{}"
	}
	return string(raw)
}
