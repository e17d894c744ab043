package machineset

import (
	"context"
	"fmt"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/controllers/pipeline"
)

// maxLabelSelector is how many characters status.labelSelector may have.
const maxLabelSelector = 4096

// summarizeReplicas sets the status from the replicas, as they were when the reconcile began.
type summarizeReplicas struct {
	client client.Client
	clock  clock.PassiveClock
}

// Reconcile implements pipeline.Step.
func (o *summarizeReplicas) Reconcile(ctx context.Context, s *scope) (bool, error) {
	since, err := o.readySince(ctx, s.replicas)
	if err != nil {
		return false, err
	}
	s.RequeueAfter(summarize(s.set, s.replicas, since, o.clock.Now()))
	return true, nil
}

// readySince returns since when the Node of each Machine has been Ready, by the Machine's UID.
// Others are absent.
func (o *summarizeReplicas) readySince(ctx context.Context,
	machines []*machinev1beta1.Machine) (map[types.UID]time.Time, error) {
	since := make(map[types.UID]time.Time, len(machines))
	for _, machine := range machines {
		if machine.Status.NodeRef == nil {
			continue
		}
		node := &corev1.Node{}
		// It is read only: copies of thousands would be most of the work.
		err := o.client.Get(ctx, types.NamespacedName{Name: machine.Status.NodeRef.Name}, node, client.UnsafeDisableDeepCopy)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("getting the Node of Machine %s: %w", machine.Name, err)
		}
		if ready := readyCondition(node); err == nil && ready.Status == corev1.ConditionTrue {
			since[machine.UID] = ready.LastTransitionTime.Time
		}
	}
	return since, nil
}

// summarize sets the status of set and returns when the next replica becomes available; zero for
// none.
func summarize(
	set *machinev1beta1.MachineSet, replicas []*machinev1beta1.Machine, readySince map[types.UID]time.Time, now time.Time,
) time.Duration {
	var (
		labeled, ready, available int32
		next                      time.Duration
		wanted                    = labels.SelectorFromSet(set.Spec.Template.Labels)
		minReady                  = time.Duration(set.Spec.MinReadySeconds) * time.Second
	)
	for _, replica := range replicas {
		if wanted.Matches(labels.Set(replica.Labels)) {
			labeled++
		}
		since, ok := readySince[replica.UID]
		if !ok {
			continue
		}
		ready++
		left := minReady - now.Sub(since)
		if minReady == 0 || left < 0 {
			available++
			continue
		}
		left += time.Millisecond // it must have been ready for longer than minReadySeconds
		if next == 0 || left < next {
			next = left
		}
	}
	status := &set.Status
	status.Replicas = int32(len(replicas))
	status.FullyLabeledReplicas = labeled
	status.ReadyReplicas = ready
	status.AvailableReplicas = available
	status.ObservedGeneration = set.Generation
	status.LabelSelector = formatSelector(&set.Spec.Selector)
	return next
}

// formatSelector formats the selector for the scale subresource. One that is too long is left out,
// as the API server would refuse the whole status.
func formatSelector(selector *metav1.LabelSelector) string {
	text := metav1.FormatLabelSelector(selector)
	if len(text) > maxLabelSelector {
		return ""
	}
	return text
}

// patchStatus writes the status when it differs. Only a patch of conditions, a list that others
// write to as well, requires an unchanged MachineSet.
func (c *Controller) patchStatus(ctx context.Context, before, after *machinev1beta1.MachineSet) error {
	if equality.Semantic.DeepEqual(before.Status, after.Status) {
		return nil
	}
	patch := client.MergeFrom(before)
	if !equality.Semantic.DeepEqual(before.Status.Conditions, after.Status.Conditions) {
		patch = pipeline.IfUnchanged(before)
	}
	if err := c.client.Status().Patch(ctx, after.DeepCopy(), patch); err != nil {
		return fmt.Errorf("writing the status of the MachineSet: %w", err)
	}
	return nil
}

// readyCondition returns the Ready condition of a Node, or one without status.
func readyCondition(node *corev1.Node) corev1.NodeCondition {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition
		}
	}
	return corev1.NodeCondition{}
}
