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

// MachineForOrphan returns a Machine that adopts an orphaned instance. It copies the providerSpec
// and cluster of a Machine that the instance was listed with. It copies no other label, so that no
// MachineSet counts it. It has the finalizer from the start: a Machine deleted at once is adopted
// and destroyed rather than forgotten.
func MachineForOrphan(name, providerID string, like *machinev1beta1.Machine, asked Adoption,
	now time.Time) *machinev1beta1.Machine {
	machine := &machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{
		Namespace: like.Namespace, Name: name, Finalizers: []string{machinev1beta1.MachineFinalizer},
		Labels: map[string]string{machinev1beta1.MachineClusterIDLabel: like.Labels[machinev1beta1.MachineClusterIDLabel]},
	}}
	like.Spec.ProviderSpec.DeepCopyInto(&machine.Spec.ProviderSpec)
	return askForAdoption(machine, providerID, asked, now)
}

// MachineOfSet returns a Machine that adopts an orphaned instance, as its MachineSet would create
// it. With AdoptionPlan and without a provider ID, nothing is created or looked up for it.
func MachineOfSet(name, providerID string, set *machinev1beta1.MachineSet, asked Adoption,
	now time.Time) *machinev1beta1.Machine {
	template := set.Spec.Template.DeepCopy()
	return askForAdoption(&machinev1beta1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: set.Namespace, Name: name, Labels: template.Labels, Annotations: template.Annotations,
			Finalizers: []string{machinev1beta1.MachineFinalizer},
		},
		Spec: template.Spec,
	}, providerID, asked, now)
}

func askForAdoption(machine *machinev1beta1.Machine, providerID string, asked Adoption,
	now time.Time) *machinev1beta1.Machine {
	if providerID != "" {
		machine.Spec.ProviderID = ptr.To(providerID)
	}
	metav1.SetMetaDataAnnotation(&machine.ObjectMeta, AdoptionAnnotation, string(asked))
	metav1.SetMetaDataAnnotation(&machine.ObjectMeta, AdoptionRequestedAnnotation, now.UTC().Format(time.RFC3339))
	return machine
}

// OrphanMachineNames returns the candidate names of a Machine that adopts an instance to destroy
// it. The first is the instance's name, which modules accept as proof of ownership. The second is
// for when that name is taken or invalid.
func OrphanMachineNames(name, providerID string) []string {
	sum := sha256.Sum256([]byte(providerID))
	other := "orphan-" + hex.EncodeToString(sum[:6])
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		return []string{other}
	}
	return []string{name, other}
}
