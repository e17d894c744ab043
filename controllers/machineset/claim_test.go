package machineset

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-iac/machine-iac-operator/test/builder"
)

func TestSortClaims(t *testing.T) {
	set := builder.MachineSet(func(s *machinev1beta1.MachineSet) { s.UID = "ours" })
	rival := builder.MachineSet(builder.SelectingAs(set), func(s *machinev1beta1.MachineSet) { s.UID = "theirs" })
	earlier := builder.MachineSet(builder.SelectingAs(set), func(s *machinev1beta1.MachineSet) { s.Name, s.UID = set.Name, "earlier" })
	matching := builder.WithLabels(set.Spec.Template.Labels)
	unlabelled := func(m *machinev1beta1.Machine) { m.Labels = nil }
	tcs := map[string]struct {
		mods []machineMod
		want string
	}{
		"ours and matching":                              {[]machineMod{builder.WithOwner(set)}, "replica"},
		"ours and failed still counts":                   {[]machineMod{builder.WithOwner(set), builder.WithPhase("Failed")}, "replica"},
		"ours and no longer matching":                    {[]machineMod{builder.WithOwner(set), unlabelled}, "release"},
		"nobody's and matching":                          {[]machineMod{matching}, "adopt"},
		"nobody's and not matching":                      {nil, ""},
		"another's and matching":                         {[]machineMod{builder.WithOwner(rival)}, ""},
		"of an earlier MachineSet of the same name":      {[]machineMod{builder.WithOwner(earlier)}, ""},
		"ours and being deleted":                         {[]machineMod{builder.WithOwner(set), builder.DeletedAt(now)}, ""},
		"nobody's and being deleted":                     {[]machineMod{matching, builder.DeletedAt(now)}, ""},
		"ours, no longer matching and being deleted":     {[]machineMod{builder.WithOwner(set), unlabelled, builder.DeletedAt(now)}, ""},
		"with an owner that is no controller, and match": {[]machineMod{matching, ownedLoosely}, "adopt"},
	}
	selector, err := metav1.LabelSelectorAsSelector(&set.Spec.Selector)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			got := sortClaims(set.UID, selector, []*machinev1beta1.Machine{builder.Machine(tc.mods...)})
			counts := map[string]int{"replica": len(got.replicas), "adopt": len(got.adopt), "release": len(got.release)}
			want := map[string]int{"replica": 0, "adopt": 0, "release": 0}
			if tc.want != "" {
				want[tc.want] = 1
			}
			if diff := cmp.Diff(want, counts); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func ownedLoosely(m *machinev1beta1.Machine) {
	m.OwnerReferences = append(m.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "x"})
}
