package lifecycle

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
)

// MachineForOrphan returns a Machine that adopts an instance which belongs to nobody. It has the providerSpec and the cluster of a Machine that the
// instance was listed with, and no other of its labels, so that no MachineSet counts it. It has the finalizer already: deleted at once, it is
// adopted and destroyed rather than forgotten.
func MachineForOrphan(name, providerID string, like *machinev1beta1.Machine, asked Adoption, now time.Time) *machinev1beta1.Machine {
	machine := &machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{
		Namespace: like.Namespace, Name: name, Finalizers: []string{machinev1beta1.MachineFinalizer},
		Labels: map[string]string{machinev1beta1.MachineClusterIDLabel: like.Labels[machinev1beta1.MachineClusterIDLabel]},
	}}
	like.Spec.ProviderSpec.DeepCopyInto(&machine.Spec.ProviderSpec)
	return askForAdoption(machine, providerID, asked, now)
}

// MachineOfSet returns a Machine as a MachineSet makes it, which adopts an instance that belongs to nobody; with AdoptionPlan and without a provider
// ID, nothing is created for it and nothing is looked for.
func MachineOfSet(name, providerID string, set *machinev1beta1.MachineSet, asked Adoption, now time.Time) *machinev1beta1.Machine {
	template := set.Spec.Template.DeepCopy()
	return askForAdoption(&machinev1beta1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: set.Namespace, Name: name, Labels: template.Labels, Annotations: template.Annotations, Finalizers: []string{machinev1beta1.MachineFinalizer},
		},
		Spec: template.Spec,
	}, providerID, asked, now)
}

func askForAdoption(machine *machinev1beta1.Machine, providerID string, asked Adoption, now time.Time) *machinev1beta1.Machine {
	if providerID != "" {
		machine.Spec.ProviderID = ptr.To(providerID)
	}
	metav1.SetMetaDataAnnotation(&machine.ObjectMeta, AdoptionAnnotation, string(asked))
	metav1.SetMetaDataAnnotation(&machine.ObjectMeta, AdoptionRequestedAnnotation, now.UTC().Format(time.RFC3339))
	return machine
}

// OrphanMachineNames returns what a Machine may be called that adopts an instance to destroy it: its name, which modules take for a proof, and
// another where that is taken, or is no name of a Machine.
func OrphanMachineNames(name, providerID string) []string {
	sum := sha256.Sum256([]byte(providerID))
	other := "orphan-" + hex.EncodeToString(sum[:6])
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		return []string{other}
	}
	return []string{name, other}
}
