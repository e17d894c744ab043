package machinehealthcheck

import (
	"context"
	"fmt"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// target is a Machine that a MachineHealthCheck selects.
type target struct {
	// machine belongs to the cache: read only.
	machine *machinev1beta1.Machine
	// node is the Node that the Machine refers to; nil when it refers to none, or to one that does not exist. Read only.
	node *corev1.Node
	// deleting is whether the Machine is being deleted.
	deleting bool
	// annotated is whether the Machine has externalAnnotation.
	annotated bool
	// requested is whether there is an external remediation request for the Machine, set by readRequests.
	requested bool
	// health is set by checkHealth.
	health healthResult
}

// nodeName returns the name of the Node that the Machine refers to, which may not exist; empty when it refers to none.
func (t *target) nodeName() string {
	if t.machine.Status.NodeRef == nil {
		return ""
	}
	return t.machine.Status.NodeRef.Name
}

// healthy reports whether the Machine is healthy and not under remediation.
func (t *target) healthy() bool {
	return !t.health.remediate && t.health.recheck == 0 && !t.deleting && t.node != nil && !t.annotated
}

// inFlight reports whether the Machine is under remediation. The request of a healthy Machine is to be deleted.
func (t *target) inFlight() bool {
	return t.deleting || t.annotated || t.requested && !t.healthy()
}

// selectTargets selects the targets.
type selectTargets struct {
	client client.Client
	// reader reads from the API server.
	reader  client.Reader
	metrics *Metrics
}

// Reconcile implements pipeline.Step. With an invalid selector there are no targets; a change of the MachineHealthCheck triggers a reconcile.
func (f *selectTargets) Reconcile(ctx context.Context, s *scope) (bool, error) {
	selector, err := metav1.LabelSelectorAsSelector(&s.check.Spec.Selector)
	if err != nil {
		f.metrics.covered(s.check, 0)
		f.metrics.shortCircuited(s.check, true)
		setInvalid(s, counts{}, invalidSelectorReason, fmt.Sprintf("spec.selector cannot be read: %v; fix the selector", err))
		return false, nil
	}
	machines := &machinev1beta1.MachineList{}
	err = f.client.List(ctx, machines, client.InNamespace(s.check.Namespace), client.MatchingLabelsSelector{Selector: selector},
		client.UnsafeDisableDeepCopy)
	if err != nil {
		return false, fmt.Errorf("listing the Machines: %w", err)
	}
	for i := range machines.Items {
		machine := &machines.Items[i]
		node, err := f.nodeOf(ctx, machine)
		if err != nil {
			return false, err
		}
		s.targets = append(s.targets, s.history.complete(machine, node))
	}
	s.history.prune(s.targets)
	f.metrics.covered(s.check, len(s.targets))
	return true, nil
}

// nodeOf returns the Node that the Machine refers to, nil when there is none. A Machine whose Node does not exist is remediated at once, so
// the API server is read when the cache lacks it.
func (f *selectTargets) nodeOf(ctx context.Context, machine *machinev1beta1.Machine) (*corev1.Node, error) {
	if machine.Status.NodeRef == nil {
		return nil, nil
	}
	node, key := &corev1.Node{}, types.NamespacedName{Name: machine.Status.NodeRef.Name}
	err := f.client.Get(ctx, key, node, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		err = f.reader.Get(ctx, key, node)
	}
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("getting the Node of Machine %s: %w", machine.Name, err)
	}
	if err != nil {
		return nil, nil
	}
	return node, nil
}
