package conformance

import (
	"strings"
	"testing"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
)

// published checks that a Machine with an instance carries what others read from it.
func published(t *testing.T, machine *machinev1beta1.Machine) {
	t.Helper()
	if machine.Spec.ProviderID == nil || *machine.Spec.ProviderID == "" {
		t.Error("spec.providerID is not set")
	}
	if len(machine.Status.Addresses) == 0 {
		t.Error("status.addresses is empty")
	}
	for _, label := range []string{"instance-type", "region", "zone"} {
		if machine.Labels["machine.openshift.io/"+label] == "" {
			t.Errorf("label machine.openshift.io/%s is not set", label)
		}
	}
	if machine.Annotations["machine.openshift.io/instance-state"] == "" {
		t.Error("annotation machine.openshift.io/instance-state is not set")
	}
}

func contains(text, part string) bool { return part == "" || strings.Contains(text, part) }
