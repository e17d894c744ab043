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

// target is a Machine that a MachineHealthCheck watches over.
type target struct {
	// machine belongs to the cache: read only.
	machine *machinev1beta1.Machine
	// node is the Node that the Machine refers to; nil when it refers to none, or to one that is gone. Read only.
	node *corev1.Node
	// deleting is whether the Machine is being deleted.
	deleting bool
	// annotated is whether the Machine carries the annotation that asks for external remediation.
	annotated bool
	// requested is whether there is an external remediation request for the Machine, set by requests.
	requested bool
	// verdict is set by diagnosis.
	verdict verdict
}

// healthy reports whether nothing at all is wrong with the Machine.
func (t *target) healthy() bool {
	return !t.verdict.remediate && t.verdict.recheck == 0 && !t.deleting && t.node != nil && !t.annotated
}

// inFlight reports whether the Machine is under remediation. The request of a healthy Machine is about to be deleted.
func (t *target) inFlight() bool {
	return t.deleting || t.annotated || t.requested && !t.healthy()
}

// selection finds the targets.
type selection struct {
	client client.Client
	// reader reads from the API server.
	reader  client.Reader
	metrics *Metrics
}

// Reconcile implements step. A selector that cannot be read covers nothing; only a change of the MachineHealthCheck helps, and that
// is an event.
func (f *selection) Reconcile(ctx context.Context, s *scope) (bool, error) {
	selector, err := metav1.LabelSelectorAsSelector(&s.check.Spec.Selector)
	if err != nil {
		f.metrics.covered(s.check, 0)
		f.metrics.shortCircuited(s.check, true)
		showBlocked(s, tally{}, invalidSelectorReason, fmt.Sprintf("spec.selector cannot be read: %v; fix the selector", err))
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
		s.targets = append(s.targets, s.past.complete(machine, node))
	}
	s.past.prune(s.targets)
	f.metrics.covered(s.check, len(s.targets))
	return true, nil
}

// nodeOf answers the Node that the Machine refers to, nil when there is none. A Machine whose Node is gone is remediated at once, so
// that is not taken from a cache that may have fallen behind.
func (f *selection) nodeOf(ctx context.Context, machine *machinev1beta1.Machine) (*corev1.Node, error) {
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
