package builder

import (
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// MachineHealthCheck builds a MachineHealthCheck of all Machines in its namespace. It remediates those whose Node is
// not Ready for five minutes.
func MachineHealthCheck(mods ...func(*machinev1beta1.MachineHealthCheck)) *machinev1beta1.MachineHealthCheck {
	mostUnhealthy := intstr.FromString("100%")
	return apply(&machinev1beta1.MachineHealthCheck{
		TypeMeta:   metav1.TypeMeta{APIVersion: machinev1beta1.GroupVersion.String(), Kind: "MachineHealthCheck"},
		ObjectMeta: metav1.ObjectMeta{Namespace: DefaultNamespace, Name: Name("check")},
		Spec: machinev1beta1.MachineHealthCheckSpec{
			UnhealthyConditions: []machinev1beta1.UnhealthyCondition{
				{Type: corev1.NodeReady, Status: corev1.ConditionFalse,
					Timeout: metav1.Duration{Duration: 5 * time.Minute}},
				{Type: corev1.NodeReady, Status: corev1.ConditionUnknown,
					Timeout: metav1.Duration{Duration: 5 * time.Minute}},
			},
			MaxUnhealthy:       &mostUnhealthy,
			NodeStartupTimeout: &metav1.Duration{Duration: 10 * time.Minute},
		},
	}, mods)
}

func WithSelector(labels map[string]string) func(*machinev1beta1.MachineHealthCheck) {
	return func(c *machinev1beta1.MachineHealthCheck) {
		c.Spec.Selector = metav1.LabelSelector{MatchLabels: labels}
	}
}

// WithMaxUnhealthy sets spec.maxUnhealthy as if parsed from a manifest.
func WithMaxUnhealthy(value string) func(*machinev1beta1.MachineHealthCheck) {
	return func(c *machinev1beta1.MachineHealthCheck) {
		parsed := intstr.Parse(value)
		c.Spec.MaxUnhealthy = &parsed
	}
}

func WithStartupTimeout(timeout time.Duration) func(*machinev1beta1.MachineHealthCheck) {
	return func(c *machinev1beta1.MachineHealthCheck) {
		c.Spec.NodeStartupTimeout = &metav1.Duration{Duration: timeout}
	}
}

// WithConditionTimeouts sets the timeout of each unhealthy condition.
func WithConditionTimeouts(timeout time.Duration) func(*machinev1beta1.MachineHealthCheck) {
	return func(c *machinev1beta1.MachineHealthCheck) {
		for i := range c.Spec.UnhealthyConditions {
			c.Spec.UnhealthyConditions[i].Timeout = metav1.Duration{Duration: timeout}
		}
	}
}

func WithCheckAnnotations(annotations map[string]string) func(*machinev1beta1.MachineHealthCheck) {
	return func(c *machinev1beta1.MachineHealthCheck) { c.Annotations = merged(c.Annotations, annotations) }
}

func WithRemediationTemplate(apiVersion, kind, name string) func(*machinev1beta1.MachineHealthCheck) {
	return func(c *machinev1beta1.MachineHealthCheck) {
		c.Spec.RemediationTemplate = &corev1.ObjectReference{APIVersion: apiVersion, Kind: kind, Name: name}
	}
}

func LastUpdatedAt(at time.Time) func(*machinev1beta1.Machine) {
	return func(m *machinev1beta1.Machine) {
		updated := metav1.NewTime(at)
		m.Status.LastUpdated = &updated
	}
}
