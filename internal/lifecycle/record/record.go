package record

import (
	"encoding/json"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// Keys of the records beside a state.
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
	metaProviders     = "providers"
)

// Record is a Machine's record in the state Secret. It is written together with the state's lock.
type Record struct {
	// Fingerprint identifies the desired state applied last: inputs, module and credentials. It is
	// empty until a run has settled.
	Fingerprint string
	// Module is the reference of the module that last touched the infrastructure, or was about to.
	// A destroy uses it.
	Module string
	// Intent belongs to a run that has begun and not settled.
	Intent *Intent
	// IdentityUID is the UID that the instance was created with, or empty if it is the Machine's
	// own.
	IdentityUID types.UID
	// Check is the last drift check.
	Check *DriftCheck
	// Refusal is a change that was planned and refused.
	Refusal *Refusal
	// ModuleRefusal is a refused change of the module.
	ModuleRefusal *Refusal
	// Place is where the instance is, as its module declares. It is empty if the module does not,
	// or if the state predates places.
	Place module.Place
	// SecondLook is when to look for a duplicate instance after a create that followed an empty
	// lookup; nil for never.
	SecondLook *time.Time
	// AdoptionPlan is the result of planning an adoption, or nil.
	AdoptionPlan *PlannedAdoption
	// Repair is the last repair of drift, unless a check has found the instance as applied since.
	Repair *Repair
	// Providers are the provider binaries of the Machine's runs. It is nil before the first applied
	// run whose engine knows them.
	Providers *Providers
}

// Intent records that a run is about to touch infrastructure.
type Intent struct {
	Operation runs.Operation `json:"operation"`
	Run       string         `json:"run"`
	Since     time.Time      `json:"since"`
	// Reason says, for people, why the run began.
	Reason string `json:"reason,omitempty"`
	// Abandoned is an earlier run that may have created an instance that the state lacks. This run
	// was to find it.
	Abandoned string `json:"lost,omitempty"`
	// Died is when the abandoned run could no longer act, or zero if unknown. Looked reports
	// whether a lookup has found nothing since.
	Died   time.Time `json:"died,omitzero"`
	Looked bool      `json:"looked,omitempty"`
}

// AbandonedRun returns the run that may have created an instance that the state lacks, or "". Only
// a create makes one.
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
	// RunUndecided is the result of a run that found nothing although an instance may exist. The
	// lookup is repeated.
	RunUndecided = "Undecided"
)

// LastRun describes the last run that ended, for people; no decision is based on it. It shares a
// write with the record that settles the run, so it costs none.
type LastRun struct {
	Operation runs.Operation `json:"operation"`
	Run       string         `json:"run"`
	Began     time.Time      `json:"began"`
	Ended     time.Time      `json:"ended"`
	Result    string         `json:"result"`
	// Message says why the run failed, Reason why it began.
	Message string `json:"message,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

// CheckDriftAnnotation on a Machine requests a drift check. Any new value, such as the time, is a
// request.
const CheckDriftAnnotation = "machine-iac.io/check-drift"

// DriftResult is what a drift check found.
type DriftResult string

// Results of a drift check.
const (
	DriftNone    DriftResult = "None"
	DriftChanged DriftResult = "Changed"
	DriftMissing DriftResult = "Missing"
)

// DriftCheck is the result of comparing the state with the infrastructure.
type DriftCheck struct {
	At     time.Time   `json:"at"`
	Result DriftResult `json:"verdict"`
	// Summary describes the findings, for people.
	Summary string `json:"summary,omitempty"`
	// Request is the value of CheckDriftAnnotation that the check answers.
	Request string `json:"request,omitempty"`
}

// Refusal is a refused change. It is not planned again until the desired state changes.
type Refusal struct {
	Fingerprint string `json:"fingerprint"`
	Message     string `json:"message"`
}

func (r Refusal) bounded() Refusal {
	r.Message = shortened(r.Message, maxText)
	return r
}

// Of reports whether the refused change has the given fingerprint.
func (r *Refusal) Of(fingerprint string) bool { return r != nil && r.Fingerprint == fingerprint }

// Read decodes a record from the metadata of a state.
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
	if r.Providers, err = decode[Providers](meta, metaProviders); err != nil {
		return Record{}, err
	}
	if r.SecondLook, err = decode[time.Time](meta, metaSecondLook); err != nil {
		return Record{}, err
	}
	if r.AdoptionPlan, err = decode[PlannedAdoption](meta, metaAdoption); err != nil {
		return Record{}, err
	}
	place, err := decode[module.Place](meta, metaPlace)
	if place != nil {
		r.Place = *place
	}
	return r, err
}

// ModuleIn returns the module's reference in a record that may be incomplete.
func ModuleIn(meta map[string]string) string { return meta[metaModule] }

// HasIntent reports whether a record has an intent, even an unreadable one.
func HasIntent(meta map[string]string) bool { return meta[metaIntent] != "" }

// ReadIntent decodes the intent in a record that may be incomplete; nil for none.
func ReadIntent(meta map[string]string) (*Intent, error) { return decode[Intent](meta, metaIntent) }

// ReadLastRun decodes the record of the last run; nil for none.
func ReadLastRun(meta map[string]string) (*LastRun, error) { return decode[LastRun](meta, metaLast) }

// decode returns nil for a missing key.
func decode[T any](meta map[string]string, key string) (*T, error) {
	raw, ok := meta[key]
	if !ok {
		return nil, nil
	}
	value := new(T)
	if err := json.Unmarshal([]byte(raw), value); err != nil {
		return nil, &state.AnnotationError{Name: state.Prefix + key, Fix: "remove the annotation if it was edited by hand",
			Err: err}
	}
	return value, nil
}

// Patch is a change of a record.
type Patch struct{ state.MetaPatch }

// NewPatch returns an empty patch.
func NewPatch() Patch { return Patch{state.MetaPatch{}} }

// SetIntent records the intent of a run.
func (p Patch) SetIntent(i Intent) Patch {
	i.Reason = shortened(i.Reason, maxText)
	return p.set(metaIntent, encode(i))
}

// ClearIntent records that the run has settled.
func (p Patch) ClearIntent() Patch {
	p.MetaPatch[metaIntent] = nil
	return p
}

// SetApplied records the desired state and the module that were applied.
func (p Patch) SetApplied(fingerprint, module string) Patch {
	p.MetaPatch[metaRefusal] = nil
	p.SetFingerprint(fingerprint)
	return p.SetModule(module)
}

// SetFingerprint replaces the fingerprint of the applied state.
func (p Patch) SetFingerprint(fingerprint string) { p.set(metaFingerprint, fingerprint) }

// SetModule records the module that is about to touch the infrastructure.
func (p Patch) SetModule(module string) Patch { return p.set(metaModule, module) }

// ClearModuleRefusal removes the refused change of the module.
func (p Patch) ClearModuleRefusal() { p.MetaPatch[metaModuleRefusal] = nil }

// SetModuleRefusal records a refused change of the module.
func (p Patch) SetModuleRefusal(r Refusal) { p.set(metaModuleRefusal, encode(r.bounded())) }

// SetCheck records a drift check.
func (p Patch) SetCheck(c DriftCheck) {
	c.Summary = shortened(c.Summary, maxText)
	p.set(metaCheck, encode(c))
}

// SetRepair records a repair.
func (p Patch) SetRepair(r Repair) {
	r.Refused = shortened(r.Refused, maxText)
	p.set(metaRepair, encode(r))
}

// ClearRepair removes the last repair.
func (p Patch) ClearRepair() { p.MetaPatch[metaRepair] = nil }

// SetPlace records where the instance is, or is about to be created.
func (p Patch) SetPlace(place module.Place) {
	if len(place) > 0 {
		p.set(metaPlace, encode(place))
	}
}

// SetSecondLook records when to look for a duplicate instance; nil for never.
func (p Patch) SetSecondLook(at *time.Time) {
	if at == nil {
		p.MetaPatch[metaSecondLook] = nil
		return
	}
	p.set(metaSecondLook, encode(at.UTC()))
}

// SetLastRun records the run that has ended.
func (p Patch) SetLastRun(e LastRun) {
	e.Message, e.Reason = shortened(e.Message, maxText), shortened(e.Reason, maxText)
	p.set(metaLast, encode(e))
}

// SetAdoptionPlan records the result of planning an adoption.
func (p Patch) SetAdoptionPlan(plan PlannedAdoption) { p.set(metaAdoption, encode(plan)) }

// ClearAdoptionPlan removes the result of planning an adoption.
func (p Patch) ClearAdoptionPlan() { p.MetaPatch[metaAdoption] = nil }

// SetRefusal records a refused change.
func (p Patch) SetRefusal(r Refusal) { p.set(metaRefusal, encode(r.bounded())) }

func (p Patch) set(key, value string) Patch {
	p.MetaPatch[key] = &value
	return p
}

// encode marshals a type of this package, which cannot fail.
func encode(value any) string {
	raw, err := json.Marshal(value)
	if err != nil {
		return "{}"
	}
	return string(raw)
}
