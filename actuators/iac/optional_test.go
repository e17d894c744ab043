package iac

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-iac/machine-iac-operator/actuators/reporting"
	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/modules"
	"github.com/machine-iac/machine-iac-operator/stacks"
)

// interruptible is the kubemark module or stack with the outputs that are optional.
func interruptible(t *testing.T, b *bench) *module.Module {
	if b.uses == v1alpha1.EnginePulumi {
		return changed(t, stacks.FS, "", "  zone: ${provider_spec.zone}\n",
			"  zone: ${provider_spec.zone}\n  interruptible: true\n  outlives: ['volume vol-1 (deleteOnTermination: false)', '']\n")
	}
	return changed(t, modules.FS, `
output "interruptible" {
  description = "Whether it is a Spot instance."
  value       = true
  depends_on  = [kubectl_manifest.this]
}

output "outlives" {
  description = "Disks that stay."
  value       = ["volume vol-1 (deleteOnTermination: false)", ""]
  depends_on  = [kubectl_manifest.this]
}
`)
}

func TestOptionalOutputsArePublished(t *testing.T) {
	eachEngine(t, optionalOutputsArePublished)
}

func optionalOutputsArePublished(t *testing.T, b *bench) {
	const stays = "volume vol-1 (deleteOnTermination: false)"
	b.upgrade(interruptible(t, b), "owner-1")
	machine := b.machine()
	b.bring(machine)
	for where, labels := range map[string]map[string]string{"metadata": machine.Labels, "spec.metadata": machine.Spec.Labels} {
		if value, there := labels[labelInterruptible]; !there || value != "" {
			t.Errorf("%s has the labels %v, want %s", where, labels, labelInterruptible)
		}
	}
	if got := conditionOf(machine, reporting.OutlivesMachine); got.Status != metav1.ConditionTrue || !strings.HasSuffix(got.Message, ": "+stays) {
		t.Errorf("the condition is %+v, want it to name %s", got, stays)
	}
	starts := b.starts()
	if err := b.drive(b.Update, machine); err != nil || b.starts() != starts {
		t.Errorf("another Update returns %v after %d more starts of the engine; want none: the labels are no input", err, b.starts()-starts)
	}
	b.events()
	if err := b.drive(b.Delete, machine); err != nil {
		t.Fatal(err)
	}
	want := "Normal OutlivesMachine Deleted the instance; kept as the providerSpec requests: " + stays
	if sent := b.sent("OutlivesMachine"); len(sent) != 1 || sent[0] != want {
		t.Errorf("sent %q, want %q", sent, want)
	}
}

func TestAMachineWithoutOptionalOutputsHasNoneOfTheirSigns(t *testing.T) {
	b := newBench(t)
	machine := b.machine()
	b.bring(machine)
	if _, there := machine.Labels[labelInterruptible]; there || machine.Spec.Labels != nil {
		t.Errorf("the labels are %v and %v", machine.Labels, machine.Spec.Labels)
	}
	if got := conditionOf(machine, reporting.OutlivesMachine); got.Type != "" {
		t.Errorf("there is a condition %+v", got)
	}
}
