package machinehealthcheck

import (
	"encoding/json"
	"slices"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
)

// witnessAnnotation is on every Machine whose create has begun.
const witnessAnnotation = "machine-iac.io/instance"

// startOf returns when the wait for a Node began: with the instance, with its create, or with the
// Machine if neither is known, so that a Machine whose instance cannot be created is replaced. The
// time of the last status write would move with every attempt. If the instance's existence was
// unknown, or another API was authoritative, the wait begins when that was last reported. startOf
// returns the zero time while the create waits for its turn.
func startOf(machine *machinev1beta1.Machine) time.Time {
	exists := machineapi.FindCondition(machine.Status.Conditions, machinev1beta1.InstanceExistsCondition)
	start := machine.CreationTimestamp.Time
	if exists == nil || exists.Status == corev1.ConditionFalse {
		if start = createStart(machine, exists); start.IsZero() {
			return start
		}
	}
	begin := func(kind machinev1beta1.ConditionType, statuses ...corev1.ConditionStatus) {
		found := machineapi.FindCondition(machine.Status.Conditions, kind)
		if found != nil && slices.Contains(statuses, found.Status) && found.LastTransitionTime.After(start) {
			start = found.LastTransitionTime.Time
		}
	}
	begin(machinev1beta1.InstanceExistsCondition, corev1.ConditionTrue, corev1.ConditionUnknown)
	begin(machineapi.Paused, corev1.ConditionFalse)
	if updated := machine.Status.LastUpdated; updated != nil && updated.Time.Before(start) { // from another clock
		return updated.Time
	}
	return start
}

// createStart returns when the create of the instance began, as the provider status reports it: at
// the first failure, or with the current run. It returns the zero time while the first run waits
// for its turn, and the creation of a Machine of another actuator.
func createStart(machine *machinev1beta1.Machine, exists *machinev1beta1.Condition) time.Time {
	status := v1alpha1.TerraformMachineProviderStatus{}
	if raw := machine.Status.ProviderStatus; raw == nil || json.Unmarshal(raw.Raw, &status) != nil || !status.Ours() {
		return machine.CreationTimestamp.Time
	}
	failed := meta.FindStatusCondition(status.Conditions, string(machinev1beta1.MachineCreation))
	run := status.Run
	creating := run != nil && run.Operation == v1alpha1.RunCreate
	var started *metav1.Time
	if creating {
		started = run.StartedAt
	}
	_, begun := machine.Annotations[witnessAnnotation]
	switch {
	case failed != nil && failed.Status == metav1.ConditionFalse:
		if started != nil && started.Before(&failed.LastTransitionTime) {
			return started.Time
		}
		return failed.LastTransitionTime.Time
	case started != nil && run.WaitsFor == "":
		return started.Time
	case creating || !begun:
		return time.Time{}
	case exists != nil:
		return exists.LastTransitionTime.Time
	default:
		return machine.CreationTimestamp.Time
	}
}
