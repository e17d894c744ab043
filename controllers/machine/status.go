package machine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	// InstanceUpToDate tells whether the instance is as its providerSpec wants it. False carries an error reason of the Machine API:
	// UnsupportedChange when only a new Machine can bring the change, InsufficientResources while quota or capacity is missing,
	// CreateError, UpdateError or DeleteError when the engine failed, InvalidConfiguration when the providerSpec must change. Unknown
	// carries InProgress while a change is being made, or the actuator's reason when nobody can tell.
	InstanceUpToDate machinev1beta1.ConditionType = "InstanceUpToDate"

	// inProgressReason surfaces on InstanceUpToDate while the actuator works on it.
	inProgressReason = "InProgress"

	instanceStateAnnotation = "machine.openshift.io/instance-state"
	unknownState            = "Unknown"

	// failedGenerationAnnotation holds the generation whose spec made a Machine fail before anything was made, so that a later
	// spec is given a chance.
	failedGenerationAnnotation = "machine-iac.io/failed-generation"
)

func instanceExists(status corev1.ConditionStatus, reason, message string) machinev1beta1.Condition {
	return condition(machinev1beta1.InstanceExistsCondition, status, reason, message)
}

// notCreated tells that the instance was never made, and why where that is known.
func notCreated(why string) machinev1beta1.Condition {
	message := "Instance has not been created"
	if why != "" {
		message += ": " + why
	}
	return instanceExists(corev1.ConditionFalse, machinev1beta1.InstanceNotCreatedReason, message)
}

func existenceUnknown(err error) machinev1beta1.Condition {
	return instanceExists(corev1.ConditionUnknown, machinev1beta1.ErrorCheckingProviderReason, fmt.Sprintf("Error checking provider: %v", err))
}

func upToDate(status corev1.ConditionStatus, reason, message string) machinev1beta1.Condition {
	return condition(InstanceUpToDate, status, reason, message)
}

func condition(kind machinev1beta1.ConditionType, status corev1.ConditionStatus, reason, message string) machinev1beta1.Condition {
	severity := machinev1beta1.ConditionSeverityNone
	if status == corev1.ConditionFalse {
		severity = machinev1beta1.ConditionSeverityWarning
	}
	return machinev1beta1.Condition{Type: kind, Status: status, Severity: severity, Reason: reason, Message: message}
}

func setCondition(machine *machinev1beta1.Machine, wanted machinev1beta1.Condition, now time.Time) {
	machine.Status.Conditions = machineapi.WithCondition(machine.Status.Conditions, wanted, now)
}

// setPhase sets the phase and takes the error fields back, which belong to Failed alone.
func setPhase(machine *machinev1beta1.Machine, phase string) {
	machine.Status.Phase = &phase
	if phase != machinev1beta1.PhaseFailed {
		forgiveErrors(machine)
		delete(machine.Annotations, failedGenerationAnnotation)
	}
}

func forgiveErrors(machine *machinev1beta1.Machine) {
	machine.Status.ErrorReason, machine.Status.ErrorMessage = nil, nil
}

// failWhereAsked fails the Machine when the actuator has set its phase to Failed, which is how it tells with an error of Exists or
// Update that nothing will help.
func failWhereAsked(machine *machinev1beta1.Machine, cause error) {
	if machineapi.Phase(machine) == machinev1beta1.PhaseFailed {
		fail(machine, cause)
	}
}

// fail makes the Machine Failed. It has a reason where the cause has one.
func fail(machine *machinev1beta1.Machine, cause error) {
	setPhase(machine, machinev1beta1.PhaseFailed)
	forgiveErrors(machine)
	message := cause.Error()
	var machineError *actuators.MachineError
	if errors.As(cause, &machineError) {
		reason := machineError.Reason
		machine.Status.ErrorReason, message = &reason, machineError.Message
	}
	machine.Status.ErrorMessage = &message
	metav1.SetMetaDataAnnotation(&machine.ObjectMeta, instanceStateAnnotation, unknownState)
	if !provisioned(machine) {
		metav1.SetMetaDataAnnotation(&machine.ObjectMeta, failedGenerationAnnotation, strconv.FormatInt(machine.Generation, 10))
	}
	machine.Status.ProviderStatus = withUnknownState(machine.Status.ProviderStatus)
}

// mended reports whether a Machine that failed before anything was made has got another spec since.
func mended(machine *machinev1beta1.Machine) bool {
	failed, ok := machine.Annotations[failedGenerationAnnotation]
	return ok && !provisioned(machine) && failed != strconv.FormatInt(machine.Generation, 10)
}

// withUnknownState overrides the state of the instance where a provider status of any kind carries one.
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

// write brings what changed to the API server: one patch of the object and one of its status, each only when needed.
func (c *Controller) write(ctx context.Context, s *scope) error {
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
	c.metrics.phaseChanged(s.original, s.machine, now)
	return nil
}

// differ compares as the API server does: the spelling of a provider status does not count.
func differ(before, after *machinev1beta1.Machine) (bool, error) {
	patch, err := client.MergeFrom(before).Data(after)
	if err != nil {
		return false, fmt.Errorf("comparing the Machine with its original: %w", err)
	}
	return string(patch) != "{}", nil
}

// goneOrOther reports whether an object that was to be deleted is gone, or has been replaced by another of its name.
func goneOrOther(err error) bool {
	return client.IgnoreNotFound(err) == nil || apierrors.IsConflict(err)
}
