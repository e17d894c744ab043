package machinehealthcheck

import (
	"context"
	"fmt"
	"slices"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"

	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
)

// defaultStartupTimeout is used where the CRD's default is not set.
const defaultStartupTimeout = 10 * time.Minute

// healthResult is whether a Machine is healthy, and when it is to be remediated.
type healthResult struct {
	// remediate is whether the Machine is to be remediated now.
	remediate bool
	// since is when it became unhealthy, if remediate.
	since time.Time
	// recheck is after which time the Machine is to be remediated unless it recovers; zero for never.
	recheck time.Duration
	// starting is whether the Machine has no Node yet and is within its startup timeout.
	starting bool
	// why is the reason for people; empty when the Machine is healthy.
	why string
}

// checkHealth checks the health of each target.
type checkHealth struct{}

// Reconcile implements pipeline.Step.
func (*checkHealth) Reconcile(_ context.Context, s *scope) (bool, error) {
	for _, target := range s.targets {
		target.health = healthOf(&s.check.Spec, target.machine, target.node, s.now)
		if target.health.recheck > 0 {
			s.RequeueAfter(min(target.health.recheck, maxRecheck))
			s.addEvent("detected/"+string(target.machine.UID), "", detectedUnhealthy(s.check, target))
		}
	}
	return true, nil
}

// healthOf returns the health of a Machine. The order of the rules is that of the Machine API.
func healthOf(spec *machinev1beta1.MachineHealthCheckSpec, machine *machinev1beta1.Machine, node *corev1.Node, now time.Time) healthResult {
	switch {
	case failed(machine):
		return healthResult{remediate: true, since: lastUpdated(machine), why: "its phase is Failed"}
	case machine.Status.NodeRef == nil:
		return checkStartup(startupTimeout(spec), machine, now)
	case node == nil:
		why := fmt.Sprintf("its Node %s does not exist", machine.Status.NodeRef.Name)
		return healthResult{remediate: true, since: lastUpdated(machine), why: why}
	default:
		return checkNode(spec.UnhealthyConditions, node, now)
	}
}

// checkStartup returns the health of a Machine without a Node.
func checkStartup(timeout time.Duration, machine *machinev1beta1.Machine, now time.Time) healthResult {
	if timeout == 0 {
		return healthResult{}
	}
	waiting := healthResult{starting: true, recheck: timeout, why: fmt.Sprintf("it has no Node yet; the startup timeout is %s", timeout)}
	if machine.Status.LastUpdated == nil {
		return waiting
	}
	since := startOf(machine)
	due := since.Add(timeout)
	if due.Before(now) {
		return healthResult{remediate: true, since: since, why: fmt.Sprintf("it has had no Node for more than %s", timeout)}
	}
	waiting.recheck = due.Sub(now) + time.Second
	return waiting
}

// startOf returns when the wait for a Node began: with the instance, or with the Machine while there is none, so that one whose instance
// cannot be created is replaced. The time of the last status write would move with every attempt. Where it is unknown whether there is an instance, or another API was
// authoritative for the Machine, it begins when that was last reported.
func startOf(machine *machinev1beta1.Machine) time.Time {
	start := machine.CreationTimestamp.Time
	begin := func(kind machinev1beta1.ConditionType, statuses ...corev1.ConditionStatus) {
		found := machineapi.FindCondition(machine.Status.Conditions, kind)
		if found != nil && slices.Contains(statuses, found.Status) && found.LastTransitionTime.After(start) {
			start = found.LastTransitionTime.Time
		}
	}
	begin(machinev1beta1.InstanceExistsCondition, corev1.ConditionTrue, corev1.ConditionUnknown)
	begin(machineapi.Paused, corev1.ConditionFalse)
	if updated := machine.Status.LastUpdated; updated != nil && updated.Time.Before(start) { // of another clock
		return updated.Time
	}
	return start
}

// checkNode returns the health of a Machine from the conditions of its Node: one that has lasted longer than its timeout is enough. A condition
// that the Node lacks never counts.
func checkNode(unhealthy []machinev1beta1.UnhealthyCondition, node *corev1.Node, now time.Time) healthResult {
	var out healthResult
	for _, wanted := range unhealthy {
		condition := findCondition(node, wanted.Type)
		if condition == nil || condition.Status != wanted.Status {
			continue
		}
		since := condition.LastTransitionTime.Time
		why := fmt.Sprintf("the condition %s of its Node %s has been %s since %s; the timeout is %s",
			wanted.Type, node.Name, wanted.Status, since.UTC().Format(time.RFC3339), wanted.Timeout.Duration)
		due := since.Add(wanted.Timeout.Duration)
		recheck := due.Sub(now) + time.Second
		switch {
		case due.Before(now) && (!out.remediate || since.Before(out.since)):
			out = healthResult{remediate: true, since: since, why: why}
		case !due.Before(now) && !out.remediate && (out.recheck == 0 || recheck < out.recheck):
			out = healthResult{recheck: recheck, why: why}
		}
	}
	return out
}

func findCondition(node *corev1.Node, kind corev1.NodeConditionType) *corev1.NodeCondition {
	for i := range node.Status.Conditions {
		if node.Status.Conditions[i].Type == kind {
			return &node.Status.Conditions[i]
		}
	}
	return nil
}

func startupTimeout(spec *machinev1beta1.MachineHealthCheckSpec) time.Duration {
	if spec.NodeStartupTimeout == nil {
		return defaultStartupTimeout
	}
	return spec.NodeStartupTimeout.Duration
}

func failed(machine *machinev1beta1.Machine) bool {
	return machineapi.Phase(machine) == machinev1beta1.PhaseFailed
}

// lastUpdated returns the best estimate of when a Machine became unhealthy where no other time is known.
func lastUpdated(machine *machinev1beta1.Machine) time.Time {
	switch {
	case machine.Status.LastUpdated != nil:
		return machine.Status.LastUpdated.Time
	case machine.DeletionTimestamp != nil:
		return machine.DeletionTimestamp.Time
	default:
		return machine.CreationTimestamp.Time
	}
}
