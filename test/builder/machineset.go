package builder

import (
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MachineSet builds a MachineSet with one worker. It selects its own name in MachineSetLabel, which its template sets.
func MachineSet(mods ...func(*machinev1beta1.MachineSet)) *machinev1beta1.MachineSet {
	name := Name("workers")
	replicas := int32(1)
	return apply(&machinev1beta1.MachineSet{
		TypeMeta: metav1.TypeMeta{APIVersion: machinev1beta1.GroupVersion.String(), Kind: "MachineSet"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: DefaultNamespace,
			Name:      name,
			Labels:    map[string]string{ClusterLabel: ClusterID},
		},
		Spec: machinev1beta1.MachineSetSpec{
			Replicas: &replicas,
			Selector: metav1.LabelSelector{
				MatchLabels: map[string]string{ClusterLabel: ClusterID, MachineSetLabel: name},
			},
			Template: machinev1beta1.MachineTemplateSpec{
				ObjectMeta: machinev1beta1.ObjectMeta{Labels: map[string]string{
					ClusterLabel: ClusterID, RoleLabel: "worker", TypeLabel: "worker", MachineSetLabel: name,
				}},
				Spec: machinev1beta1.MachineSpec{ProviderSpec: machinev1beta1.ProviderSpec{Value: ProviderSpec(nil)}},
			},
		},
	}, mods)
}

func WithReplicas(replicas int32) func(*machinev1beta1.MachineSet) {
	return func(s *machinev1beta1.MachineSet) { s.Spec.Replicas = &replicas }
}

func WithDeletePolicy(policy machinev1beta1.MachineSetDeletePolicy) func(*machinev1beta1.MachineSet) {
	return func(s *machinev1beta1.MachineSet) { s.Spec.DeletePolicy = string(policy) }
}

func WithMinReadySeconds(seconds int32) func(*machinev1beta1.MachineSet) {
	return func(s *machinev1beta1.MachineSet) { s.Spec.MinReadySeconds = seconds }
}

// SelectingAs copies other's selector and template labels, so that both select the same Machines.
func SelectingAs(other *machinev1beta1.MachineSet) func(*machinev1beta1.MachineSet) {
	return func(s *machinev1beta1.MachineSet) {
		s.Spec.Selector = *other.Spec.Selector.DeepCopy()
		s.Spec.Template.Labels = merged(nil, other.Spec.Template.Labels)
	}
}
