package record

import (
	"fmt"
	"strings"
	"time"
)

// PlannedAdoption is the result of planning an adoption. It holds names and the module's own
// messages, but no values.
type PlannedAdoption struct {
	// At is when it was planned, or zero while the first plan is being made.
	At          time.Time `json:"at"`
	Fingerprint string    `json:"fingerprint"`
	// Imports and Creates are addresses of resources. Changes are the resources updated in place,
	// with their attributes.
	Imports []string `json:"imports,omitempty"`
	Creates []string `json:"creates,omitempty"`
	Changes []string `json:"changes,omitempty"`
	// Differences are the module's messages about differences that it leaves unchanged.
	Differences []string `json:"differences,omitempty"`
	// Refused says why the instance cannot be adopted, or is empty.
	Refused string `json:"refused,omitempty"`
	// Absent is since when consecutive searches have found no such instance. It is zero if the last
	// search found one or failed.
	Absent time.Time `json:"absent,omitzero"`
}

// AbsentSince returns since when searches for a desired state have found no instance. It is zero if
// one was found, or if nothing was planned for that state.
func (p *PlannedAdoption) AbsentSince(fingerprint string) time.Time {
	if p == nil || p.Fingerprint != fingerprint {
		return time.Time{}
	}
	return p.Absent
}

// Bounds of a recorded adoption plan, which is stored with the state and shown on the Machine.
const (
	maxAdoptionEntries = 20
	maxAdoptionText    = 512
)

// Bounded returns the plan, cut to a size that fits beside a state.
func (p PlannedAdoption) Bounded() PlannedAdoption {
	for _, list := range []*[]string{&p.Imports, &p.Creates, &p.Changes, &p.Differences} {
		if more := len(*list) - maxAdoptionEntries; more > 0 {
			*list = append((*list)[:maxAdoptionEntries:maxAdoptionEntries], fmt.Sprintf("and %d more", more))
		}
		for i, text := range *list {
			(*list)[i] = shortened(text, maxAdoptionText)
		}
	}
	p.Refused = shortened(p.Refused, maxAdoptionText)
	return p
}

func shortened(text string, limit int) string {
	if len(text) <= limit {
		return strings.ToValidUTF8(text, "")
	}
	return strings.ToValidUTF8(text[:limit], "") + "..."
}

// String returns, for people, what the adoption would do.
func (p PlannedAdoption) String() string {
	text := "it would import " + strings.Join(p.Imports, ", ")
	for _, list := range []struct {
		intro string
		items []string
	}{{"create", p.Creates}, {"change", p.Changes}} {
		if len(list.items) > 0 {
			text += ", " + list.intro + " " + strings.Join(list.items, ", ")
		}
	}
	if len(p.Differences) > 0 {
		text += "; differences left unchanged: " + strings.Join(p.Differences, " ")
	}
	return text
}

// OnlyPlanned reports whether a record belongs to an adoption that was only planned or refused, so
// that nothing was imported.
func (r *Record) OnlyPlanned() bool {
	return r.AdoptionPlan != nil && r.Intent == nil && r.Fingerprint == ""
}
