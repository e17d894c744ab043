package builder

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
)

// Node builds a Ready Node with a unique providerID and InternalIP.
func Node(mods ...func(*corev1.Node)) *corev1.Node {
	name := Name("node")
	ip := fmt.Sprintf("10.%d.%d.%d", rand.Intn(256), rand.Intn(256), rand.IntnRange(1, 255))
	return apply(&corev1.Node{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kubernetes.io/hostname": name}},
		Spec:       corev1.NodeSpec{ProviderID: "test:///" + name},
		Status: corev1.NodeStatus{
			Addresses: internalIPs([]string{ip}),
			Conditions: []corev1.NodeCondition{
				{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady"},
			},
		},
	}, mods)
}

// WithReady sets the Node's Ready condition and its last transition.
func WithReady(status corev1.ConditionStatus, since time.Time) func(*corev1.Node) {
	return func(n *corev1.Node) {
		ready := corev1.NodeCondition{Type: corev1.NodeReady, Status: status, LastTransitionTime: metav1.NewTime(since)}
		for i := range n.Status.Conditions {
			if n.Status.Conditions[i].Type == corev1.NodeReady {
				n.Status.Conditions[i] = ready
				return
			}
		}
		n.Status.Conditions = append(n.Status.Conditions, ready)
	}
}

// WithNodeProviderID sets spec.providerID; empty for a Node that no cloud provider has initialized.
func WithNodeProviderID(id string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Spec.ProviderID = id }
}

func WithNodeInternalIPs(ips ...string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Status.Addresses = internalIPs(ips) }
}

func WithTaints(taints ...corev1.Taint) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Spec.Taints = taints }
}

func Secret(mods ...func(*corev1.Secret)) *corev1.Secret {
	return apply(&corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: DefaultNamespace, Name: Name("secret")},
		Type:       corev1.SecretTypeOpaque,
		Data:       map[string][]byte{"userData": []byte("#cloud-config\n")},
	}, mods)
}
