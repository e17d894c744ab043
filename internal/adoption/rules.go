package adoption

import (
	"fmt"
	"slices"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/internal/installation"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
)

// Policy is the manager's policy for instances that it did not create. It is a flag.
type Policy string

const (
	// Never adopts nothing; the default.
	Never Policy = "Never"
	// OnRequest adopts on the request of an authorized user.
	OnRequest Policy = "OnRequest"
	// Plan plans all adoptions, and adopts on the request of an authorized user.
	Plan = Policy(lifecycle.AdoptionPlan)
	// Adopt adopts all such instances.
	Adopt = Policy(lifecycle.AdoptionAdopt)
)

// String implements flag.Value.
func (p *Policy) String() string { return string(*p) }

// Set implements flag.Value.
func (p *Policy) Set(text string) error {
	asked := Policy(text)
	if !slices.Contains([]Policy{Never, OnRequest, Plan, Adopt}, asked) {
		return fmt.Errorf("invalid adoption %q: must be %s, %s, %s or %s", text, Never, OnRequest, Plan, Adopt)
	}
	*p = asked
	return nil
}

// Reasons for denying a request, as used in conditions.
const (
	ReasonDisabled   = "AdoptionDisabled"
	ReasonNotGranted = "AdoptionNotGranted"
)

// Rules decide which requests are granted.
type Rules struct {
	Policy Policy
	// Installation verifies grants; if nil, none counts.
	Installation *installation.Installation
	// WithoutWebhooks reports that this manager serves no webhooks, so that no request is granted.
	WithoutWebhooks bool
}

// Apply returns the effective request of a Machine: its own, its MachineSet's, or the manager's
// policy. set is nil for a Machine without a MachineSet.
func (r Rules) Apply(
	asked lifecycle.AdoptionRequest, machine *machinev1beta1.Machine, set *machinev1beta1.MachineSet,
) lifecycle.AdoptionRequest {
	own := GrantOf(r.Installation, machine)
	if own != nil && own.User == "" {
		return asked // the operator destroys an orphaned instance
	}
	source, counts := r.complete(&asked, machine, set, own != nil)
	switch {
	case asked.Adoption == lifecycle.AdoptionNone:
		return asked
	case asked.Adoption != lifecycle.AdoptionRelease && (r.Policy == Never || r.Policy == ""):
		asked.DeniedReason = ReasonDisabled
		asked.Denied = fmt.Sprintf("%s requests the adoption, but the manager's --adoption=%s refuses all: "+
			"set it to %s to let authorized users request adoptions", source, Never, OnRequest)
	case !counts:
		asked.DeniedReason, asked.Denied = ReasonNotGranted, r.notGranted(source, asked.Adoption)
	default:
		return asked
	}
	asked.Adoption = lifecycle.AdoptionNone
	return asked
}

// complete fills in the request of the MachineSet or the manager if the Machine has none. It
// returns the source, and whether the request counts. own reports that the Machine has a grant.
func (r Rules) complete(
	asked *lifecycle.AdoptionRequest, machine *machinev1beta1.Machine, set *machinev1beta1.MachineSet, own bool,
) (source string, counts bool) {
	named := asked.ID == "" || own // an ID counts only if it was granted
	switch {
	case asked.Adoption != lifecycle.AdoptionNone:
		return "the Machine", own || r.byTemplate(machine, set) || named && asked.Adoption == lifecycle.Adoption(r.Policy)
	case asked.Misread != "":
	case set != nil && set.Annotations[lifecycle.AdoptionAnnotation] != "":
		if asked.Adoption, asked.Misread = lifecycle.AdoptionOf(set); asked.Misread != "" {
			asked.Misread = "MachineSet " + set.Name + ": " + asked.Misread
		}
		return "the MachineSet " + set.Name, named && r.bySet(machine, set)
	case r.Policy == Plan || r.Policy == Adopt:
		asked.Adoption = lifecycle.Adoption(r.Policy)
		return "the manager", named
	}
	return "", false
}

// bySet reports whether a MachineSet's grant covers a Machine: it covers the Machines that existed
// then. It excludes a Machine that later received an owner and a provider ID.
func (r Rules) bySet(machine *machinev1beta1.Machine, set *machinev1beta1.MachineSet) bool {
	granted := GrantOf(r.Installation, set)
	return granted != nil && !machine.CreationTimestamp.After(granted.At)
}

// byTemplate reports whether a Machine's request comes from its MachineSet's template, which has a
// grant.
func (r Rules) byTemplate(machine *machinev1beta1.Machine, set *machinev1beta1.MachineSet) bool {
	return set != nil && GrantOf(r.Installation, set) != nil &&
		slices.Equal(request(machine.Annotations, machine.Spec.ProviderID), templateRequest(set))
}

func (r Rules) notGranted(source string, asked lifecycle.Adoption) string {
	text := fmt.Sprintf("%s requests %s without a valid grant in annotation %s", source, asked, GrantAnnotation)
	if r.WithoutWebhooks {
		return text + ", which the webhooks record, but this manager serves none: enable them (--webhook-enabled and " +
			"install/controllers/webhooks), or adopt with --adoption=" + string(Adopt)
	}
	return text + fmt.Sprintf(": request it again as a user who may %s %s.%s, with 'kubectl machine adopt' or a new "+
		"time in %s", Verb, Resource, machinev1beta1.GroupName, lifecycle.AdoptionRequestedAnnotation)
}
