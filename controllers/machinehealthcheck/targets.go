package machinehealthcheck

import (
	"context"
	"fmt"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
)

// target is a Machine that a MachineHealthCheck selects.
type target struct {
	// machine belongs to the cache: read only.
	machine *machinev1beta1.Machine
	// node is the Node that the Machine refers to; nil when it refers to none, or to one that does
	// not exist. Read only.
	node *corev1.Node
	// deleting is whether the Machine is being deleted.
	deleting bool
	// annotated is whether the Machine has externalAnnotation.
	annotated bool
	// requested is whether there is an external remediation request for the Machine, set by
	// readRequests.
	requested bool
	// health is set by checkHealth.
	health healthResult
}

// nodeName returns the name of the Node that the Machine refers to, which may not exist; empty when
// it refers to none.
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

// inFlight reports whether the Machine is under remediation. The request of a healthy Machine is to
// be deleted.
func (t *target) inFlight() bool {
	return t.deleting || t.annotated || t.requested && !t.healthy()
}

// nodesPerPage is how many Nodes are read from the API server at a time.
const nodesPerPage = 500

// selectTargets selects the targets.
type selectTargets struct {
	client client.Client
	// reader reads from the API server.
	reader  client.Reader
	metrics *Metrics
}

// Reconcile implements pipeline.Step. With an invalid selector there are no targets; a change of
// the MachineHealthCheck triggers a reconcile.
func (f *selectTargets) Reconcile(ctx context.Context, s *scope) (bool, error) {
	selector, err := metav1.LabelSelectorAsSelector(&s.check.Spec.Selector)
	if err != nil {
		f.metrics.covered(s.check, 0)
		f.metrics.shortCircuited(s.check, true)
		setInvalid(s, counts{}, invalidSelectorReason, fmt.Sprintf("spec.selector cannot be read: %v; fix the selector", err))
		return false, nil
	}
	reader := client.Reader(f.client)
	if s.live {
		reader = f.reader
	}
	machines, sets := &machinev1beta1.MachineList{}, &machinev1beta1.MachineSetList{}
	for _, list := range []client.ObjectList{machines, sets} {
		if err := reader.List(ctx, list, client.InNamespace(s.check.Namespace), client.UnsafeDisableDeepCopy); err != nil {
			return false, fmt.Errorf("listing the Machines and MachineSets: %w", err)
		}
	}
	var nodes map[string]*corev1.Node
	if s.live { // read after the Machines, so that a new Node is not taken for a missing one
		if nodes, err = f.liveNodes(ctx); err != nil {
			return false, err
		}
	}
	for i := range machines.Items {
		machine := &machines.Items[i]
		if !selector.Matches(labels.Set(machine.Labels)) {
			continue
		}
		node, err := f.nodeOf(ctx, machine, nodes)
		if err != nil {
			return false, err
		}
		_, annotated := machine.Annotations[externalAnnotation]
		s.targets = append(s.targets, &target{machine: machine, node: node, deleting: !machine.DeletionTimestamp.IsZero(),
			annotated: annotated})
	}
	s.missing = missing(sets.Items, machines.Items, selector)
	f.metrics.covered(s.check, len(s.targets))
	return true, nil
}

// nodeOf returns the Node that the Machine refers to, nil when there is none: one of nodes, or that
// of the cache when nodes is nil.
func (f *selectTargets) nodeOf(ctx context.Context, machine *machinev1beta1.Machine,
	nodes map[string]*corev1.Node) (*corev1.Node, error) {
	ref := machine.Status.NodeRef
	if ref == nil {
		return nil, nil
	}
	if nodes != nil {
		return nodes[ref.Name], nil
	}
	node := &corev1.Node{}
	if err := f.client.Get(ctx, types.NamespacedName{Name: ref.Name}, node,
		client.UnsafeDisableDeepCopy); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("getting the Node of Machine %s: %w", machine.Name, err)
	}
	return node, nil
}

// liveNodes returns name and conditions of all Nodes, by name, as the API server has them at one
// time.
func (f *selectTargets) liveNodes(ctx context.Context) (map[string]*corev1.Node, error) {
	nodes := map[string]*corev1.Node{}
	for next := ""; ; {
		page := &corev1.NodeList{}
		if err := f.reader.List(ctx, page, client.Limit(nodesPerPage), client.Continue(next)); err != nil {
			return nil, fmt.Errorf("listing the Nodes: %w", err)
		}
		for i := range page.Items {
			read := &page.Items[i]
			nodes[read.Name] = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: read.Name},
				Status: corev1.NodeStatus{Conditions: read.Status.Conditions}}
		}
		if next = page.Continue; next == "" {
			return nodes, nil
		}
	}
}

// canCreate reports whether a MachineSet can create Machines. One that cannot must not block
// remediation forever.
func canCreate(set *machinev1beta1.MachineSet) bool {
	own, err := metav1.LabelSelectorAsSelector(&set.Spec.Selector)
	return err == nil && own.Matches(labels.Set(set.Spec.Template.Labels)) &&
		set.Spec.Template.Spec.ProviderSpec.Value != nil
}

// missing returns how many selected Machines the MachineSets have yet to create, such as the
// replacements of remediated Machines.
func missing(sets []machinev1beta1.MachineSet, machines []machinev1beta1.Machine, selector labels.Selector) int {
	has := map[types.UID]int{}
	for i := range machines {
		if owner := metav1.GetControllerOfNoCopy(&machines[i]); owner != nil {
			has[owner.UID]++
		}
	}
	count := 0
	for i := range sets {
		set := &sets[i]
		creates := set.DeletionTimestamp.IsZero() && machineapi.AuthorityOfMachineSet(set).IsMachineAPI()
		if creates && canCreate(set) && selector.Matches(labels.Set(set.Spec.Template.Labels)) {
			count += max(0, int(ptr.Deref(set.Spec.Replicas, 1))-has[set.UID])
		}
	}
	return count
}
