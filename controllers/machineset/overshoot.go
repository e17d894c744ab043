package machineset

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"

	"github.com/machine-iac/machine-iac-operator/api/v1beta1"
	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
	note "github.com/machine-iac/machine-iac-operator/internal/cluster/events"
)

const (
	tooManyReason = "TooManyMachines"
	// frozenRecheck is how often a frozen MachineSet is reconciled. No event says that a Machine
	// without a controller is gone.
	frozenRecheck = time.Minute
)

// limitCreation ends the reconcile of a MachineSet whose Machines do not stay: something deletes them,
// or takes their labels, as soon as they are there. Each would be replaced by another one without end.
type limitCreation struct {
	recorder  events.EventRecorder
	clock     clock.PassiveClock
	overshoot int
}

// Reconcile implements pipeline.Step.
func (l *limitCreation) Reconcile(_ context.Context, s *scope) (bool, error) {
	limit, exist := 2*wanted(s.set)+l.overshoot, made(s.set, s.machines)
	s.room = limit - exist
	status := &s.set.Status
	// Thawed by one Machine less, it would create that one, freeze again and send another event.
	hysteresis, frozen := l.overshoot/2, machineapi.FindCondition(status.Conditions, v1beta1.ConditionFrozen) != nil
	if s.surplus() >= 0 || s.room > hysteresis || s.room > 0 && !frozen {
		status.Conditions = machineapi.WithoutCondition(status.Conditions, v1beta1.ConditionFrozen)
		return true, nil
	}
	message := fmt.Sprintf("Creates no Machines: %d exist, those that were deleted before they had a Node and those "+
		"that have lost its labels included. It goes on when there are fewer than %d. Find out what deletes or relabels "+
		"them", exist, limit-hysteresis)
	if !frozen {
		note.Warning(s.set, tooManyReason, "Reconcile", message).Send(l.recorder)
	}
	status.Conditions = machineapi.WithCondition(status.Conditions, machinev1beta1.Condition{
		Type: v1beta1.ConditionFrozen, Status: corev1.ConditionTrue, Reason: tooManyReason, Message: message,
	}, l.clock.Now())
	s.RequeueAfter(frozenRecheck)
	return false, nil
}

// wanted returns the desired number of Machines: the MachineDeployment's if there is one, whose
// MachineSets grow and shrink again while it rolls out.
func wanted(set *machinev1beta1.MachineSet) int {
	desired, _ := strconv.Atoi(set.Annotations[v1beta1.DesiredReplicasAnnotation]) // 0 if absent
	return max(int(*set.Spec.Replicas)+v1beta1.SurgeOf(set), min(desired, math.MaxInt32))
}

// made counts the Machines of the MachineSet, and those that it created and that have no controller.
// Those that are being deleted do not count if they had a Node, or were marked for deletion: a MachineSet
// that shrank grows again while they drain.
func made(set *machinev1beta1.MachineSet, machines []*machinev1beta1.Machine) (count int) {
	for _, machine := range machines {
		if machine.DeletionTimestamp != nil && (machine.Status.NodeRef != nil || machineapi.MarkedForDeletion(machine)) {
			continue
		}
		owner := metav1.GetControllerOfNoCopy(machine)
		if owner == nil && machine.GenerateName == set.Name+"-" || owner != nil && owner.UID == set.UID {
			count++
		}
	}
	return count
}
