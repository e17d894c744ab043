package record

import (
	"fmt"
	"strings"
	"time"
)

// PlannedAdoption is what a run has found about the adoption of an instance. It holds names and the module's own messages, no values.
type PlannedAdoption struct {
	// At is when it was planned; zero while the first plan is being made.
	At          time.Time `json:"at"`
	Fingerprint string    `json:"fingerprint"`
	// Imports and Creates are addresses of resources, Changes those that would be updated in place, with the attributes.
	Imports []string `json:"imports,omitempty"`
	Creates []string `json:"creates,omitempty"`
	Changes []string `json:"changes,omitempty"`
	// Differences are the module's messages about what differs and stays as it is.
	Differences []string `json:"differences,omitempty"`
	// Refused says why the instance cannot be adopted; empty where it can.
	Refused string `json:"refused,omitempty"`
	// Absent is since when searches have found no such instance, one after the other; zero where the last one has found one, or has failed.
	Absent time.Time `json:"absent,omitzero"`
}

// AbsentSince returns since when no instance was found with a desired state; zero where one was, or where nothing was planned with it.
func (p *PlannedAdoption) AbsentSince(fingerprint string) time.Time {
	if p == nil || p.Fingerprint != fingerprint {
		return time.Time{}
	}
	return p.Absent
}

// Bounds of what is recorded of the plan of an adoption: it is kept with the state, and shown on the Machine.
const (
	maxAdoptionEntries = 20
	maxAdoptionText    = 512
)

// Bounded returns the plan with no more than fits beside a state.
func (p PlannedAdoption) Bounded() PlannedAdoption {
	for _, list := range []*[]string{&p.Imports, &p.Creates, &p.Changes, &p.Differences} {
		if more := len(*list) - maxAdoptionEntries; more > 0 {
			*list = append((*list)[:maxAdoptionEntries:maxAdoptionEntries], fmt.Sprintf("and %d more", more))
		}
		for i, text := range *list {
			(*list)[i] = shortened(text)
		}
	}
	p.Refused = shortened(p.Refused)
	return p
}

func shortened(text string) string {
	if len(text) <= maxAdoptionText {
		return strings.ToValidUTF8(text, "")
	}
	return strings.ToValidUTF8(text[:maxAdoptionText], "") + "..."
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
		text += "; what differs stays as it is: " + strings.Join(p.Differences, " ")
	}
	return text
}

// OnlyPlanned reports whether a record is that of an adoption which was planned or refused: nothing was brought into the state.
func (r *Record) OnlyPlanned() bool {
	return r.AdoptionPlan != nil && r.Intent == nil && r.Fingerprint == ""
}
