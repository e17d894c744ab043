package machinehealthcheck

import (
	"context"
	"fmt"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"

	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
)

// defaultStartupTimeout applies if the CRD's default is not set.
const defaultStartupTimeout = 10 * time.Minute

// healthResult is whether a Machine is healthy, and when it is to be remediated.
type healthResult struct {
	// remediate is whether the Machine is to be remediated now.
	remediate bool
	// since is when it became unhealthy, if remediate.
	since time.Time
	// recheck is after which time the Machine is to be remediated unless it recovers; zero for
	// never.
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
			if !target.health.starting {
				s.addEvent("detected/"+string(target.machine.UID), "", detectedUnhealthy(s.check, target))
			}
		}
	}
	return true, nil
}

// healthOf returns the health of a Machine. The order of the rules is that of the Machine API.
func healthOf(spec *machinev1beta1.MachineHealthCheckSpec, machine *machinev1beta1.Machine, node *corev1.Node,
	now time.Time) healthResult {
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
	waiting := healthResult{starting: true, recheck: timeout,
		why: fmt.Sprintf("it has no Node yet; the startup timeout is %s", timeout)}
	if machine.Status.LastUpdated == nil {
		return waiting
	}
	since := startOf(machine)
	if since.IsZero() {
		return waiting
	}
	due := since.Add(timeout)
	if due.Before(now) {
		return healthResult{remediate: true, since: since, why: fmt.Sprintf("it has had no Node for more than %s", timeout)}
	}
	waiting.recheck = due.Sub(now) + time.Second
	return waiting
}

// checkNode returns the health of a Machine from the conditions of its Node. One condition that has
// exceeded its timeout is enough. A missing condition never counts.
func checkNode(unhealthy []machinev1beta1.UnhealthyCondition, node *corev1.Node, now time.Time) healthResult {
	var out healthResult
	for _, wanted := range unhealthy {
		condition := findCondition(node, wanted.Type)
		if condition == nil || condition.Status != wanted.Status {
			continue
		}
		ahead := clockAhead(condition, now)
		since := condition.LastTransitionTime.Add(-ahead)
		why := fmt.Sprintf("the condition %s of its Node %s has been %s since %s; the timeout is %s",
			wanted.Type, node.Name, wanted.Status, since.UTC().Format(time.RFC3339), wanted.Timeout.Duration)
		if ahead > 0 {
			why += fmt.Sprintf("; the Node's clock is at least %s ahead: fix its time synchronization", ahead.Round(time.Second))
		}
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

// clockAhead returns by how much the Node's clock was ahead at the transition, at least: by the time
// until the last heartbeat. If the transition is in the past, the clock may have jumped since then.
// The control plane sets Unknown, by its own clock.
func clockAhead(condition *corev1.NodeCondition, now time.Time) time.Duration {
	if condition.Status == corev1.ConditionUnknown || !condition.LastTransitionTime.After(now) {
		return 0
	}
	return max(0, condition.LastHeartbeatTime.Sub(now))
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

// lastUpdated estimates when a Machine became unhealthy if no better time is known.
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
