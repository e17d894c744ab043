package operands

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Placement says where the controllers' Pods run. The zero value leaves that to the scheduler.
type Placement struct {
	NodeSelector map[string]string
	Tolerations  []corev1.Toleration
	// Affinity and PriorityClassName replace the manifest's if they are set.
	Affinity          *corev1.Affinity
	PriorityClassName string
	// Annotations are those of the Pods, which OpenShift's admission reads.
	Annotations map[string]string
}

func (p Placement) set(pod *corev1.PodTemplateSpec) {
	pod.Spec.NodeSelector, pod.Spec.Tolerations = p.NodeSelector, p.Tolerations
	pod.Spec.Affinity = cmp.Or(p.Affinity, pod.Spec.Affinity)
	pod.Spec.PriorityClassName = cmp.Or(p.PriorityClassName, pod.Spec.PriorityClassName)
	for name, value := range p.Annotations {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, name, value)
	}
}
