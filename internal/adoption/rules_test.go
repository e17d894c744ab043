package adoption

import (
	"strings"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
)

func TestApply(t *testing.T) {
	asking := func(s *machinev1beta1.MachineSet) {
		s.Annotations = map[string]string{lifecycle.AdoptionAnnotation: "Adopt"}
	}
	inTemplate := func(s *machinev1beta1.MachineSet) {
		s.Spec.Template.Annotations = map[string]string{asked: "Plan"}
	}
	fromTemplate := func(m *machinev1beta1.Machine) {
		m.Annotations, m.Spec.ProviderID = map[string]string{lifecycle.AdoptionAnnotation: "Plan"}, nil
	}
	silent := func(m *machinev1beta1.Machine) { delete(m.Annotations, lifecycle.AdoptionAnnotation) }
	late := func(m *machinev1beta1.Machine) { m.CreationTimestamp = metav1.NewTime(noon.Add(time.Hour)) }
	for name, tc := range map[string]struct {
		policy       Policy
		without      bool
		machine      []func(*machinev1beta1.Machine)
		own          bool // the Machine has a grant
		set          []func(*machinev1beta1.MachineSet)
		setGranted   bool
		setEdited    func(*machinev1beta1.MachineSet)
		want         lifecycle.Adoption
		reason, says string
	}{
		"a request with a grant": {policy: OnRequest, own: true, want: lifecycle.AdoptionAdopt},
		"a request without one": {
			policy: OnRequest, reason: ReasonNotGranted, says: "request it again as a user who may adopt machines.machine.openshift.io",
		},
		"a request without webhooks": {
			policy: OnRequest, without: true, reason: ReasonNotGranted, says: "--adoption=Adopt",
		},
		"never": {
			policy: Never, own: true, reason: ReasonDisabled, says: "--adoption=Never refuses all: set it to OnRequest",
		},
		"by default never":                {own: true, reason: ReasonDisabled, says: "OnRequest"},
		"never, and nothing is requested": {policy: Never, machine: list(silent)},
		"nothing is requested":            {policy: OnRequest, machine: list(silent)},
		"a release is no adoption": {
			policy: Never, machine: list(annotated(asked, "Release")), own: true, want: lifecycle.AdoptionRelease,
		},
		"a release without a grant": {
			policy: Adopt, machine: list(annotated(asked, "Release")), reason: ReasonNotGranted, says: "Release",
		},
		"all are adopted":                   {policy: Adopt, machine: list(silent), want: lifecycle.AdoptionAdopt},
		"all, which a request says as well": {policy: Adopt, want: lifecycle.AdoptionAdopt},
		"all, but not what an ID names": {
			policy: Adopt, machine: list(silent, annotated(lifecycle.AdoptIDAnnotation, "i-2")), reason: ReasonNotGranted,
		},
		"all, with an ID that is granted": {
			policy: Adopt, machine: list(silent, annotated(lifecycle.AdoptIDAnnotation, "i-2")), own: true, want: lifecycle.AdoptionAdopt,
		},
		"a request for more than a plan": {policy: Plan, reason: ReasonNotGranted},
		"a MachineSet with a grant": {
			policy: OnRequest, machine: list(silent), set: list(asking), setGranted: true, want: lifecycle.AdoptionAdopt,
		},
		"a MachineSet without one": {
			policy: Adopt, machine: list(silent),
			set: list(asking), reason: ReasonNotGranted, says: "the MachineSet workers requests",
		},
		"a MachineSet, never": {
			policy: Never, machine: list(silent), set: list(asking), setGranted: true, reason: ReasonDisabled,
		},
		"a Machine that came to it later": {
			policy: OnRequest, machine: list(silent, late), set: list(asking), setGranted: true, reason: ReasonNotGranted,
		},
		"an ID in a MachineSet's name": {
			policy: OnRequest, machine: list(silent, annotated(lifecycle.AdoptIDAnnotation, "i")),
			set: list(asking), setGranted: true, reason: ReasonNotGranted,
		},
		"a Machine of a template": {
			policy: OnRequest, machine: list(fromTemplate),
			set: list(inTemplate), setGranted: true, want: lifecycle.AdoptionPlan,
		},
		"a template without a grant": {
			policy: OnRequest, machine: list(fromTemplate), set: list(inTemplate), reason: ReasonNotGranted,
		},
		"another instance than the template": {
			policy: OnRequest, machine: list(fromTemplate, provided("cloud:///i-9")),
			set: list(inTemplate), setGranted: true, reason: ReasonNotGranted,
		},
		"another request than the template": {
			policy: OnRequest, machine: list(fromTemplate, annotated(asked, "Adopt")),
			set: list(inTemplate), setGranted: true, reason: ReasonNotGranted,
		},
		"a template that changed since": {
			policy: OnRequest, machine: list(fromTemplate),
			set: list(inTemplate), setGranted: true, setEdited: asking, reason: ReasonNotGranted,
		},
		"a MachineSet in words of no meaning": {policy: OnRequest, machine: list(silent), set: list(func(s *machinev1beta1.MachineSet) {
			s.Annotations = map[string]string{lifecycle.AdoptionAnnotation: "yes"}
		})},
	} {
		t.Run(name, func(t *testing.T) {
			m := machine(tc.machine...)
			if tc.own {
				grant(t, ours, m, noon)
			}
			var set *machinev1beta1.MachineSet
			if tc.set != nil {
				set = workers(tc.set...)
				if tc.setGranted {
					grant(t, ours, set, noon)
				}
				if tc.setEdited != nil {
					tc.setEdited(set)
				}
			}
			facts, err := lifecycle.NewFacts(m, nil, ours)
			if err != nil {
				t.Fatal(err)
			}
			got := Rules{Policy: tc.policy, Installation: ours, WithoutWebhooks: tc.without}.Apply(facts.Adoption, m, set)
			if got.Adoption != tc.want || got.DeniedReason != tc.reason || !strings.Contains(got.Denied, tc.says) {
				t.Errorf("got %+v, want %q, reason %q", got, tc.want, tc.reason)
			}
		})
	}
}

func TestTheOperatorsOwnGrantCountsWhateverThePolicyIs(t *testing.T) {
	m := machine()
	value, err := NewGrant(ours, m, "", noon)
	if err != nil {
		t.Fatal(err)
	}
	m.Annotations[GrantAnnotation] = value
	asked := lifecycle.AdoptionRequest{Adoption: lifecycle.AdoptionAdopt}
	if got := (Rules{Installation: ours}).Apply(asked, m, nil); got != asked {
		t.Errorf("got %+v", got)
	}
}

func TestPolicyIsAFlag(t *testing.T) {
	for _, text := range []string{"Never", "OnRequest", "Plan", "Adopt"} {
		var p Policy
		if err := p.Set(text); err != nil || p.String() != text {
			t.Errorf("%s: %v, %s", text, err, p)
		}
	}
	p := OnRequest
	err := p.Set("always")
	if err == nil || !strings.Contains(err.Error(), "Never, OnRequest, Plan or Adopt") || p != OnRequest {
		t.Errorf("got %v, %s", err, p)
	}
}
