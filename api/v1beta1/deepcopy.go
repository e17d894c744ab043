package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// DeepCopyInto copies d into out.
func (d *MachineDeployment) DeepCopyInto(out *MachineDeployment) {
	*out = *d
	d.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	d.Spec.DeepCopyInto(&out.Spec)
	out.Status.CollisionCount = copied(d.Status.CollisionCount)
	if d.Status.Conditions != nil {
		out.Status.Conditions = make([]metav1.Condition, len(d.Status.Conditions))
		copy(out.Status.Conditions, d.Status.Conditions)
	}
}

// DeepCopy returns a copy of d.
func (d *MachineDeployment) DeepCopy() *MachineDeployment {
	if d == nil {
		return nil
	}
	out := &MachineDeployment{}
	d.DeepCopyInto(out)
	return out
}

// DeepCopyObject implements runtime.Object.
func (d *MachineDeployment) DeepCopyObject() runtime.Object {
	return d.DeepCopy()
}

// DeepCopyInto copies s into out.
func (s *MachineDeploymentSpec) DeepCopyInto(out *MachineDeploymentSpec) {
	*out = *s
	s.Selector.DeepCopyInto(&out.Selector)
	s.Template.DeepCopyInto(&out.Template)
	out.Replicas, out.RevisionHistoryLimit = copied(s.Replicas), copied(s.RevisionHistoryLimit)
	out.ProgressDeadlineSeconds, out.RestartedAt = copied(s.ProgressDeadlineSeconds), s.RestartedAt.DeepCopy()
	if bounds := s.Strategy.RollingUpdate; bounds != nil {
		out.Strategy.RollingUpdate = &RollingUpdateBounds{
			MaxSurge: copied(bounds.MaxSurge), MaxUnavailable: copied(bounds.MaxUnavailable), DeletePolicy: bounds.DeletePolicy,
		}
	}
}

// DeepCopyInto copies l into out.
func (l *MachineDeploymentList) DeepCopyInto(out *MachineDeploymentList) {
	*out = *l
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = nil
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopy())
	}
}

// DeepCopyObject implements runtime.Object.
func (l *MachineDeploymentList) DeepCopyObject() runtime.Object {
	out := &MachineDeploymentList{}
	l.DeepCopyInto(out)
	return out
}

func copied[T any](value *T) *T {
	if value == nil {
		return nil
	}
	out := *value
	return &out
}

// DeepCopy returns a copy of s.
func (s *MachineDeploymentSpec) DeepCopy() *MachineDeploymentSpec {
	out := &MachineDeploymentSpec{}
	s.DeepCopyInto(out)
	return out
}
