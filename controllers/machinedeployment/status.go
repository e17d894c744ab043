package machinedeployment

import (
	"cmp"
	"context"
	"fmt"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/machine-iac/machine-iac-operator/api/v1beta1"
	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
	"github.com/machine-iac/machine-iac-operator/controllers/pipeline"
)

// defaultDeadline is how long a rollout may make no progress before it stops.
const defaultDeadline = 30 * time.Minute

// stopped reports whether the rollout has stopped because it made no progress. A change of the spec
// lets it go on.
func (s *scope) stopped() bool {
	progressing := meta.FindStatusCondition(s.deployment.Status.Conditions, v1beta1.ConditionProgressing)
	return progressing != nil && progressing.Reason == v1beta1.ReasonProgressDeadlineExceeded &&
		progressing.ObservedGeneration == s.deployment.Generation
}

// report sets the status in memory. failure is why the reconcile failed.
func (c *Controller) report(s *scope, failure error) {
	status := &s.deployment.Status
	if s.invalid != nil {
		status.ObservedGeneration = s.deployment.Generation
		s.set(v1beta1.ConditionProgressing, metav1.ConditionFalse, "InvalidSpec", s.invalid.Error())
		s.setIf(true, v1beta1.ConditionStalled, "InvalidSpec", s.invalid.Error())
		s.setIf(false, v1beta1.ConditionReconciling, "", "")
		return
	}
	s.count()
	least := s.bounds.replicas - s.bounds.unavailable
	if int(status.AvailableReplicas) >= least {
		s.set(v1beta1.ConditionAvailable, metav1.ConditionTrue, "MinimumReplicasAvailable",
			fmt.Sprintf("%d Machines are available; %d must be", status.AvailableReplicas, least))
	} else {
		s.set(v1beta1.ConditionAvailable, metav1.ConditionFalse, "MinimumReplicasUnavailable",
			fmt.Sprintf("%d Machines are available; %d must be", status.AvailableReplicas, least))
	}
	s.setIf(s.deployment.Spec.Paused, v1beta1.ConditionPaused, "Paused", "spec.paused stops rollouts")
	culprit, reason := s.culprit(), "MachineFailed"
	if failure != nil {
		culprit, reason = failure.Error(), "ReconcileError"
	}
	s.setIf(culprit != "", v1beta1.ConditionReplicaFailure, reason, culprit)
	s.reportInPlace()
	s.reportProgress(culprit, c.clock.Now())
	status.ObservedGeneration = s.deployment.Generation
}

// count sets the numbers.
func (s *scope) count() {
	status := &s.deployment.Status
	status.Selector = s.selector.String()
	status.Replicas, status.UpdatedReplicas, status.ReadyReplicas, status.AvailableReplicas = 0, 0, 0, 0
	for _, r := range s.revisions {
		for i, machine := range r.machines {
			verdict := verdictOf(machine)
			status.Replicas++
			status.UpdatedReplicas += one(r == s.current && (verdict == unmoved || verdict == changed))
			status.ReadyReplicas += one(r.ready[i])
			status.AvailableReplicas += one(r.available[i])
		}
	}
	status.UnavailableReplicas = max(0, int32(s.bounds.replicas)-status.AvailableReplicas)
}

func one(when bool) int32 {
	if when {
		return 1
	}
	return 0
}

// culprit describes a MachineSet that creates no Machines, or the first failing Machine of the current
// revision, or returns "".
func (s *scope) culprit() string {
	for _, r := range s.revisions {
		if frozen := machineapi.FindCondition(r.set.Status.Conditions, v1beta1.ConditionFrozen); frozen != nil {
			return fmt.Sprintf("MachineSet %s: %s", r.set.Name, frozen.Message)
		}
	}
	if s.current == nil {
		return ""
	}
	for _, machine := range s.current.machines {
		if why := failureOf(machine); why != "" {
			return fmt.Sprintf("Machine %s: %s", machine.Name, why)
		}
	}
	return ""
}

func failureOf(machine *machinev1beta1.Machine) string {
	if machine.Status.ErrorReason != nil || machine.Status.ErrorMessage != nil {
		return cmp.Or(ptr.Deref(machine.Status.ErrorMessage, ""), string(ptr.Deref(machine.Status.ErrorReason, "")))
	}
	condition := upToDate(machine)
	if condition == nil || condition.Status != corev1.ConditionFalse || verdictOf(machine) == refused {
		return ""
	}
	return condition.Message
}

// reportInPlace says whether Machines cannot change in place.
func (s *scope) reportInPlace() {
	why := ""
	for _, r := range s.old() {
		if !s.inPlace() || s.current == nil || len(r.machines) == 0 || len(s.movable(r)) > 0 {
			continue
		}
		refusal := refusalOf(r.set, s.current.set.Name)
		for _, machine := range r.machines {
			refusal = cmp.Or(refusal, refusalOf(machine, s.current.set.Name))
		}
		if refusal != "" {
			why = fmt.Sprintf("%d Machines of %s need new instances: %s", len(r.machines), r.set.Name, refusal)
		} else if s.restarted(r) {
			why = fmt.Sprintf("%d Machines of %s need new instances: a restart was requested", len(r.machines), r.set.Name)
		}
	}
	if why == "" {
		meta.RemoveStatusCondition(&s.deployment.Status.Conditions, v1beta1.ConditionInPlace)
		return
	}
	s.set(v1beta1.ConditionInPlace, metav1.ConditionFalse, "ReplacementNeeded", why)
}

// reportProgress sets Progressing, Reconciling and Stalled. The transition time of Progressing is that
// of the last progress, which the deadline counts from.
func (s *scope) reportProgress(culprit string, now time.Time) {
	last := meta.FindStatusCondition(s.before.Status.Conditions, v1beta1.ConditionProgressing)
	deadline := defaultDeadline
	if given := s.deployment.Spec.ProgressDeadlineSeconds; given != nil {
		deadline = time.Duration(*given) * time.Second
	}
	status, reason, message, moved := s.progress(last, culprit, deadline, now)
	s.set(v1beta1.ConditionProgressing, status, reason, message)
	current := meta.FindStatusCondition(s.deployment.Status.Conditions, v1beta1.ConditionProgressing)
	if moved {
		current.LastTransitionTime = metav1.NewTime(now)
	}
	inPlace := meta.FindStatusCondition(s.deployment.Status.Conditions, v1beta1.ConditionInPlace)
	stuck := s.strategy() == v1beta1.InPlace && inPlace != nil
	exceeded := reason == v1beta1.ReasonProgressDeadlineExceeded
	switch {
	case exceeded:
		s.setIf(true, v1beta1.ConditionStalled, reason, message)
	case stuck:
		s.setIf(true, v1beta1.ConditionStalled, inPlace.Reason, inPlace.Message)
	default:
		s.setIf(false, v1beta1.ConditionStalled, "", "")
	}
	running := !s.complete() && !exceeded && !stuck && !s.deployment.Spec.Paused
	s.setIf(running, v1beta1.ConditionReconciling, reason, message)
	if running {
		s.RequeueAfter(current.LastTransitionTime.Add(deadline).Sub(now) + time.Second)
	}
}

// progress returns the condition Progressing, and whether there was progress.
func (s *scope) progress(last *metav1.Condition, culprit string, deadline time.Duration,
	now time.Time) (status metav1.ConditionStatus, reason, message string, moved bool) {
	name := ""
	if s.current != nil {
		name = s.current.set.Name
	}
	switch {
	case s.deployment.Spec.Paused:
		return metav1.ConditionUnknown, v1beta1.ReasonPaused, "The rollout is paused", false
	case s.complete():
		return metav1.ConditionTrue, v1beta1.ReasonNewMachineSetAvailable, fmt.Sprintf("MachineSet %s has rolled out", name),
			false
	case s.created:
		return metav1.ConditionTrue, v1beta1.ReasonNewMachineSetCreated, "Created a MachineSet for the revision", true
	case last != nil && last.Reason == v1beta1.ReasonPaused:
		return metav1.ConditionUnknown, v1beta1.ReasonResumed, "The rollout goes on", true
	case last == nil, last.ObservedGeneration != s.deployment.Generation, s.advanced(),
		last.Reason == v1beta1.ReasonNewMachineSetAvailable && s.deployment.Status.UpdatedReplicas < s.deployment.Status.Replicas:
		return metav1.ConditionTrue, v1beta1.ReasonMachineSetUpdated, fmt.Sprintf("MachineSet %s is rolling out", name), true
	case last.Reason != v1beta1.ReasonNewMachineSetAvailable && now.Sub(last.LastTransitionTime.Time) > deadline:
		message = fmt.Sprintf("MachineSet %s has made no progress for %s", name, deadline)
		if culprit != "" {
			message += "; " + culprit
		}
		return metav1.ConditionFalse, v1beta1.ReasonProgressDeadlineExceeded, message, last.Status != metav1.ConditionFalse
	default:
		return last.Status, last.Reason, last.Message, false
	}
}

// advanced reports whether more Machines are as they should be than before.
func (s *scope) advanced() bool {
	before, now := &s.before.Status, &s.deployment.Status
	return now.UpdatedReplicas > before.UpdatedReplicas || now.ReadyReplicas > before.ReadyReplicas ||
		now.AvailableReplicas > before.AvailableReplicas ||
		now.Replicas-now.UpdatedReplicas < before.Replicas-before.UpdatedReplicas
}

// complete reports whether the rollout has ended.
func (s *scope) complete() bool {
	status, replicas := &s.deployment.Status, int32(s.bounds.replicas)
	return s.current != nil && status.Replicas == replicas && status.UpdatedReplicas == replicas &&
		status.AvailableReplicas == replicas
}

func (s *scope) set(kind string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&s.deployment.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: reason,
		Message: message, ObservedGeneration: s.deployment.Generation})
}

// setIf sets a condition that is True or absent.
func (s *scope) setIf(is bool, kind, reason, message string) {
	if is {
		s.set(kind, metav1.ConditionTrue, reason, message)
		return
	}
	meta.RemoveStatusCondition(&s.deployment.Status.Conditions, kind)
}

// patchStatus writes the status if it differs.
func (c *Controller) patchStatus(ctx context.Context, s *scope) error {
	if equality.Semantic.DeepEqual(s.before.Status, s.deployment.Status) {
		return nil
	}
	if err := c.client.Status().Patch(ctx, s.deployment.DeepCopy(), pipeline.IfUnchanged(s.before)); err != nil {
		return fmt.Errorf("writing the status of the MachineDeployment: %w", err)
	}
	return nil
}
