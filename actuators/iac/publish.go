package iac

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/machine-iac/machine-iac-operator/actuators"
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

// report is what a verb says on a Machine: its provider status is read once and written once.
type report struct {
	machine *machinev1beta1.Machine
	status  v1alpha1.TerraformMachineProviderStatus
	before  string
}

// newReport reads the provider status. One that cannot be read is replaced: it is output.
func newReport(machine *machinev1beta1.Machine) *report {
	status := readProviderStatus(machine)
	return &report{machine: machine, status: status, before: encode(status)}
}

// write puts the provider status into the Machine, in memory, where it has changed.
func (r *report) write() {
	r.status.TypeMeta = metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.TerraformMachineProviderStatusKind}
	if raw := encode(r.status); raw != r.before {
		r.machine.Status.ProviderStatus, r.before = &runtime.RawExtension{Raw: []byte(raw)}, raw
	}
}

// publish writes what the state says of the instance into the Machine, in memory.
func (a *Actuator) publish(r *report, f *facts) error {
	machine := r.machine
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
	r.status.InstanceID, r.status.InstanceState = o.InstanceID, o.InstanceState
	r.status.Module, r.status.Run, r.status.SecondLookTime = f.record.Module, nil, nil
	if f.record.Second != nil {
		r.status.SecondLookTime = seconds(*f.record.Second)
	}
	meta.SetStatusCondition(&r.status.Conditions, metav1.Condition{
		Type: string(machinev1beta1.MachineCreation), Status: metav1.ConditionTrue,
		Reason: machinev1beta1.MachineCreationSucceededConditionReason, Message: "Machine successfully created",
		LastTransitionTime: metav1.NewTime(a.clock.Now()),
	})
	a.publishCheck(&r.status, f)
	return nil
}

// madeAt answers when the Machine was first told to have an instance, or otherwise when it was not.
func madeAt(machine *machinev1beta1.Machine, otherwise time.Time) time.Time {
	made := meta.FindStatusCondition(readProviderStatus(machine).Conditions, string(machinev1beta1.MachineCreation))
	if made == nil || made.Status != metav1.ConditionTrue {
		return otherwise
	}
	return made.LastTransitionTime.Time
}

// hasIP reports whether one of the addresses is no name.
func hasIP(addresses []corev1.NodeAddress) bool {
	return slices.ContainsFunc(addresses, func(address corev1.NodeAddress) bool {
		return address.Type == corev1.NodeInternalIP || address.Type == corev1.NodeExternalIP
	})
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
func (a *Actuator) publishCheck(status *v1alpha1.TerraformMachineProviderStatus, f *facts) {
	if f.record.Check != nil {
		at := metav1.NewTime(f.record.Check.At.Truncate(time.Second))
		status.LastDriftCheckTime = &at
	}
	if told := driftCondition(f, a.interval, a.clock.Now()); told != nil {
		meta.SetStatusCondition(&status.Conditions, *told)
	}
}

// moduleCurrent is the condition in the provider status that tells whether the instance was made with the module as it is now.
const moduleCurrent = "ModuleCurrent"

// Reasons of moduleCurrent.
const (
	reasonCurrent       = "AsRecorded"
	reasonUpdateHeld    = "UpdateHeld"
	reasonUpdating      = "Updating"
	reasonUpdateRefused = "UpdateRefused"
	reasonContentLost   = "ContentLost"
	reasonNotServed     = "NotServed"
)

// moduleCondition tells how a Machine's own module stands to the current one; withheld says why it does not get that although it may.
// A Machine that is bound to no module has no such condition.
func moduleCondition(c *choices, withheld *actuators.MachineError) *metav1.Condition {
	if c.bound == "" {
		return nil
	}
	told := &metav1.Condition{Type: moduleCurrent, Status: metav1.ConditionFalse}
	switch {
	case c.current == nil:
		told.Reason, told.Message = reasonNotServed, fmt.Sprintf("no module serves the providerSpec any more; the Machine keeps %s", short(c.bound))
	case !c.other():
		told.Status, told.Reason = metav1.ConditionTrue, reasonCurrent
	case withheld != nil:
		told.Reason, told.Message = reasonUpdateRefused, fmt.Sprintf("the Machine keeps module %s and does not get %s: %s",
			short(c.bound), short(c.current.Reference()), withheld.Message)
	case c.own == nil:
		told.Reason, told.Message = reasonContentLost, c.lostMessage()
	case c.renewable():
		told.Reason, told.Message = reasonUpdating, fmt.Sprintf("the Machine gets module %s in place of %s", short(c.current.Reference()), short(c.bound))
	default:
		told.Reason, told.Message = reasonUpdateHeld, fmt.Sprintf("the Machine keeps module %s, which its instance was made with; the current one is %s, "+
			"and the annotation %s: %s lets the instance be brought to it in place", short(c.bound), short(c.current.Reference()),
			ModuleUpdatesAnnotation, ModuleUpdatesInPlace)
	}
	if c.misread != "" {
		told.Message = joined(told.Message, c.misread)
	}
	return told
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
