package iac

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/actuators/reporting"
	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/desired"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
)

// Conditions in the provider status, in addition to those of package reporting.
const (
	// moduleCurrent reports whether the instance was created with the current module.
	moduleCurrent = "ModuleCurrent"
)

// Labels and annotations of the Machine API that describe the instance.
const (
	labelInstanceType       = "machine.openshift.io/instance-type"
	labelRegion             = "machine.openshift.io/region"
	labelZone               = "machine.openshift.io/zone"
	labelInterruptible      = "machine.openshift.io/interruptible-instance"
	annotationInstanceState = "machine.openshift.io/instance-state"
)

// write encodes the provider status into the Machine in memory, if it has changed.
func (o *observation) write() {
	if !o.status.Ours() {
		o.status.TypeMeta = metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(),
			Kind: v1alpha1.TerraformMachineProviderStatusKind}
	}
	o.status.ReportedBy = v1alpha1.ReportedBy
	o.platform()
	if equality.Semantic.DeepEqual(o.status, o.before) {
		return
	}
	raw, err := json.Marshal(o.status)
	if err != nil {
		return // cannot happen: the types guarantee it
	}
	o.machine.Status.ProviderStatus = &runtime.RawExtension{Raw: raw}
}

// platform sets the type of the platform that the module names, and the fields that only this type
// has. Where the module is unknown or older than the type, and where a state lacks an output, what
// the status has stays.
func (o *observation) platform() {
	var wanted *v1alpha1.ModuleProviderStatus
	switch {
	case o.choice.Modules != nil && o.choice.Modules.Current != nil:
		wanted = o.choice.Modules.Current.Spec().ProviderStatus
	case o.choice.State != nil:
		wanted = o.choice.State.Module.Spec().ProviderStatus
	}
	if wanted == nil {
		return
	}
	o.status.TypeMeta = metav1.TypeMeta{APIVersion: wanted.APIVersion, Kind: wanted.Kind}
	if o.outputs == nil {
		return
	}
	fields := map[string]any{}
	maps.Copy(fields, o.status.Platform)
	for field, name := range wanted.Fields {
		if value := o.facts.PublicOutput(name); value != nil {
			fields[field] = value
		}
	}
	o.status.Platform = fields
}

// publish writes the observation and the verb's outcome into the Machine in memory.
func (a *Actuator) publish(o *observation, outcome error) {
	if o.outputs != nil {
		a.publishInstance(o)
	}
	if o.choice.Modules != nil {
		a.publishModule(o)
	}
	a.publishAdoption(o, outcome)
	if failed, ok := errors.AsType[*actuators.MachineError](outcome); ok && o.asked == runs.Create {
		a.publishCreation(o, metav1.ConditionFalse, machinev1beta1.MachineCreationFailedConditionReason, failed.Message)
	}
	o.publishFailure(outcome, a.clock.Now())
	run, _ := a.pool.Status(runs.Key(o.machine.UID))
	reporting.SetThrottled(&o.status.Conditions, run.ThrottledSince, a.clock.Now())
	o.write()
}

// publishFailure records the error in status. It stays there until the next attempt finishes.
func (o *observation) publishFailure(outcome error, now time.Time) {
	if outcome == nil {
		o.status.Failure = nil
	}
	message := ""
	if failed, ok := errors.AsType[*actuators.MachineError](outcome); ok {
		o.status.Failure = &v1alpha1.FailureStatus{Operation: operations[o.asked],
			Class: cmp.Or(failed.Class, string(failed.Reason))}
		message = failed.Message
	}
	reporting.SetProviderAvailable(&o.status.Conditions, o.status.Failure, message, now)
}

// publishInstance publishes the outputs of the instance.
func (a *Actuator) publishInstance(o *observation) {
	machine, out := o.machine, o.outputs
	if out.ProviderID != "" {
		machine.Spec.ProviderID = &out.ProviderID
	}
	if len(out.Addresses) > 0 {
		machine.Status.Addresses = out.Addresses
	}
	for label, value := range map[string]string{labelInstanceType: out.InstanceType, labelRegion: out.Region,
		labelZone: out.Zone} {
		if value != "" {
			metav1.SetMetaDataLabel(&machine.ObjectMeta, label, value)
		}
	}
	if out.Interruptible {
		metav1.SetMetaDataLabel(&machine.ObjectMeta, labelInterruptible, "")
		if machine.Spec.Labels == nil {
			machine.Spec.Labels = map[string]string{}
		}
		machine.Spec.Labels[labelInterruptible] = "" // copied to the Node from there
	}
	if out.InstanceState != "" {
		metav1.SetMetaDataAnnotation(&machine.ObjectMeta, annotationInstanceState, out.InstanceState)
	}
	o.status.InstanceID, o.status.InstanceState = out.InstanceID, out.InstanceState
	o.status.Module, o.status.SecondLookTime = o.facts.Record.Module, nil
	if second := o.facts.Record.SecondLook; second != nil {
		o.status.SecondLookTime = seconds(*second)
	}
	a.publishCreation(o, metav1.ConditionTrue, machinev1beta1.MachineCreationSucceededConditionReason,
		"Machine successfully created")
	reporting.SetOutlivesMachine(&o.status.Conditions, o.outputs.Outlives, a.clock.Now())
	reporting.SetProvidersChanged(&o.status.Conditions, o.facts.Record.Providers, a.clock.Now())
	a.publishCheck(o)
}

// publishCreation publishes whether the instance exists.
func (a *Actuator) publishCreation(o *observation, created metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&o.status.Conditions, metav1.Condition{
		Type: string(machinev1beta1.MachineCreation), Status: created, Reason: reason, Message: message,
		LastTransitionTime: metav1.NewTime(a.clock.Now()),
	})
}

// publishCheck publishes the last drift check.
func (a *Actuator) publishCheck(o *observation) {
	if check := o.facts.Record.Check; check != nil {
		o.status.LastDriftCheckTime, o.status.LastDriftCheckRequest = seconds(check.At), check.Request
	}
	if condition := reporting.DriftCondition(o.facts, a.interval, a.clock.Now()); condition != nil {
		meta.SetStatusCondition(&o.status.Conditions, *condition)
	}
}

// publishModule publishes how the Machine's pinned module differs from the current one.
func (a *Actuator) publishModule(o *observation) {
	status := o.choice.Modules.Status(o.choice.Withheld)
	if status == nil {
		return
	}
	condition := metav1.Condition{
		Type: moduleCurrent, Status: metav1.ConditionFalse, Reason: status.Reason, Message: status.Message,
		LastTransitionTime: metav1.NewTime(a.clock.Now()),
	}
	if status.Reason == desired.ReasonCurrent {
		condition.Status = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&o.status.Conditions, condition)
}

// publishAdoption publishes whether the Machine's existing instance is adopted, and any adoption
// plan. It clears both for an instance that this operator created.
func (a *Actuator) publishAdoption(o *observation, outcome error) {
	o.status.Adoption = nil
	refused := cannotAdopt(o)
	condition := reporting.AdoptedCondition(o.facts, refused, outcome)
	if condition == nil {
		if !o.facts.Adopted() {
			meta.RemoveStatusCondition(&o.status.Conditions, reporting.AdoptedType)
		}
		return
	}
	if o.facts.Foreign() {
		o.status.Adoption = reporting.AdoptionStatus(o.facts.Record.AdoptionPlan)
		if refused != "" {
			o.status.Adoption = a.refusedUnplanned(o, refused)
		}
	}
	condition.LastTransitionTime = metav1.NewTime(a.clock.Now())
	meta.SetStatusCondition(&o.status.Conditions, *condition)
}

// cannotAdopt returns why a requested adoption is refused without a plan, or "".
func cannotAdopt(o *observation) string {
	chosen, asked := o.choice.State, o.facts.Adoption
	invalid, ok := errors.AsType[*actuators.MachineError](o.choiceErr)
	switch {
	case !asked.Requested():
		return asked.Denied
	case ok:
		return "planning is impossible: " + invalid.Message
	case chosen == nil || len(chosen.Module.AdoptFiles()) > 0:
		return ""
	}
	return fmt.Sprintf("the %s %s does not support adoption: it has no adopt/ folder; "+
		"change the providerSpec to a module that does, or leave the instance to its owner",
		chosen.Module.Traits().Noun, chosen.Module.Name())
}

// refusedUnplanned returns a refusal that needs no plan. Its time changes only with a new request.
func (a *Actuator) refusedUnplanned(o *observation, why string) *v1alpha1.AdoptionStatus {
	why = record.PlannedAdoption{Refused: why}.Bounded().Refused
	if before := o.before.Adoption; before != nil && before.Refused == why &&
		!before.PlannedAt.Time.Before(o.facts.Adoption.Since) {
		return before
	}
	return &v1alpha1.AdoptionStatus{PlannedAt: metav1.NewTime(a.clock.Now()), Refused: why}
}
