package lifecycle

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

const (
	// AdoptionAnnotation on a Machine, or on its MachineSet, says what is done about an instance that something else has made. Its values are
	// those of Adoption.
	AdoptionAnnotation = state.Prefix + "adoption"
	// AdoptIDAnnotation on a Machine is the infrastructure's ID of the instance to adopt, for a Machine whose provider ID is not known yet.
	AdoptIDAnnotation = state.Prefix + "adopt-id"
	// AdoptFromAnnotation on a Machine says which Terraform state the ID is from, by lineage and address: only that one can show that it gave the
	// instance up.
	AdoptFromAnnotation = state.Prefix + "adopt-from"
	// AdoptionRequestedAnnotation on a Machine is a time in RFC 3339: an adoption that was planned before it is planned again.
	AdoptionRequestedAnnotation = state.Prefix + "adoption-requested-at"
)

// How long the plan of an adoption is shown before it is made anew: somebody is about to correct what was refused.
const (
	adoptionPlanLifetime    = time.Hour
	adoptionRefusalLifetime = 5 * time.Minute
)

// Adoption is what is asked to be done about an instance that something else has made.
type Adoption string

const (
	// AdoptionNone leaves the Machine alone.
	AdoptionNone Adoption = ""
	// AdoptionPlan plans the adoption, reports what it would do, and changes nothing.
	AdoptionPlan Adoption = "Plan"
	// AdoptionAdopt adopts the instance.
	AdoptionAdopt Adoption = "Adopt"
	// AdoptionRelease forgets the state of the instance, which stays, and leaves the Machine alone.
	AdoptionRelease Adoption = "Release"
)

// adoptionOnRequest is how a flag spells AdoptionNone.
const adoptionOnRequest = "OnRequest"

// String implements flag.Value.
func (a *Adoption) String() string { return cmp.Or(string(*a), adoptionOnRequest) }

// Set implements flag.Value: what Machines without the annotation get.
func (a *Adoption) Set(text string) error {
	switch asked := Adoption(text); asked {
	case adoptionOnRequest:
		*a = AdoptionNone
	case AdoptionPlan, AdoptionAdopt:
		*a = asked
	default:
		return fmt.Errorf("adoption is %q; write %s, %s or %s", text, adoptionOnRequest, AdoptionPlan, AdoptionAdopt)
	}
	return nil
}

// AdoptionOf returns what the annotation of a Machine or MachineSet asks for, and why it is not understood, if it is not.
func AdoptionOf(object metav1.Object) (adoption Adoption, misread string) {
	value, ok := object.GetAnnotations()[AdoptionAnnotation]
	switch adoption = Adoption(value); {
	case !ok:
		return AdoptionNone, ""
	case adoption == AdoptionPlan, adoption == AdoptionAdopt, adoption == AdoptionRelease:
		return adoption, ""
	}
	return AdoptionNone, fmt.Sprintf("annotation %s is %q: set it to %s, %s or %s", AdoptionAnnotation, value, AdoptionPlan, AdoptionAdopt, AdoptionRelease)
}

// AdoptionRequest is what is asked for about the adoption of a Machine's instance.
type AdoptionRequest struct {
	Adoption Adoption
	// ID is the infrastructure's ID of the instance; empty where the provider ID names it.
	ID string
	// Since is when the adoption was last asked for; zero where that is not known.
	Since time.Time
	// Misread says which annotation is not understood; empty for none.
	Misread string
}

// Requested reports whether an adoption, or a plan of one, is asked for.
func (r AdoptionRequest) Requested() bool {
	return r.Adoption == AdoptionPlan || r.Adoption == AdoptionAdopt
}

// named reports whether the Machine itself says that it gets an instance which exists, although it has no provider ID: by the instance's ID, or
// by a plan, with which nothing is created.
func (r AdoptionRequest) named() bool { return r.ID != "" || r.Adoption == AdoptionPlan }

// adoptionRequest reads the annotations of a Machine.
func adoptionRequest(machine metav1.Object) AdoptionRequest {
	r := AdoptionRequest{ID: machine.GetAnnotations()[AdoptIDAnnotation]}
	r.Adoption, r.Misread = AdoptionOf(machine)
	if since, ok := machine.GetAnnotations()[AdoptionRequestedAnnotation]; ok {
		var err error
		if r.Since, err = time.Parse(time.RFC3339, since); err != nil && r.Misread == "" {
			r.Misread = fmt.Sprintf("annotation %s is %q: set it to a time as 2006-01-02T15:04:05Z", AdoptionRequestedAnnotation, since)
		}
	}
	return r
}

// CheckAdoption returns why a plan that brings an instance into the state may not be carried out, empty where it may: it changes nothing but in
// place, and makes nothing but what is in the state only, or of the types that the module lists.
func CheckAdoption(report *engine.Report, creates []string) string {
	if refused := refusalOf(runs.Update, report, true); refused != "" {
		return refused
	}
	var made []string
	for _, change := range report.Creates() {
		if change.Type != stateOnlyType && !slices.Contains(creates, change.Type) {
			made = append(made, change.Address)
		}
	}
	if len(made) == 0 {
		return ""
	}
	return fmt.Sprintf("the module would make %s, which the instance does not have", strings.Join(made, ", "))
}

// planIsCurrent reports whether a plan of an adoption is that of a request and a desired state.
func planIsCurrent(p *record.PlannedAdoption, r AdoptionRequest, t Target) bool {
	if p == nil || p.Fingerprint != t.Fingerprint || p.At.Before(r.Since) {
		return false
	}
	lifetime := adoptionPlanLifetime
	if p.Refused != "" {
		lifetime = adoptionRefusalLifetime
	}
	return t.Now.Before(p.At.Add(lifetime))
}

// decideForeign decides what is done about a Machine whose instance something else has made.
func decideForeign(f *Facts, t Target) Decision {
	left := Decision{Action: ActionForeign}
	switch asked := f.Adoption; {
	case asked.Misread != "":
		left.Reason = asked.Misread
		return left
	case !asked.Requested():
		return left
	case !f.Provisioned && asked.ID == "":
		left.Reason = "it has no provider ID, and the annotation " + AdoptIDAnnotation + " names no instance"
		return left
	case !t.Adopt:
		left.Reason = "the Machine's module cannot adopt: it has no folder adopt/"
		return left
	case f.Deleting && t.Now.Before(f.secondSearch(t)):
		return Decision{
			Action: ActionRequeueAfter, Operation: runs.Update, Until: f.secondSearch(t), Reason: "there was no instance to adopt; it is looked for once more before the Machine is let go",
		}
	case asked.Adoption == AdoptionAdopt:
		return Decision{Action: ActionStart, Operation: runs.Update, Lookup: true, Adopt: true, Reason: "its adoption is requested"}
	case planIsCurrent(f.Record.AdoptionPlan, asked, t):
		return left
	}
	return Decision{Action: ActionStart, Operation: runs.Drift, Lookup: true, Adopt: true, Reason: "a plan of its adoption is requested"}
}

// secondSearch returns when an instance that was not there to adopt is looked for again; zero where none was missing.
func (f *Facts) secondSearch(t Target) time.Time {
	first := f.Record.AdoptionPlan.AbsentSince(t.Fingerprint)
	if first.IsZero() {
		return first
	}
	return first.Add(SecondLookAfter(t.Settle))
}

// adoptionGoesOn reports whether an adoption or a release goes on although the Machine is being deleted.
func (f *Facts) adoptionGoesOn() bool {
	return f.Adoption.Adoption == AdoptionRelease || f.Adoption.Adoption == AdoptionAdopt && f.Foreign()
}

// decideRelease decides what is done about a Machine whose state is to be forgotten.
func decideRelease(f *Facts) Decision {
	switch {
	case f.Active():
		return Decision{Action: ActionInProgress, Reason: "a run is in progress"}
	case !f.Stored && f.Witness == nil:
		return Decision{Action: ActionForeign}
	}
	return Decision{Action: ActionStart, Operation: runs.Update, Release: true, Reason: "the release of its instance is requested"}
}
