package lifecycle

import (
	"testing"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

func TestOwners(t *testing.T) {
	machine := func(uid types.UID, providerID string) machinev1beta1.Machine {
		return machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "n", UID: uid}, Spec: machinev1beta1.MachineSpec{ProviderID: ptr.To(providerID)}}
	}
	head := func(uid types.UID, meta map[string]string) state.Head {
		return state.Head{Key: state.KeyFor("n", uid), Managed: 1, Meta: meta, Labels: map[string]string{state.LabelMachineUID: string(uid)}}
	}
	locked := head("locked", nil)
	locked.Lock = &state.Lock{}
	restored := machine("restored", "")
	restored.Annotations = map[string]string{record.WitnessAnnotation: `{"uid":"before"}`}
	owners := &Owners{}
	owners.Add([]machinev1beta1.Machine{
		machine("settled", "cloud:///zone/i-1"), machine("new", ""), machine("busy", "cloud:///zone/i-2"), machine("locked", "cloud:///zone/i-3"), machine("foreign", "cloud:///zone/i-4"), restored,
	}, []state.Head{head("settled", nil), head("busy", map[string]string{"intent": "{}", "identity-uid": "old"}), locked, head("gone", nil)})
	owners.Add(nil, nil)
	for name, tc := range map[string]struct {
		instance ListedInstance
		want     bool
	}{
		"of a Machine":                            {ListedInstance{ProviderID: "cloud:///zone/i-1"}, true},
		"with another region before its ID":       {ListedInstance{ProviderID: "cloud:///I-1"}, true},
		"of a Machine of another operator":        {ListedInstance{ProviderID: "cloud:///zone/i-4"}, true},
		"of a Machine that has none yet":          {ListedInstance{ProviderID: "cloud:///zone/i-9", MachineUID: "new"}, true},
		"of a run that has not settled":           {ListedInstance{ProviderID: "cloud:///zone/i-9", MachineUID: "busy"}, true},
		"of one, made with another UID":           {ListedInstance{ProviderID: "cloud:///zone/i-9", MachineUID: "old"}, true},
		"of a run in progress":                    {ListedInstance{ProviderID: "cloud:///zone/i-9", MachineUID: "locked"}, true},
		"of a state without a Machine":            {ListedInstance{ProviderID: "cloud:///zone/i-9", MachineUID: "gone"}, true},
		"of a Machine that was made anew":         {ListedInstance{ProviderID: "cloud:///zone/i-9", MachineUID: "before"}, true},
		"a second one of a Machine":               {ListedInstance{ProviderID: "cloud:///zone/i-9", MachineUID: "settled"}, false},
		"of nobody":                               {ListedInstance{ProviderID: "cloud:///zone/i-9"}, false},
		"of a Machine that nobody knows any more": {ListedInstance{ProviderID: "cloud:///zone/i-9", MachineUID: "unknown"}, false},
	} {
		if got := owners.Own(tc.instance); got != tc.want {
			t.Errorf("%s: it has an owner: %t, want %t", name, got, tc.want)
		}
	}
}
