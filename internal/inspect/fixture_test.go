package inspect

import (
	"encoding/json"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/test/builder"
)

// now is when facts of these tests are read.
var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

const (
	moduleRef = "vsphere@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	namespace = "openshift-machine-api"
)

func uidOf(name string) types.UID { return types.UID("uid-of-" + name) }

func named(name string, made time.Duration) func(*machinev1beta1.Machine) {
	return func(m *machinev1beta1.Machine) {
		m.Name, m.UID, m.CreationTimestamp = name, uidOf(name), ago(made)
		delete(m.Labels, builder.MachineSetLabel)
	}
}

// withProviderStatus gives the Machine a status of this operator.
func withProviderStatus(change func(*v1alpha1.TerraformMachineProviderStatus)) func(*machinev1beta1.Machine) {
	status := v1alpha1.TerraformMachineProviderStatus{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.TerraformMachineProviderStatusKind},
	}
	change(&status)
	raw, err := json.Marshal(status)
	if err != nil {
		panic(err)
	}
	return func(m *machinev1beta1.Machine) { m.Status.ProviderStatus = &runtime.RawExtension{Raw: raw} }
}

func condition(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: ago(time.Minute)}
}

func made(status *v1alpha1.TerraformMachineProviderStatus) {
	checked := ago(25 * time.Minute)
	status.InstanceID, status.InstanceState, status.Module, status.LastDriftCheckTime = "vm-17", "poweredOn", moduleRef, &checked
	status.Conditions = []metav1.Condition{
		condition("MachineCreation", metav1.ConditionTrue, "MachineCreationSucceeded", "Machine successfully created"),
		condition("Drifted", metav1.ConditionFalse, "AsApplied", ""),
	}
}

// everything is a cluster in which all that can be shown is there.
func everything() *Facts {
	workers := *builder.MachineSet(builder.WithReplicas(3), func(s *machinev1beta1.MachineSet) {
		s.Name, s.UID, s.CreationTimestamp, s.Status.ReadyReplicas = "workers", "uid-of-workers", ago(48*time.Hour), 1
	})
	broken := *builder.MachineSet(builder.WithReplicas(1), func(s *machinev1beta1.MachineSet) {
		s.Name, s.UID, s.CreationTimestamp, s.DeletionTimestamp = "broken", "uid-of-broken", ago(time.Hour), ptr.To(ago(time.Minute))
		s.Status.ErrorReason, s.Status.ErrorMessage = ptr.To(machinev1beta1.InvalidConfigurationMachineSetError), ptr.To("the template has no providerSpec")
	})
	ready := builder.Node(func(n *corev1.Node) { n.Name, n.CreationTimestamp = "ready", ago(47*time.Hour) })
	ready.Status.NodeInfo.KubeletVersion = "v1.37.0"
	cordoned := builder.Node(builder.WithReady(corev1.ConditionUnknown, now), func(n *corev1.Node) {
		n.Name, n.CreationTimestamp, n.Spec.Unschedulable = "cordoned", ago(90*time.Second), true
		n.Status.Conditions[0].Reason, n.Status.Conditions[0].Message = "NodeStatusUnknown", "Kubelet stopped posting node status."
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeDiskPressure, Status: corev1.ConditionTrue, Reason: "KubeletHasDiskPressure"},
			corev1.NodeCondition{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse})
	})
	gone := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "gone"}}
	return &Facts{
		Namespace: namespace, Now: now, Sets: []machinev1beta1.MachineSet{broken, workers},
		Nodes: map[string]*corev1.Node{"ready": ready, "cordoned": cordoned},
		Machines: []machinev1beta1.Machine{
			*builder.Machine(builder.WithOwner(&workers), named("workers-a", 47*time.Hour), builder.WithPhase(machinev1beta1.PhaseRunning), builder.WithNodeRef(ready),
				builder.WithLabels(map[string]string{"machine.openshift.io/instance-type": "4cpu-16GiB", "machine.openshift.io/zone": "east"}), withProviderStatus(made)),
			*builder.Machine(builder.WithOwner(&workers), named("workers-b", 40*time.Hour), builder.WithPhase(machinev1beta1.PhaseRunning), builder.WithNodeRef(cordoned),
				builder.DeletedAt(now.Add(-3*time.Minute)), withProviderStatus(func(s *v1alpha1.TerraformMachineProviderStatus) {
					made(s)
					s.Run = &v1alpha1.RunStatus{Operation: v1alpha1.RunDestroy}
					s.Conditions[1] = condition("Drifted", metav1.ConditionTrue, "InstanceChanged", "the instance has drifted; to repair it, vsphere_virtual_machine.this would change")
				})),
			*builder.Machine(builder.WithOwner(&workers), named("workers-c", 30*time.Second), builder.WithPhase(machinev1beta1.PhaseProvisioning),
				withProviderStatus(func(s *v1alpha1.TerraformMachineProviderStatus) {
					s.Conditions = []metav1.Condition{condition("MachineCreation", metav1.ConditionFalse, "MachineCreationFailed", "no space is left\non the datastore")}
				})),
			*builder.Machine(named("alone", 5*time.Hour), builder.WithPhase(machinev1beta1.PhaseFailed), builder.WithNodeRef(gone), builder.WithProviderID("other://i-1"), func(m *machinev1beta1.Machine) {
				m.Status.ErrorReason, m.Status.ErrorMessage = ptr.To(machinev1beta1.InvalidConfigurationMachineError), ptr.To("spec.providerSpec.value.template: it is empty")
				m.Status.ProviderStatus = &runtime.RawExtension{Raw: []byte(`{"kind":"OtherMachineProviderStatus"}`)}
				m.Status.Conditions = []machinev1beta1.Condition{
					{Type: "InstanceExists", Status: corev1.ConditionFalse, Reason: "InstanceMissing", Message: "Instance not found on provider", LastTransitionTime: ago(time.Minute)},
					{Type: "Drainable", Status: corev1.ConditionTrue},
					{Type: "Paused", Status: corev1.ConditionFalse},
				}
			}),
			*builder.Machine(named("new", 0)),
		},
	}
}
