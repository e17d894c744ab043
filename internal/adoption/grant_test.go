package adoption

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/internal/installation"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
)

// asked is the annotation.
const asked = lifecycle.AdoptionAnnotation

var (
	noon  = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	ours  = installation.Generate()
	other = installation.Generate()
)

// machine returns a Machine that asks for the adoption of the instance that its provider ID names.
func machine(mods ...func(*machinev1beta1.Machine)) *machinev1beta1.Machine {
	m := &machinev1beta1.Machine{}
	m.Namespace, m.Name, m.UID, m.CreationTimestamp = "ns", "worker", "uid-1", metav1.NewTime(noon)
	m.Annotations = map[string]string{lifecycle.AdoptionAnnotation: "Adopt"}
	m.Spec.ProviderID = ptr.To("cloud:///i-1")
	for _, mod := range mods {
		mod(m)
	}
	return m
}

// workers returns the MachineSet of that Machine.
func workers(mods ...func(*machinev1beta1.MachineSet)) *machinev1beta1.MachineSet {
	s := &machinev1beta1.MachineSet{}
	s.Namespace, s.Name, s.UID, s.CreationTimestamp = "ns", "workers", "uid-s", metav1.NewTime(noon)
	for _, mod := range mods {
		mod(s)
	}
	return s
}

func annotated(name, value string) func(*machinev1beta1.Machine) {
	return func(m *machinev1beta1.Machine) { metav1.SetMetaDataAnnotation(&m.ObjectMeta, name, value) }
}

func provided(id string) func(*machinev1beta1.Machine) {
	return func(m *machinev1beta1.Machine) { m.Spec.ProviderID = ptr.To(id) }
}

// grant has an installation grant what an object asks for.
func grant(t *testing.T, i *installation.Installation, object client.Object, at time.Time) {
	t.Helper()
	value, err := NewGrant(i, object, "alice", at)
	if err != nil {
		t.Fatal(err)
	}
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[GrantAnnotation] = value
	object.SetAnnotations(annotations)
}

func TestAGrantIsForOneObjectAndOneRequest(t *testing.T) {
	for name, tc := range map[string]struct {
		by    *installation.Installation
		at    time.Time
		early bool // at the object's creation, before it has a UID
		edit  func(*machinev1beta1.Machine)
		want  bool
	}{
		"as granted":                {want: true},
		"later as well":             {at: noon.Add(1000 * time.Hour), want: true},
		"an edit of something else": {edit: annotated("other", "x"), want: true},
		"requested again": {
			edit: annotated(lifecycle.AdoptionRequestedAnnotation, "2026-03-02T12:00:00Z"), want: true,
		},
		"by another installation": {by: other},
		"removed": {
			edit: func(m *machinev1beta1.Machine) { delete(m.Annotations, GrantAnnotation) },
		},
		"no JSON": {edit: annotated(GrantAnnotation, "yes")},
		"forged": {
			edit: annotated(GrantAnnotation, `{"user":"alice","at":"2026-03-01T12:00:00Z","uid":"uid-1","code":"AAAA"}`),
		},
		"in another's name": {edit: func(m *machinev1beta1.Machine) {
			m.Annotations[GrantAnnotation] = strings.Replace(m.Annotations[GrantAnnotation], "alice", "", 1)
		}},
		"copied to another Machine": {
			edit: func(m *machinev1beta1.Machine) { m.Name = "stolen" },
		},
		"copied to another namespace": {
			edit: func(m *machinev1beta1.Machine) { m.Namespace = "theirs" },
		},
		"a Machine of its name, made anew":              {edit: func(m *machinev1beta1.Machine) { m.UID = "uid-2" }},
		"another provider ID":                           {edit: provided("cloud:///i-2")},
		"another ID":                                    {edit: annotated(lifecycle.AdoptIDAnnotation, "i-2")},
		"Plan instead of Adopt":                         {edit: annotated(lifecycle.AdoptionAnnotation, "Plan")},
		"Release instead of Adopt":                      {edit: annotated(lifecycle.AdoptionAnnotation, "Release")},
		"at its creation":                               {early: true, at: noon.Add(-time.Second), want: true},
		"with a clock that is behind":                   {early: true, at: noon.Add(50 * time.Second), want: true},
		"at the creation of an earlier one of its name": {early: true, at: noon.Add(-time.Hour)},
	} {
		t.Run(name, func(t *testing.T) {
			m := machine()
			if tc.early {
				m.UID = ""
			}
			by, at := ours, noon
			if tc.by != nil {
				by = tc.by
			}
			if !tc.at.IsZero() {
				at = tc.at
			}
			grant(t, by, m, at)
			m.UID = "uid-1"
			if tc.edit != nil {
				tc.edit(m)
			}
			if got := GrantOf(ours, m); (got != nil) != tc.want {
				t.Errorf("got %+v, want a grant: %t", got, tc.want)
			}
		})
	}
	m := machine()
	grant(t, ours, m, noon)
	if GrantOf(nil, m) != nil {
		t.Error("without an installation there is a grant")
	}
}

// A grant of a MachineSet is none of a Machine with its name, although both have the same fields.
func TestAGrantIsForOneKind(t *testing.T) {
	m, s := machine(func(m *machinev1beta1.Machine) { m.Spec.ProviderID = nil }), workers()
	grant(t, ours, m, noon)
	s.Name, s.UID, s.Annotations = m.Name, m.UID, m.Annotations
	if GrantOf(ours, s) != nil {
		t.Error("the grant of a Machine is one of a MachineSet")
	}
}

func TestChanges(t *testing.T) {
	set := func(mod func(*machinev1beta1.MachineSet)) *machinev1beta1.MachineSet { return workers(mod) }
	var want []string
	every, everyInSet := machine(), workers()
	everyInSet.Annotations, everyInSet.Spec.Template.Annotations = map[string]string{}, map[string]string{}
	for _, name := range guarded {
		every.Annotations[name], everyInSet.Annotations[name], everyInSet.Spec.Template.Annotations[name] = "x", "x", "x"
		want = append(want, "metadata.annotations["+name+"]")
	}
	var inTemplate []string
	for _, path := range want {
		inTemplate = append(inTemplate, "spec.template."+path)
	}
	everyInSet.Spec.Template.Spec.ProviderID = ptr.To("x")
	for name, tc := range map[string]struct {
		before, now client.Object
		want        []string
	}{
		"a Machine that is created with all": {
			&machinev1beta1.Machine{}, every, append(slices.Clone(want), "spec.providerID"),
		},
		"a MachineSet that is": {
			&machinev1beta1.MachineSet{}, everyInSet,
			append(slices.Concat(want, inTemplate), "spec.template.spec.providerID"),
		},
		"nothing":                        {machine(), machine(), nil},
		"something else":                 {machine(), machine(annotated("other", "x")), nil},
		"a grant alone, which is forged": {machine(), machine(annotated(GrantAnnotation, "x")), nil},
		"an annotation that goes": {
			machine(), machine(func(m *machinev1beta1.Machine) { m.Annotations = nil }),
			list("metadata.annotations[" + asked + "]"),
		},
		"another provider ID": {
			machine(), machine(provided("cloud:///i-2")), list("spec.providerID"),
		},
		"a provider ID that goes": {machine(), machine(provided("")), nil},
		"a MachineSet that is scaled": {
			workers(), set(func(s *machinev1beta1.MachineSet) { s.Spec.Replicas = ptr.To[int32](3) }), nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Changes(tc.before, tc.now)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// list returns what it is given.
func list[T any](all ...T) []T { return all }
