package render

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

// setWith returns a modified MachineSet that selects its Machines.
func setWith(change func(*machinev1beta1.MachineSet)) *machinev1beta1.MachineSet {
	set := &machinev1beta1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: "workers", Namespace: "ns"}}
	set.Spec.Selector.MatchLabels = map[string]string{"set": "workers"}
	set.Spec.Template.Labels = map[string]string{"set": "workers", "more": "x"}
	set.Spec.Template.Annotations = map[string]string{"note": "x"}
	set.Spec.Template.Spec.ProviderSpec.Value = &runtime.RawExtension{Raw: []byte(`{}`)}
	if change != nil {
		change(set)
	}
	return set
}

func TestMachineOf(t *testing.T) {
	got := MachineOf(setWith(nil))
	want := &machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "workers-", Namespace: "ns", Labels: map[string]string{"set": "workers", "more": "x"},
		Annotations: map[string]string{"note": "x"},
	}}
	want.Spec.ProviderSpec.Value = &runtime.RawExtension{Raw: []byte(`{}`)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the Machine (-want +got):\n%s", diff)
	}
}

func TestCheckSet(t *testing.T) {
	cases := map[string]struct {
		change func(*machinev1beta1.MachineSet)
		want   string
	}{
		"one that finds its Machines": {},
		"no replicas": {change: func(set *machinev1beta1.MachineSet) {
			set.Spec.Replicas = ptr.To[int32](0)
		}},
		"less than no replicas": {change: func(set *machinev1beta1.MachineSet) {
			set.Spec.Replicas = ptr.To[int32](-1)
		}, want: "spec.replicas"},
		"a selector of everything": {change: func(set *machinev1beta1.MachineSet) {
			set.Spec.Selector.MatchLabels = nil
		}, want: "spec.selector"},
		"Machines that it cannot find": {change: func(set *machinev1beta1.MachineSet) {
			set.Spec.Template.Labels = nil
		}, want: "spec.template.metadata.labels"},
		"a selector that is none": {
			change: func(set *machinev1beta1.MachineSet) {
				set.Spec.Selector.MatchLabels = map[string]string{"a b": "c"}
			}, want: "spec.selector",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var fields []string
			for _, wrong := range CheckSet(&setWith(tc.change).Spec) {
				fields = append(fields, wrong.Field)
			}
			if got := strings.Join(fields, " "); got != tc.want {
				t.Errorf("refused are %q; want %q", got, tc.want)
			}
		})
	}
}
