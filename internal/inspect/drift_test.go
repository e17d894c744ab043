package inspect

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/test/builder"
	"github.com/machine-iac/machine-iac-operator/test/golden"
	"github.com/machine-iac/machine-iac-operator/test/printing"
)

// withDrift is a cluster with a Machine for each result.
func withDrift() *Facts {
	facts := everything()
	with := func(name string, status metav1.ConditionStatus, reason, message string) machinev1beta1.Machine {
		return *builder.Machine(named(name, time.Hour), withProviderStatus(func(s *v1alpha1.TerraformMachineProviderStatus) {
			made(s)
			s.Conditions[1] = condition("Drifted", status, reason, message)
		}))
	}
	facts.Machines = append(facts.Machines,
		with("ignored", metav1.ConditionUnknown, "Ignored", "drift is not checked: the drift policy is Ignore"),
		with("lost", metav1.ConditionTrue, "InstanceMissing", "instance vsphere_virtual_machine.this is gone: it was removed outside this operator"),
	)
	return facts
}

func TestDrift(t *testing.T) {
	list := Drift(withDrift(), false)
	for format, extension := range extensions {
		t.Run(format, func(t *testing.T) { golden.Check(t, "testdata/drift."+extension, printing.As(t, format, list)) })
	}
	t.Run("that there is", func(t *testing.T) {
		var got []string
		for _, found := range Drift(withDrift(), true).Items {
			got = append(got, string(found.Result)+" "+found.Machine)
		}
		if diff := cmp.Diff([]string{"Missing lost", "Changed workers-b"}, got); diff != "" {
			t.Errorf("drift (-want +got):\n%s", diff)
		}
	})
}
