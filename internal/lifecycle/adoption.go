package lifecycle

import (
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
	// AdoptionAnnotation on a Machine or its MachineSet requests an adoption, a plan of one, or a
	// release. Its values are those of Adoption.
	AdoptionAnnotation = state.Prefix + "adoption"
	// AdoptIDAnnotation on a Machine names the instance to adopt by its infrastructure ID, if the
	// Machine has no provider ID yet.
	AdoptIDAnnotation = state.Prefix + "adopt-id"
	// AdoptFromAnnotation on a Machine names the Terraform state that the ID comes from, by lineage
	// and address. Only that state can prove that it gave the instance up.
	AdoptFromAnnotation = state.Prefix + "adopt-from"
	// AdoptionRequestedAnnotation on a Machine is a time in RFC 3339. An adoption plan older than
	// that time is made again.
	AdoptionRequestedAnnotation = state.Prefix + "adoption-requested-at"
)

// An adoption plan is shown for its lifetime and then made again. A refusal expires sooner, because
// someone is about to correct it.
const (
	adoptionPlanLifetime    = time.Hour
	adoptionRefusalLifetime = 5 * time.Minute
)

// Adoption is the requested handling of an instance that this operator did not create.
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

// AdoptionOf returns the adoption that a Machine or MachineSet requests, and why its annotation is
// invalid, if it is.
func AdoptionOf(object metav1.Object) (adoption Adoption, misread string) {
	value, ok := object.GetAnnotations()[AdoptionAnnotation]
	switch adoption = Adoption(value); {
	case !ok:
		return AdoptionNone, ""
	case adoption == AdoptionPlan, adoption == AdoptionAdopt, adoption == AdoptionRelease:
		return adoption, ""
	}
	return AdoptionNone, fmt.Sprintf("annotation %s is %q: set it to %s, %s or %s", AdoptionAnnotation, value,
		AdoptionPlan, AdoptionAdopt, AdoptionRelease)
}

// AdoptionRequest is a Machine's request to adopt or release an instance.
type AdoptionRequest struct {
	Adoption Adoption
	// ID is the infrastructure's ID of the instance, or empty if the provider ID names it.
	ID string
	// Since is when the adoption was last requested, or zero if unknown.
	Since time.Time
	// Misread says which annotation is invalid, or is empty.
	Misread string
	// Denied says why the request is denied, and DeniedReason is the reason in one word. Both are
	// empty if it is granted. Adoption is AdoptionNone if the request is denied.
	Denied, DeniedReason string
}

// Requested reports whether an adoption or a plan of one is requested.
func (r AdoptionRequest) Requested() bool {
	return r.Adoption == AdoptionPlan || r.Adoption == AdoptionAdopt
}

// named reports whether the Machine is meant for an existing instance although it has no provider
// ID: it names the instance's ID, or requests a plan, which creates nothing. A denied request
// counts, too.
func (r AdoptionRequest) named() bool {
	return r.ID != "" || r.Adoption == AdoptionPlan || r.Denied != ""
}

func adoptionRequest(machine metav1.Object) AdoptionRequest {
	r := AdoptionRequest{ID: machine.GetAnnotations()[AdoptIDAnnotation]}
	r.Adoption, r.Misread = AdoptionOf(machine)
	if since, ok := machine.GetAnnotations()[AdoptionRequestedAnnotation]; ok {
		var err error
		if r.Since, err = time.Parse(time.RFC3339, since); err != nil && r.Misread == "" {
			r.Misread = fmt.Sprintf("annotation %s is %q: set it to a time as 2006-01-02T15:04:05Z",
				AdoptionRequestedAnnotation, since)
		}
	}
	return r
}

// CheckAdoption returns why an import plan must not be applied, or "" if it may. The plan may
// change resources in place. It may create only resources that exist in the state alone, or types
// that the module lists.
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
	return fmt.Sprintf("the module would create %s, which the instance does not have", strings.Join(made, ", "))
}

// planIsCurrent reports whether an adoption plan answers the request for the desired state and has
// not expired.
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

// decideForeign returns the decision for a Machine whose instance this operator did not create.
func decideForeign(f *Facts, t Target) Decision {
	left := Decision{Action: ActionForeign}
	switch asked := f.Adoption; {
	case asked.Misread != "":
		left.Reason = asked.Misread
		return left
	case !asked.Requested():
		return left
	case !f.Provisioned && asked.ID == "" && !f.MayInherit():
		left.Reason = "the Machine has no provider ID; set annotation " + AdoptIDAnnotation + " to the instance's ID"
		return left
	case !t.Adopt:
		left.Reason = "the Machine's module does not support adoption: it has no adopt/ folder"
		return left
	case f.Deleting && t.Now.Before(f.secondSearch(t)):
		return Decision{
			Action: ActionRequeueAfter, Operation: runs.Update, Until: f.secondSearch(t),
			Reason: "no instance to adopt was found; searching once more before the Machine is released",
		}
	case asked.Adoption == AdoptionAdopt:
		return Decision{Action: ActionStart, Operation: runs.Update, Lookup: true, Adopt: true, Reason: "adoption requested"}
	case planIsCurrent(f.Record.AdoptionPlan, asked, t):
		return left
	}
	return Decision{Action: ActionStart, Operation: runs.Drift, Lookup: true, Adopt: true,
		Reason: "adoption plan requested"}
}

// secondSearch returns when to search again for an instance that was not found, or zero if none was
// missing.
func (f *Facts) secondSearch(t Target) time.Time {
	first := f.Record.AdoptionPlan.AbsentSince(t.Fingerprint)
	if first.IsZero() {
		return first
	}
	return first.Add(SecondLookAfter(t.Settle))
}

// adoptionGoesOn reports whether an adoption or release continues although the Machine is being
// deleted.
func (f *Facts) adoptionGoesOn() bool {
	return f.Adoption.Adoption == AdoptionRelease || f.Adoption.Adoption == AdoptionAdopt && f.Foreign() || f.MayInherit()
}

// decideRelease returns the decision for a Machine whose state is to be discarded without a
// destroy.
func decideRelease(f *Facts) Decision {
	switch {
	case f.Active():
		return Decision{Action: ActionInProgress, Reason: "a run is in progress"}
	case !f.Stored && f.Witness == nil:
		return Decision{Action: ActionForeign}
	}
	return Decision{Action: ActionStart, Operation: runs.Update, Release: true,
		Reason: "release of the instance requested"}
}
