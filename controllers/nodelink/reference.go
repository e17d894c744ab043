package nodelink

import (
	"context"
	"fmt"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// setNodeRef sets nodeRef in the Machine's status. It is never cleared.
type setNodeRef struct {
	client client.Client
	clock  clock.PassiveClock
}

// Reconcile implements pipeline.Step.
func (r *setNodeRef) Reconcile(ctx context.Context, s *scope) (bool, error) {
	if refersTo(s.machine, s.node) {
		return true, nil
	}
	before := s.machine.DeepCopy()
	now := metav1.NewTime(r.clock.Now())
	s.machine.Status.NodeRef = &corev1.ObjectReference{Kind: "Node", Name: s.node.Name, UID: s.node.UID}
	s.machine.Status.LastUpdated = &now
	if err := r.client.Status().Patch(ctx, s.machine, client.MergeFrom(before)); err != nil {
		// The Machine no longer exists.
		if client.IgnoreNotFound(err) == nil {
			return false, nil
		}
		return false, fmt.Errorf("writing nodeRef into the status of Machine %s: %w", keyOf(before), err)
	}
	log.FromContext(ctx).Info("Linked a Machine to its Node", "Machine", keyOf(s.machine))
	return true, nil
}

// refersTo compares the UID, so that another Node of the same name is not the same.
func refersTo(machine *machinev1beta1.Machine, node *corev1.Node) bool {
	ref := machine.Status.NodeRef
	return ref != nil && ref.Kind == "Node" && ref.Name == node.Name && ref.UID == node.UID
}
