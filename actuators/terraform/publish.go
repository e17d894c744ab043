package terraform

import (
	"encoding/json"
	"fmt"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// Labels and annotations of the Machine API that tell about the instance.
const (
	labelInstanceType       = "machine.openshift.io/instance-type"
	labelRegion             = "machine.openshift.io/region"
	labelZone               = "machine.openshift.io/zone"
	annotationInstanceState = "machine.openshift.io/instance-state"
)

// drifted is the condition in the provider status that tells what a drift check found.
const drifted = "Drifted"

// outputs are the outputs of the module contract.
type outputs struct {
	ProviderID    string
	InstanceID    string
	InstanceState string
	InstanceType  string
	Region        string
	Zone          string
	Addresses     []corev1.NodeAddress
}

// readOutputs reads the outputs out of a state. One that is null or missing stays empty.
func readOutputs(s *state.State) (outputs, error) {
	var o outputs
	for name, field := range map[string]any{
		"provider_id":    &o.ProviderID,
		"instance_id":    &o.InstanceID,
		"instance_state": &o.InstanceState,
		"instance_type":  &o.InstanceType,
		"region":         &o.Region,
		"zone":           &o.Zone,
		"addresses":      &o.Addresses,
	} {
		output, ok := s.Outputs[name]
		if !ok || len(output.Value) == 0 {
			continue
		}
		if err := json.Unmarshal(output.Value, field); err != nil {
			return outputs{}, fmt.Errorf("reading the module's output %s: it is not of the type that the module contract wants: %w", name, err)
		}
	}
	return o, nil
}

// publish writes what the state tells of the instance into the Machine, in memory.
func publish(machine *machinev1beta1.Machine, f *facts, created time.Time) error {
	o, err := readOutputs(f.state)
	if err != nil {
		return err
	}
	if o.ProviderID != "" {
		machine.Spec.ProviderID = &o.ProviderID
	}
	if len(o.Addresses) > 0 {
		machine.Status.Addresses = o.Addresses
	}
	for label, value := range map[string]string{labelInstanceType: o.InstanceType, labelRegion: o.Region, labelZone: o.Zone} {
		if value != "" {
			metav1.SetMetaDataLabel(&machine.ObjectMeta, label, value)
		}
	}
	if o.InstanceState != "" {
		metav1.SetMetaDataAnnotation(&machine.ObjectMeta, annotationInstanceState, o.InstanceState)
	}
	setProviderStatus(machine, func(status *v1alpha1.TerraformMachineProviderStatus) {
		status.InstanceID = o.InstanceID
		status.InstanceState = o.InstanceState
		status.Module = f.record.Module
		status.Run = nil
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: string(machinev1beta1.MachineCreation), Status: metav1.ConditionTrue,
			Reason: machinev1beta1.MachineCreationSucceededConditionReason, Message: "Machine successfully created",
			LastTransitionTime: metav1.NewTime(created),
		})
		publishCheck(status, f.record.Check)
	})
	return nil
}

// publishFailedCreation writes why there is no instance into the Machine, in memory.
func publishFailedCreation(machine *machinev1beta1.Machine, why string, now time.Time) {
	setProviderStatus(machine, func(status *v1alpha1.TerraformMachineProviderStatus) {
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: string(machinev1beta1.MachineCreation), Status: metav1.ConditionFalse,
			Reason: machinev1beta1.MachineCreationFailedConditionReason, Message: why,
			LastTransitionTime: metav1.NewTime(now),
		})
	})
}

func publishCheck(status *v1alpha1.TerraformMachineProviderStatus, c *check) {
	if c == nil {
		return
	}
	at := metav1.NewTime(c.At.Truncate(time.Second))
	status.LastDriftCheckTime = &at
	found := metav1.Condition{Type: drifted, Status: metav1.ConditionFalse, Reason: "AsApplied", LastTransitionTime: at}
	if c.Verdict != verdictNone {
		found.Status, found.Reason, found.Message = metav1.ConditionTrue, "Instance"+string(c.Verdict), c.Summary
	}
	meta.SetStatusCondition(&status.Conditions, found)
}

// setProviderStatus changes the provider status and keeps what is there. A status that cannot be read is replaced: it is output.
func setProviderStatus(machine *machinev1beta1.Machine, change func(*v1alpha1.TerraformMachineProviderStatus)) {
	status := readProviderStatus(machine)
	before := encode(status)
	change(&status)
	status.TypeMeta = metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.TerraformMachineProviderStatusKind}
	raw := encode(status)
	if raw != before {
		machine.Status.ProviderStatus = &runtime.RawExtension{Raw: []byte(raw)}
	}
}

func readProviderStatus(machine *machinev1beta1.Machine) v1alpha1.TerraformMachineProviderStatus {
	var status v1alpha1.TerraformMachineProviderStatus
	if machine.Status.ProviderStatus == nil || json.Unmarshal(machine.Status.ProviderStatus.Raw, &status) != nil {
		return v1alpha1.TerraformMachineProviderStatus{}
	}
	return status
}
