package operands

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Placement says where the controllers' Pods run. The zero value leaves that to the scheduler.
type Placement struct {
	NodeSelector map[string]string
	Tolerations  []corev1.Toleration
	// Annotations are those of the Pods, which OpenShift's admission reads.
	Annotations map[string]string
}

func (p Placement) set(pod *corev1.PodTemplateSpec) {
	pod.Spec.NodeSelector, pod.Spec.Tolerations = p.NodeSelector, p.Tolerations
	for name, value := range p.Annotations {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, name, value)
	}
}
