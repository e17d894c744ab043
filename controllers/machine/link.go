package machine

import (
	"context"
	"fmt"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
)

// linkNode sets the nodeRef of a Machine whose deletion begins and whose Node is not linked, so that
// the Node is drained and deleted.
type linkNode struct {
	client client.Client
	reader client.Reader
}

// Reconcile implements pipeline.Step.
func (l *linkNode) Reconcile(ctx context.Context, s *scope) (bool, error) {
	if s.machine.Status.NodeRef != nil || machineapi.Phase(s.machine) == machinev1beta1.PhaseDeleting ||
		!controllerutil.ContainsFinalizer(s.machine, machinev1beta1.MachineFinalizer) {
		return true, nil
	}
	node, err := unlinkedNode(ctx, l.client, l.reader, s.machine)
	if node != nil {
		s.machine.Status.NodeRef = &corev1.ObjectReference{Kind: "Node", Name: node.Name, UID: node.UID}
	}
	return err == nil, err
}

// unlinkedNode returns the Node with the Machine's providerID, or nil if there is none. The Node is
// only the Machine's if no other Node or Machine has that providerID, and if it is not another
// Machine's. The cache finds it; the API server confirms it.
func unlinkedNode(ctx context.Context, cached client.Client, live client.Reader,
	machine *machinev1beta1.Machine) (*corev1.Node, error) {
	id := machineapi.ProviderID(machine)
	if id == "" {
		return nil, nil
	}
	node, err := onlyNode(ctx, cached, id)
	if err != nil || node == nil {
		return nil, err
	}
	if err := live.Get(ctx, client.ObjectKeyFromObject(node), node); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	owner, annotated := node.Annotations[machineapi.NodeMachineAnnotation]
	if node.Spec.ProviderID != id || annotated && owner != machine.Namespace+"/"+machine.Name {
		return nil, nil
	}
	machines := &machinev1beta1.MachineList{}
	if err := cached.List(ctx, machines, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("finding the Machines of providerID %s: %w", id, err)
	}
	for i := range machines.Items {
		other := &machines.Items[i]
		if ref := other.Status.NodeRef; other.UID != machine.UID &&
			(machineapi.ProviderID(other) == id || ref != nil && ref.Name == node.Name) {
			return nil, nil
		}
	}
	return node, nil
}

// onlyNode returns the name of the one Node with a providerID, or nil if there is none or more than one.
func onlyNode(ctx context.Context, cached client.Client, id string) (*corev1.Node, error) {
	nodes := &corev1.NodeList{}
	if err := cached.List(ctx, nodes, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("finding the Node of providerID %s: %w", id, err)
	}
	var only *corev1.Node
	for i := range nodes.Items {
		if nodes.Items[i].Spec.ProviderID != id {
			continue
		}
		if only != nil {
			return nil, nil
		}
		only = &corev1.Node{}
		only.Name = nodes.Items[i].Name
	}
	return only, nil
}
