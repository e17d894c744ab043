package nodelink

import (
	"context"
	"fmt"
	"slices"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/machine-iac/machine-iac-operator/controllers/pipeline"
)

// setNodeRef sets nodeRef in the Machine's status. It is never cleared. A drain relies on it, so it
// is not written from a lagging cache.
type setNodeRef struct {
	client client.Client
	reader client.Reader
	clock  clock.PassiveClock
}

// Reconcile implements pipeline.Step.
func (r *setNodeRef) Reconcile(ctx context.Context, s *scope) (bool, error) {
	if refersTo(s.machine, s.node) {
		return true, nil
	}
	if current, err := r.isCurrent(ctx, s.node); err != nil || !current {
		return false, err // the cache will show what has changed
	}
	if s.awaitsAddress {
		return true, nil
	}
	before := s.machine.DeepCopy()
	now := metav1.NewTime(r.clock.Now())
	s.machine.Status.NodeRef = &corev1.ObjectReference{Kind: "Node", Name: s.node.Name, UID: s.node.UID}
	s.machine.Status.LastUpdated = &now
	if err := r.client.Status().Patch(ctx, s.machine, pipeline.IfUnchanged(before)); err != nil {
		return false, s.Written(fmt.Errorf("writing nodeRef into the status of Machine %s: %w", keyOf(before), err))
	}
	log.FromContext(ctx).Info("Linked a Machine to its Node", "Machine", keyOf(s.machine))
	return true, nil
}

// isCurrent reports whether the API server has the Node, with the values by which it was matched.
func (r *setNodeRef) isCurrent(ctx context.Context, node *corev1.Node) (bool, error) {
	live := &corev1.Node{}
	if err := r.reader.Get(ctx, client.ObjectKeyFromObject(node), live); apierrors.IsNotFound(err) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("getting Node %s from the API server: %w", node.Name, err)
	}
	return live.UID == node.UID && live.DeletionTimestamp.IsZero() && live.Spec.ProviderID == node.Spec.ProviderID &&
		slices.Equal(nodeInternalIP(live), nodeInternalIP(node)), nil
}

// refersTo compares the UID, so that another Node of the same name is not the same.
func refersTo(machine *machinev1beta1.Machine, node *corev1.Node) bool {
	ref := machine.Status.NodeRef
	return ref != nil && ref.Kind == "Node" && ref.Name == node.Name && ref.UID == node.UID
}
