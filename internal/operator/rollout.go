package operator

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// availableFor is how long a Deployment must have been available to count as rolled out, as in
	// machine-api-operator.
	availableFor = 3 * time.Minute
	// rolloutInterval is the requeueAfter of an unfinished rollout.
	rolloutInterval = 5 * time.Second
)

// rolledOut returns nil if an object's Pods run as specified. Otherwise it returns why not, and the
// requeueAfter.
func rolledOut(live *unstructured.Unstructured, now time.Time) (why string, wait time.Duration, err error) {
	switch live.GetKind() {
	case "Deployment":
		found := &appsv1.Deployment{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, found); err != nil {
			return "", 0, fmt.Errorf("reading %s: %w", nameOf(live), err)
		}
		why, wait = deploymentRolledOut(found, now)
	case "DaemonSet":
		found := &appsv1.DaemonSet{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, found); err != nil {
			return "", 0, fmt.Errorf("reading %s: %w", nameOf(live), err)
		}
		why, wait = daemonSetRolledOut(found), rolloutInterval
	}
	if why == "" {
		return "", 0, nil
	}
	return nameOf(live) + ": " + why, wait, nil
}

func deploymentRolledOut(d *appsv1.Deployment, now time.Time) (string, time.Duration) {
	wanted := ptr.Deref(d.Spec.Replicas, 1)
	switch {
	case d.Status.ObservedGeneration < d.Generation:
		return "its controller has not seen the latest change yet", rolloutInterval
	case d.Status.UpdatedReplicas != wanted:
		return fmt.Sprintf("%d of %d replicas are updated", d.Status.UpdatedReplicas, wanted), rolloutInterval
	case d.Status.UnavailableReplicas > 0:
		return fmt.Sprintf("%d of %d replicas are not available", d.Status.UnavailableReplicas, wanted), rolloutInterval
	}
	for _, one := range d.Status.Conditions {
		if one.Type != appsv1.DeploymentAvailable || one.Status != corev1.ConditionTrue {
			continue
		}
		if left := availableFor - now.Sub(one.LastTransitionTime.Time); left > 0 {
			return fmt.Sprintf("it is available for less than %s", availableFor), left
		}
		return "", 0
	}
	return "it is not available", rolloutInterval
}

func daemonSetRolledOut(d *appsv1.DaemonSet) string {
	wanted := d.Status.DesiredNumberScheduled
	switch {
	case d.Status.ObservedGeneration < d.Generation:
		return "its controller has not seen the latest change yet"
	case d.Status.UpdatedNumberScheduled != wanted:
		return fmt.Sprintf("%d of %d Pods are updated", d.Status.UpdatedNumberScheduled, wanted)
	case d.Status.NumberUnavailable > 0:
		return fmt.Sprintf("%d of %d Pods are not available", d.Status.NumberUnavailable, wanted)
	}
	return ""
}

// workers returns why the first installation is incomplete although the controllers run:
// MachineSets lack Machines, or almost none of the Machines run.
func (r *Reconciler) workers(ctx context.Context) (string, error) {
	sets, machines := &machinev1beta1.MachineSetList{}, &machinev1beta1.MachineList{}
	for _, list := range []client.ObjectList{sets, machines} {
		if err := r.live.List(ctx, list, client.InNamespace(r.options.Namespace)); err != nil {
			return "", fmt.Errorf("listing the Machines: %w", err)
		}
	}
	var lacking []string
	expected := 0
	for _, set := range sets.Items {
		owned := 0
		for _, machine := range machines.Items {
			if slices.ContainsFunc(machine.OwnerReferences,
				func(owner metav1.OwnerReference) bool { return owner.UID == set.UID }) {
				owned++
			}
		}
		wanted := int(ptr.Deref(set.Spec.Replicas, 1))
		if expected += wanted; owned != wanted {
			lacking = append(lacking, fmt.Sprintf("MachineSet %s has %d of %d Machines", set.Name, owned, wanted))
		}
	}
	if len(lacking) > 0 {
		return strings.Join(lacking, ", "), nil
	}
	running := 0
	for _, machine := range machines.Items {
		if ptr.Deref(machine.Status.Phase, "") == machinev1beta1.PhaseRunning {
			running++
		}
	}
	if expected > 1 && running < 2 {
		return fmt.Sprintf("%d of at least 2 Machines are Running", running), nil
	}
	return "", nil
}
