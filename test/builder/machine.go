package builder

import (
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// MachineFinalizer is the Machine controller's finalizer.
const MachineFinalizer = "machine.machine.openshift.io"

// Machine builds a worker Machine that is not provisioned.
func Machine(mods ...func(*machinev1beta1.Machine)) *machinev1beta1.Machine {
	return apply(&machinev1beta1.Machine{
		TypeMeta: metav1.TypeMeta{APIVersion: machinev1beta1.GroupVersion.String(), Kind: "Machine"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: DefaultNamespace,
			Name:      Name("machine"),
			Labels:    map[string]string{ClusterLabel: ClusterID, RoleLabel: "worker", TypeLabel: "worker"},
		},
		Spec: machinev1beta1.MachineSpec{ProviderSpec: machinev1beta1.ProviderSpec{Value: ProviderSpec(nil)}},
	}, mods)
}

func WithLabels(labels map[string]string) func(*machinev1beta1.Machine) {
	return func(m *machinev1beta1.Machine) { m.Labels = merged(m.Labels, labels) }
}

func WithAnnotations(annotations map[string]string) func(*machinev1beta1.Machine) {
	return func(m *machinev1beta1.Machine) { m.Annotations = merged(m.Annotations, annotations) }
}

func WithProviderID(id string) func(*machinev1beta1.Machine) {
	return func(m *machinev1beta1.Machine) { m.Spec.ProviderID = &id }
}

func WithInternalIPs(ips ...string) func(*machinev1beta1.Machine) {
	return func(m *machinev1beta1.Machine) { m.Status.Addresses = internalIPs(ips) }
}

func WithNodeRef(node *corev1.Node) func(*machinev1beta1.Machine) {
	return func(m *machinev1beta1.Machine) {
		m.Status.NodeRef = &corev1.ObjectReference{Kind: "Node", Name: node.Name, UID: node.UID}
	}
}

func WithPhase(phase string) func(*machinev1beta1.Machine) {
	return func(m *machinev1beta1.Machine) { m.Status.Phase = &phase }
}

// WithFinalizer adds the Machine controller's finalizer, so that a deleted Machine stays.
func WithFinalizer() func(*machinev1beta1.Machine) {
	return func(m *machinev1beta1.Machine) { m.Finalizers = append(m.Finalizers, MachineFinalizer) }
}

// WithOwner makes set the Machine's controller and adds the labels of its template.
func WithOwner(set *machinev1beta1.MachineSet) func(*machinev1beta1.Machine) {
	return func(m *machinev1beta1.Machine) {
		m.Namespace = set.Namespace
		m.Labels = merged(m.Labels, set.Spec.Template.Labels)
		m.OwnerReferences = []metav1.OwnerReference{
			*metav1.NewControllerRef(set, machinev1beta1.GroupVersion.WithKind("MachineSet")),
		}
	}
}

// Stored sets what only the API server sets: UID and creation timestamp.
func Stored(created time.Time) func(*machinev1beta1.Machine) {
	return func(m *machinev1beta1.Machine) {
		m.UID = types.UID(Name("uid"))
		m.CreationTimestamp = metav1.NewTime(created)
	}
}

// DeletedAt sets the deletion timestamp, and a finalizer: without one the API server would have removed the Machine.
func DeletedAt(deleted time.Time) func(*machinev1beta1.Machine) {
	return func(m *machinev1beta1.Machine) {
		at := metav1.NewTime(deleted)
		m.DeletionTimestamp = &at
		if len(m.Finalizers) == 0 {
			m.Finalizers = []string{MachineFinalizer}
		}
	}
}

func merged(into, from map[string]string) map[string]string {
	out := make(map[string]string, len(into)+len(from))
	for key, value := range into {
		out[key] = value
	}
	for key, value := range from {
		out[key] = value
	}
	return out
}

func internalIPs(ips []string) []corev1.NodeAddress {
	addresses := make([]corev1.NodeAddress, 0, len(ips))
	for _, ip := range ips {
		addresses = append(addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: ip})
	}
	return addresses
}
