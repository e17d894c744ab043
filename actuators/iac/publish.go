package iac

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
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
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

// report is what a verb says on a Machine: its provider status is read once and written once.
type report struct {
	machine *machinev1beta1.Machine
	status  v1alpha1.TerraformMachineProviderStatus
	before  string
}

// newReport reads the provider status. One that cannot be read is replaced: it is output.
func newReport(machine *machinev1beta1.Machine) *report {
	status := readProviderStatus(machine)
	return &report{machine: machine, status: status, before: encoded(status)}
}

// write puts the provider status into the Machine, in memory, where it has changed.
func (r *report) write() {
	r.status.TypeMeta = metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.TerraformMachineProviderStatusKind}
	if raw := encoded(r.status); raw != r.before {
		r.machine.Status.ProviderStatus, r.before = &runtime.RawExtension{Raw: []byte(raw)}, raw
	}
}

// publish writes what the state says of the instance into the Machine, in memory.
func (a *Actuator) publish(r *report, f *lifecycle.Facts) error {
	machine := r.machine
	o, err := readOutputs(f.State)
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
	r.status.InstanceID, r.status.InstanceState = o.InstanceID, o.InstanceState
	r.status.Module, r.status.Run, r.status.SecondLookTime = f.Record.Module, nil, nil
	if f.Record.SecondLook != nil {
		r.status.SecondLookTime = seconds(*f.Record.SecondLook)
	}
	meta.SetStatusCondition(&r.status.Conditions, metav1.Condition{
		Type: string(machinev1beta1.MachineCreation), Status: metav1.ConditionTrue,
		Reason: machinev1beta1.MachineCreationSucceededConditionReason, Message: "Machine successfully created",
		LastTransitionTime: metav1.NewTime(a.clock.Now()),
	})
	a.publishCheck(&r.status, f)
	return nil
}

// failedCreation says why there is no instance.
func (r *report) failedCreation(why string, now time.Time) {
	meta.SetStatusCondition(&r.status.Conditions, metav1.Condition{
		Type: string(machinev1beta1.MachineCreation), Status: metav1.ConditionFalse,
		Reason: machinev1beta1.MachineCreationFailedConditionReason, Message: why,
		LastTransitionTime: metav1.NewTime(now),
	})
}

// publishCheck writes what the last drift check found into a provider status.
func (a *Actuator) publishCheck(status *v1alpha1.TerraformMachineProviderStatus, f *lifecycle.Facts) {
	if f.Record.Check != nil {
		at := metav1.NewTime(f.Record.Check.At.Truncate(time.Second))
		status.LastDriftCheckTime = &at
	}
	if told := driftCondition(f, a.interval, a.clock.Now()); told != nil {
		meta.SetStatusCondition(&status.Conditions, *told)
	}
}

// module says how the Machine's module stands to the current one.
func (r *report) module(condition *metav1.Condition, now time.Time) {
	if condition == nil {
		return
	}
	condition.LastTransitionTime = metav1.NewTime(now)
	meta.SetStatusCondition(&r.status.Conditions, *condition)
}

func readProviderStatus(machine *machinev1beta1.Machine) v1alpha1.TerraformMachineProviderStatus {
	var status v1alpha1.TerraformMachineProviderStatus
	if machine.Status.ProviderStatus == nil || json.Unmarshal(machine.Status.ProviderStatus.Raw, &status) != nil {
		return v1alpha1.TerraformMachineProviderStatus{}
	}
	return status
}

func encoded(status v1alpha1.TerraformMachineProviderStatus) string {
	raw, err := json.Marshal(status)
	if err != nil {
		return "{}" // which its types rule out
	}
	return string(raw)
}
