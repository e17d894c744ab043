package machine

import (
	"testing"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/machine-iac/machine-iac-operator/test/builder"
)

func TestWorthALook(t *testing.T) {
	withCondition := func(kind machinev1beta1.ConditionType) modifier {
		return func(m *machinev1beta1.Machine) {
			setCondition(m, condition(kind, corev1.ConditionFalse, "Reason", "text"), now)
		}
	}
	tcs := map[string]struct {
		change modifier
		want   bool
	}{
		"a resync":                    {func(m *machinev1beta1.Machine) { m.ResourceVersion = "1" }, true},
		"whether the instance exists": {withCondition("InstanceExists"), false},
		"whether it is up to date":    {withCondition("InstanceUpToDate"), false},
		"whether a hook holds it":     {withCondition("Terminable"), false},
		"who is in charge":            {withCondition("Paused"), false},
		"that it is drained":          {withCondition("Drained"), true},
		"the condition of another":    {withCondition("Other"), true},
		"who may act on it":           {func(m *machinev1beta1.Machine) { m.Status.AuthoritativeAPI = "Migrating" }, true},
		"the time of a write":         {func(m *machinev1beta1.Machine) { m.Status.LastUpdated = ptr.To(metav1.NewTime(now)) }, false},
		"who wrote":                   {func(m *machinev1beta1.Machine) { m.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "x"}} }, false},
		"a phase":                     {builder.WithPhase("Running"), true},
		"a Node":                      {builder.WithNodeRef(builder.Node()), true},
		"addresses":                   {builder.WithInternalIPs("10.0.0.1"), true},
		"a spec":                      {builder.WithProviderID("fake://1"), true},
		"an annotation":               {builder.WithAnnotations(map[string]string{"touch": "1"}), true},
		"a finalizer":                 {builder.WithFinalizer(), true},
		"a deletion":                  {builder.DeletedAt(now), true},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			before := builder.Machine(func(m *machinev1beta1.Machine) { m.ResourceVersion = "1" })
			after := before.DeepCopy()
			after.ResourceVersion = "2"
			tc.change(after)
			unchanged := after.DeepCopy()
			if got := machineChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
			if len(after.Status.Conditions) != len(unchanged.Status.Conditions) {
				t.Error("the object of the cache was changed")
			}
		})
	}
}
