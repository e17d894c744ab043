package builder

import (
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func Cordoned(n *corev1.Node) { n.Spec.Unschedulable = true }

// WithNodeRole adds a role's label, such as "control-plane".
func WithNodeRole(role string) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Labels = merged(n.Labels, map[string]string{"node-role.kubernetes.io/" + role: ""})
	}
}

// WithPreDrainHook adds a lifecycle hook that blocks the Machine's drain.
func WithPreDrainHook(name, owner string) func(*machinev1beta1.Machine) {
	return func(m *machinev1beta1.Machine) {
		m.Spec.LifecycleHooks.PreDrain = append(m.Spec.LifecycleHooks.PreDrain,
			machinev1beta1.LifecycleHook{Name: name, Owner: owner})
	}
}

// Pod builds a running Pod without a controller.
func Pod(mods ...func(*corev1.Pod)) *corev1.Pod {
	name := Name("pod")
	return apply(&corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: DefaultNamespace, Name: name, Labels: map[string]string{"app": name}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/main:1"}}},
		Status: corev1.PodStatus{
			Phase:      corev1.PodRunning,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	}, mods)
}

func OnNode(node *corev1.Node) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.NodeName = node.Name }
}

// OfDaemonSet makes the Pod owned by an existing DaemonSet.
func OfDaemonSet(set *appsv1.DaemonSet) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{
			*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("DaemonSet")),
		}
	}
}

func DaemonSet(mods ...func(*appsv1.DaemonSet)) *appsv1.DaemonSet {
	name := Name("daemon")
	labels := map[string]string{"app": name}
	return apply(&appsv1.DaemonSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DaemonSet"},
		ObjectMeta: metav1.ObjectMeta{Namespace: DefaultNamespace, Name: name},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: Pod().Spec},
		},
	}, mods)
}

// PodDisruptionBudget builds a budget for one Pod with the label app. Tests run no disruption controller, so it sets
// status.disruptionsAllowed.
func PodDisruptionBudget(app string, allowed int32,
	mods ...func(*policyv1.PodDisruptionBudget)) *policyv1.PodDisruptionBudget {
	healthy := intstr.FromInt32(1)
	return apply(&policyv1.PodDisruptionBudget{
		TypeMeta:   metav1.TypeMeta{APIVersion: "policy/v1", Kind: "PodDisruptionBudget"},
		ObjectMeta: metav1.ObjectMeta{Namespace: DefaultNamespace, Name: Name("budget")},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: &healthy,
			Selector:     &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
		},
		Status: policyv1.PodDisruptionBudgetStatus{
			ObservedGeneration: 1, DisruptionsAllowed: allowed, CurrentHealthy: 1, DesiredHealthy: 1, ExpectedPods: 1,
		},
	}, mods)
}
