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

// defaultStartupTimeout holds where the CRD's default has not been filled in.
const defaultStartupTimeout = 10 * time.Minute

// verdict is how a Machine does.
type verdict struct {
	// remediate is whether the Machine must be remediated now.
	remediate bool
	// since is when the trouble began, if remediate.
	since time.Time
	// recheck is when the Machine will have to be remediated unless something changes; zero for never.
	recheck time.Duration
	// starting is whether the Machine has no Node yet and may still take its time.
	starting bool
	// why tells people what is wrong; empty when nothing is.
	why string
}

// diagnosis judges each target.
type diagnosis struct{}

// Reconcile implements step.
func (*diagnosis) Reconcile(_ context.Context, s *scope) (bool, error) {
	for _, target := range s.targets {
		target.verdict = judge(&s.check.Spec, target.machine, target.node, s.now)
		if target.verdict.recheck > 0 {
			s.RequeueAfter(min(target.verdict.recheck, maxRecheck))
			s.say("detected/"+string(target.machine.UID), "", detectedUnhealthy(target))
		}
	}
	return true, nil
}

// judge tells how a Machine does. The order of its rules is the Machine API's.
func judge(spec *machinev1beta1.MachineHealthCheckSpec, machine *machinev1beta1.Machine, node *corev1.Node, now time.Time) verdict {
	switch {
	case failed(machine):
		return verdict{remediate: true, since: lastUpdated(machine), why: "its phase is Failed"}
	case machine.Status.NodeRef == nil:
		return judgeStart(startupTimeout(spec), machine, now)
	case node == nil:
		why := fmt.Sprintf("its Node %s does not exist", machine.Status.NodeRef.Name)
		return verdict{remediate: true, since: lastUpdated(machine), why: why}
	default:
		return judgeNode(spec.UnhealthyConditions, node, now)
	}
}

// judgeStart judges a Machine without a Node.
func judgeStart(timeout time.Duration, machine *machinev1beta1.Machine, now time.Time) verdict {
	if timeout == 0 {
		return verdict{}
	}
	waiting := verdict{starting: true, recheck: timeout, why: fmt.Sprintf("it has no Node yet; the startup timeout is %s", timeout)}
	if machine.Status.LastUpdated == nil {
		return waiting
	}
	since := startOf(machine)
	due := since.Add(timeout)
	if due.Before(now) {
		return verdict{remediate: true, since: since, why: fmt.Sprintf("it has had no Node for more than %s", timeout)}
	}
	waiting.recheck = due.Sub(now) + time.Second
	return waiting
}

// startOf returns when the wait for a Node began: with the instance, or with the Machine while there is none, so that one that cannot be made is
// replaced. The time of the last status write would move with every try. Where nobody can tell whether there is an instance, or the Machine was
// another API's, it begins when that was last said.
func startOf(machine *machinev1beta1.Machine) time.Time {
	start := machine.CreationTimestamp.Time
	begin := func(kind machinev1beta1.ConditionType, statuses ...corev1.ConditionStatus) {
		said := machineapi.FindCondition(machine.Status.Conditions, kind)
		if said != nil && slices.Contains(statuses, said.Status) && said.LastTransitionTime.After(start) {
			start = said.LastTransitionTime.Time
		}
	}
	begin(machinev1beta1.InstanceExistsCondition, corev1.ConditionTrue, corev1.ConditionUnknown)
	begin(machineapi.Paused, corev1.ConditionFalse)
	if updated := machine.Status.LastUpdated; updated != nil && updated.Time.Before(start) { // of another clock
		return updated.Time
	}
	return start
}

// judgeNode judges a Machine by the conditions of its Node: one that has lasted for longer than allowed is enough. A condition that
// the Node lacks never counts.
func judgeNode(unhealthy []machinev1beta1.UnhealthyCondition, node *corev1.Node, now time.Time) verdict {
	var out verdict
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
			out = verdict{remediate: true, since: since, why: why}
		case !due.Before(now) && !out.remediate && (out.recheck == 0 || recheck < out.recheck):
			out = verdict{recheck: recheck, why: why}
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

// lastUpdated is the best guess at when a Machine got into a trouble that leaves no time of its own.
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
