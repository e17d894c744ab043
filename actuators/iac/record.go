package iac

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// Keys of what is recorded beside a state.
const (
	metaFingerprint = "fingerprint"
	metaModule      = "module"
	metaIntent      = "intent"
	metaCheck       = "drift-check"
	metaRefusal     = "refusal"
	metaRenewal     = "module-refusal"
	metaRepair      = "drift-repair"
	metaLast        = "last-run"
	metaPlace       = "place"
	metaSecond      = "second-look"
)

// record is what is known of a state beyond the state itself. It is written with the state's lock, in the same write.
type record struct {
	// Fingerprint of what the state was brought to: inputs, module, credentials. Empty while nothing has settled.
	Fingerprint string
	// Module is the reference of the module that last touched the infrastructure, or was about to. A destroy uses it.
	Module string
	// Intent of a run that began and has not settled.
	Intent *intent
	// Check is the last comparison with the infrastructure.
	Check *check
	// Refusal is a change that was planned and not let through.
	Refusal *refusal
	// Renewal is a change to another module that was planned and not let through.
	Renewal *refusal
	// Place is where the instance is, as the module that made it declares; empty where it does not, or for a state from before places were kept.
	Place module.Place
	// Second is when to look for a second instance, after a create that followed a lookup which found nothing; nil for never.
	Second *time.Time
	// Repair is the last try to bring back an instance that somebody else had changed, unless a check has found it as it should be since.
	Repair *repair
}

// intent says that a run was about to touch infrastructure.
type intent struct {
	Operation runs.Operation `json:"operation"`
	Run       string         `json:"run"`
	Since     time.Time      `json:"since"`
	// Reason says for people why the run did what it did.
	Reason string `json:"reason,omitempty"`
	// Lost is an earlier run that may have made an instance which the state lacks. This one was to find it.
	Lost string `json:"lost,omitempty"`
	// Died is when the lost run could act no more, zero while that is not known. Looked says that a lookup has found nothing since.
	Died   time.Time `json:"died,omitzero"`
	Looked bool      `json:"looked,omitempty"`
}

// lostRun names the run that may have made an instance which the state lacks, empty for none: only a create makes one.
func (i *intent) lostRun() string {
	if i.Lost == "" && i.Operation == runs.Create {
		return i.Run
	}
	return i.Lost
}

// Results of a run.
const (
	endedWell  = "Succeeded"
	endedBadly = "Failed"
	endedEarly = "Interrupted"
	// endedOpen is the result of a run that found nothing where an instance may be: it is looked for again.
	endedOpen = "Undecided"
)

// maxMessage bounds what is recorded of a failure.
const maxMessage = 2 << 10

// ended tells people of the last run that ended; nothing is decided from it. It is written with what settles the run, so it costs no write.
type ended struct {
	Operation runs.Operation `json:"operation"`
	Run       string         `json:"run"`
	Began     time.Time      `json:"began"`
	Ended     time.Time      `json:"ended"`
	Result    string         `json:"result"`
	// Message says why it failed, Reason why it was begun.
	Message string `json:"message,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

// verdict is what a drift check found.
type verdict string

const (
	verdictNone    verdict = "None"
	verdictChanged verdict = "Changed"
	verdictMissing verdict = "Missing"
)

// check is a comparison of the state with the infrastructure.
type check struct {
	At      time.Time `json:"at"`
	Verdict verdict   `json:"verdict"`
	// Summary names what was found, for people.
	Summary string `json:"summary,omitempty"`
}

// refusal remembers a refused change, so that it is not planned again until something else is asked for.
type refusal struct {
	Fingerprint string `json:"fingerprint"`
	Message     string `json:"message"`
}

// of reports whether the refused change is the one with a fingerprint.
func (r *refusal) of(fingerprint string) bool { return r != nil && r.Fingerprint == fingerprint }

func readRecord(meta map[string]string) (record, error) {
	r := record{Fingerprint: meta[metaFingerprint], Module: meta[metaModule]}
	var err error
	if r.Intent, err = decode[intent](meta, metaIntent); err != nil {
		return record{}, err
	}
	if r.Check, err = decode[check](meta, metaCheck); err != nil {
		return record{}, err
	}
	if r.Refusal, err = decode[refusal](meta, metaRefusal); err != nil {
		return record{}, err
	}
	if r.Renewal, err = decode[refusal](meta, metaRenewal); err != nil {
		return record{}, err
	}
	if r.Repair, err = decode[repair](meta, metaRepair); err != nil {
		return record{}, err
	}
	if r.Second, err = decode[time.Time](meta, metaSecond); err != nil {
		return record{}, err
	}
	place, err := decode[module.Place](meta, metaPlace)
	if place != nil {
		r.Place = *place
	}
	return r, err
}

// decode answers nil for a key that is not there.
func decode[T any](meta map[string]string, key string) (*T, error) {
	raw, ok := meta[key]
	if !ok {
		return nil, nil
	}
	value := new(T)
	if err := json.Unmarshal([]byte(raw), value); err != nil {
		return nil, fmt.Errorf("reading annotation %s%s: %w; remove the annotation when it was edited by hand", state.Prefix, key, err)
	}
	return value, nil
}

// patch is a change of a record.
type patch struct{ state.MetaPatch }

func newPatch() patch { return patch{state.MetaPatch{}} }

func (p patch) intend(i intent) patch { return p.set(metaIntent, encode(i)) }

func (p patch) settled() patch {
	p.MetaPatch[metaIntent] = nil
	return p
}

func (p patch) reached(fingerprint, module string) patch {
	p.MetaPatch[metaRefusal] = nil
	return p.set(metaFingerprint, fingerprint).made(module)
}

func (p patch) made(module string) patch { return p.set(metaModule, module) }

// renewed forgets what stood in the way of another module.
func (p patch) renewed() { p.MetaPatch[metaRenewal] = nil }

func (p patch) refusedRenewal(r refusal) { p.set(metaRenewal, encode(r)) }

func (p patch) checked(c check) { p.set(metaCheck, encode(c)) }

func (p patch) repaired(r repair) { p.set(metaRepair, encode(r)) }

// unrepaired forgets repairs.
func (p patch) unrepaired() { p.MetaPatch[metaRepair] = nil }

// at records where the instance is, or is about to be made.
func (p patch) at(place module.Place) {
	if len(place) > 0 {
		p.set(metaPlace, encode(place))
	}
}

// second has a second instance looked for at a time, or never where that is nil.
func (p patch) second(at *time.Time) {
	if at == nil {
		p.MetaPatch[metaSecond] = nil
		return
	}
	p.set(metaSecond, encode(at.UTC()))
}

func (p patch) ended(e ended) { p.set(metaLast, encode(e)) }

func (p patch) refused(r refusal) { p.set(metaRefusal, encode(r)) }

func (p patch) set(key, value string) patch {
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
