package machineset

import (
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
	"github.com/machine-iac/machine-iac-operator/test/builder"
)

func TestReplicaChanged(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*machinev1beta1.Machine)
		want   bool
	}{
		"a condition": {func(m *machinev1beta1.Machine) {
			m.Status.Conditions = []machinev1beta1.Condition{{Type: "InstanceExists"}}
		}, false},
		"the phase":          {func(m *machinev1beta1.Machine) { m.Status.Phase = ptr.To("Provisioned") }, false},
		"addresses":          {func(m *machinev1beta1.Machine) { m.Status.Addresses = []corev1.NodeAddress{{Address: "10.0.0.1"}} }, false},
		"another annotation": {func(m *machinev1beta1.Machine) { m.Annotations = map[string]string{"a": "b"} }, false},
		"finalizers":         {func(m *machinev1beta1.Machine) { m.Finalizers = []string{machinev1beta1.MachineFinalizer} }, false},
		"the Node":           {func(m *machinev1beta1.Machine) { m.Status.NodeRef = &corev1.ObjectReference{Name: "n"} }, true},
		"labels":             {func(m *machinev1beta1.Machine) { m.Labels = map[string]string{"a": "b"} }, true},
		"owners":             {func(m *machinev1beta1.Machine) { m.OwnerReferences = []metav1.OwnerReference{{Name: "set"}} }, true},
		"chosen": {func(m *machinev1beta1.Machine) {
			m.Annotations = map[string]string{machineapi.DeleteAnnotation: "true"}
		}, true},
		"the providerSpec": {func(m *machinev1beta1.Machine) {
			m.Spec.ProviderSpec.Value = builder.ProviderSpec(map[string]any{"size": "large"})
		}, true},
		"an error":  {func(m *machinev1beta1.Machine) { m.Status.ErrorMessage = ptr.To("no quota") }, true},
		"deleted":   {func(m *machinev1beta1.Machine) { m.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }, true},
		"made anew": {func(m *machinev1beta1.Machine) { m.UID = "other" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			before := &machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: "1"}}
			after := before.DeepCopy()
			after.ResourceVersion = "2"
			tc.change(after)
			if got := replicaChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}
