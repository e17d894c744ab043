package machine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
	"github.com/machine-iac/machine-iac-operator/controllers/pipeline"
)

const (
	// InstanceUpToDate reports whether the instance matches its providerSpec. False has an error
	// reason of the Machine API: UnsupportedChange if only a new Machine can bring the change,
	// InsufficientResources while quota or capacity is missing, CreateError, UpdateError or
	// DeleteError if the engine failed, InvalidConfiguration if the providerSpec must change.
	// Unknown has InProgress while a change is being made, or the actuator's reason.
	InstanceUpToDate machinev1beta1.ConditionType = "InstanceUpToDate"

	// inProgressReason surfaces on InstanceUpToDate while an update is in progress.
	inProgressReason = "InProgress"

	instanceStateAnnotation = "machine.openshift.io/instance-state"
	unknownState            = "Unknown"

	// failedGenerationAnnotation holds the generation that failed before an instance was created,
	// so that a later spec is tried.
	failedGenerationAnnotation = "machine-iac.io/failed-generation"
)

func instanceExists(status corev1.ConditionStatus, reason, message string) machinev1beta1.Condition {
	return condition(machinev1beta1.InstanceExistsCondition, status, reason, message)
}

// instanceNotCreated returns InstanceExists for an instance that was never created, with the reason
// if known.
func instanceNotCreated(why string) machinev1beta1.Condition {
	message := "Instance has not been created"
	if why != "" {
		message += ": " + why
	}
	return instanceExists(corev1.ConditionFalse, machinev1beta1.InstanceNotCreatedReason, message)
}

func instanceExistsUnknown(err error) machinev1beta1.Condition {
	return instanceExists(corev1.ConditionUnknown, machinev1beta1.ErrorCheckingProviderReason,
		fmt.Sprintf("Failed to check if machine exists: %v", err))
}

func upToDate(status corev1.ConditionStatus, reason, message string) machinev1beta1.Condition {
	return condition(InstanceUpToDate, status, reason, message)
}

func condition(kind machinev1beta1.ConditionType, status corev1.ConditionStatus, reason,
	message string) machinev1beta1.Condition {
	severity := machinev1beta1.ConditionSeverityNone
	if status == corev1.ConditionFalse {
		severity = machinev1beta1.ConditionSeverityWarning
	}
	return machinev1beta1.Condition{Type: kind, Status: status, Severity: severity, Reason: reason, Message: message}
}

func setCondition(machine *machinev1beta1.Machine, wanted machinev1beta1.Condition, now time.Time) {
	machine.Status.Conditions = machineapi.WithCondition(machine.Status.Conditions, wanted, now)
}

// setPhase sets the phase, and clears the error fields in any phase but Failed.
func setPhase(machine *machinev1beta1.Machine, phase string) {
	machine.Status.Phase = &phase
	if phase != machinev1beta1.PhaseFailed {
		clearErrors(machine)
	}
}

func clearErrors(machine *machinev1beta1.Machine) {
	machine.Status.ErrorReason, machine.Status.ErrorMessage = nil, nil
}

// failIfRequested fails the Machine when the actuator has set its phase to Failed, which is how
// Exists and Update report an error that no retry resolves.
func failIfRequested(machine *machinev1beta1.Machine, cause error) {
	if machineapi.Phase(machine) == machinev1beta1.PhaseFailed {
		fail(machine, cause)
	}
}

// fail sets the phase Failed and the error fields.
func fail(machine *machinev1beta1.Machine, cause error) {
	setPhase(machine, machinev1beta1.PhaseFailed)
	clearErrors(machine)
	message := cause.Error()
	var machineError *actuators.MachineError
	if errors.As(cause, &machineError) {
		reason := machineError.Reason
		machine.Status.ErrorReason, message = &reason, machineError.Message
	}
	machine.Status.ErrorMessage = &message
	metav1.SetMetaDataAnnotation(&machine.ObjectMeta, instanceStateAnnotation, unknownState)
	if provisioned(machine) {
		delete(machine.Annotations, failedGenerationAnnotation)
	} else {
		metav1.SetMetaDataAnnotation(&machine.ObjectMeta, failedGenerationAnnotation,
			strconv.FormatInt(machine.Generation, 10))
	}
	machine.Status.ProviderStatus = withUnknownState(machine.Status.ProviderStatus)
}

// specChanged reports whether the spec of a Machine that failed before an instance was created has
// changed since. An instance may exist by now: the Machine stays Failed if its status could not be
// written.
func specChanged(machine *machinev1beta1.Machine) bool {
	failed, ok := machine.Annotations[failedGenerationAnnotation]
	return ok && failed != strconv.FormatInt(machine.Generation, 10)
}

// withUnknownState sets the instance state in a provider status of any kind to Unknown, if it has
// one.
func withUnknownState(status *runtime.RawExtension) *runtime.RawExtension {
	if status == nil {
		return nil
	}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(status.Raw, &fields); err != nil {
		return status
	}
	for _, name := range []string{"instanceState", "vmState"} {
		if _, ok := fields[name]; ok {
			fields[name] = json.RawMessage(strconv.Quote(unknownState))
		}
	}
	raw, err := json.Marshal(fields)
	if err != nil {
		return status
	}
	return &runtime.RawExtension{Raw: raw}
}

// write patches the Machine and its status, each only when it differs.
func (c *Controller) write(ctx context.Context, s *scope) error {
	if reflect.DeepEqual(s.original, s.machine) {
		return nil // the common case; the comparison below is expensive
	}
	s.changed = true
	base, object := s.original.DeepCopy(), s.machine.DeepCopy()
	base.Status.DeepCopyInto(&object.Status)
	differs, err := differ(base, object)
	if err != nil {
		return err
	}
	if differs {
		if err := c.client.Patch(ctx, object, pipeline.IfUnchanged(base)); err != nil {
			return fmt.Errorf("patching the Machine: %w", err)
		}
		base.ResourceVersion = object.ResourceVersion
		c.writes.add(client.ObjectKeyFromObject(object), object.ResourceVersion, c.clock.Now())
	}
	status := base.DeepCopy()
	s.machine.Status.DeepCopyInto(&status.Status)
	if differs, err = differ(base, status); err != nil || !differs {
		return err
	}
	now := c.clock.Now()
	updated := metav1.NewTime(now)
	status.Status.LastUpdated = &updated
	if err := c.client.Status().Patch(ctx, status, pipeline.IfUnchanged(base)); err != nil {
		return fmt.Errorf("writing the status: %w", err)
	}
	c.writes.add(client.ObjectKeyFromObject(status), status.ResourceVersion, now)
	c.metrics.phaseChanged(s.original, s.machine, now)
	return nil
}

// written filters the error of a write of the Machine, and keeps it for an event if the API server
// has refused the write.
func (s *scope) written(err error) error {
	left := s.Written(err)
	if apierrors.IsForbidden(left) || apierrors.IsInvalid(left) || apierrors.IsBadRequest(left) {
		s.refused = left
	}
	return left
}

// differ compares as the API server does: the formatting of a provider status does not count.
func differ(before, after *machinev1beta1.Machine) (bool, error) {
	patch, err := client.MergeFrom(before).Data(after)
	if err != nil {
		return false, fmt.Errorf("comparing the Machine with its original: %w", err)
	}
	return string(patch) != "{}", nil
}

// deletedOrReplaced reports whether the error of a delete says that the object no longer exists or
// is another one of the same name.
func deletedOrReplaced(err error) bool {
	return client.IgnoreNotFound(err) == nil || apierrors.IsConflict(err)
}
