package nodelink

import (
	"context"
	"fmt"
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
)

// matchMachine finds the Machine of the Node.
type matchMachine struct {
	client   client.Client
	recorder events.EventRecorder
}

// Reconcile implements pipeline.Step. It ends the reconcile when there is no Machine, and fails
// when there is more than one candidate.
func (m *matchMachine) Reconcile(ctx context.Context, s *scope) (bool, error) {
	machines, err := m.machinesOf(ctx, s.node)
	if err != nil {
		return false, err
	}
	if len(machines) == 0 {
		return false, nil
	}
	if len(machines) > 1 {
		return false, m.ambiguous(s.node, "Machines", keys(machines))
	}
	nodes, err := nodesOf(ctx, m.client, machines[0])
	if err != nil {
		return false, err
	}
	nodes = notDeleting(nodes)
	if len(nodes) > 1 {
		return false, m.ambiguous(s.node, "Nodes of Machine "+keyOf(machines[0]), keys(nodes))
	}
	// None, when the cache has changed between two reads; another Node, when that one has the
	// Machine's providerID.
	if len(nodes) == 0 || nodes[0].UID != s.node.UID {
		return false, nil
	}
	s.machine = machines[0]
	return true, nil
}

// ambiguous sends an event about a match that is not unique, and returns an error.
func (m *matchMachine) ambiguous(node *corev1.Node, of string, names []string) error {
	err := fmt.Errorf("matching Node %s: %d %s have the same providerID or InternalIP: %s; make it unique",
		node.Name, len(names), of, strings.Join(names, ", "))
	ambiguousMatch(node, err).Send(m.recorder)
	return err
}

func (m *matchMachine) machinesOf(ctx context.Context, node *corev1.Node) ([]*machinev1beta1.Machine, error) {
	var byID, byIP machinev1beta1.MachineList
	if err := find(ctx, m.client, &byID, providerIDIndex, nodeProviderID(node)...); err != nil {
		return nil, err
	}
	if err := find(ctx, m.client, &byIP, internalIPIndex, nodeInternalIP(node)...); err != nil {
		return nil, err
	}
	machines := best(instanceIDOf(node), pointers(byID.Items), pointers(byIP.Items), machineapi.ProviderID)
	// A Machine that is being deleted does not compete with others. Alone it is still the Node's,
	// which is to be drained and deleted.
	if remaining := notDeleting(machines); len(remaining) > 0 {
		return remaining, nil
	}
	return machines, nil
}

func nodesOf(ctx context.Context, reader client.Reader, machine *machinev1beta1.Machine) ([]*corev1.Node, error) {
	var byID, byIP corev1.NodeList
	if err := find(ctx, reader, &byID, providerIDIndex, machineProviderID(machine)...); err != nil {
		return nil, err
	}
	for _, ip := range machineInternalIPs(machine) {
		var some corev1.NodeList
		if err := find(ctx, reader, &some, internalIPIndex, ip); err != nil {
			return nil, err
		}
		byIP.Items = append(byIP.Items, some.Items...)
	}
	return best(machineapi.ProviderID(machine), pointers(byID.Items), pointers(byIP.Items), instanceIDOf), nil
}

// find lists the objects with a value in an index; none without a value.
func find(ctx context.Context, reader client.Reader, list client.ObjectList, index string, value ...string) error {
	if len(value) == 0 {
		return nil
	}
	if err := reader.List(ctx, list, client.MatchingFields{index: value[0]}); err != nil {
		return fmt.Errorf("listing %T by %s: %w", list, index, err)
	}
	return nil
}

// best returns the candidates that match best: those of the same providerID, else those with the
// same InternalIP whose providerID does not disagree with providerID.
func best[T client.Object](providerID string, byID, byIP []T, idOf func(T) string) []T {
	if len(byID) > 0 {
		return byID
	}
	var out []T
	for _, candidate := range byIP {
		if id := idOf(candidate); id == "" || providerID == "" || id == providerID {
			out = append(out, candidate)
		}
	}
	return out
}

// notDeleting leaves out objects that are being deleted.
func notDeleting[T client.Object](objects []T) []T {
	var out []T
	for _, object := range objects {
		if object.GetDeletionTimestamp().IsZero() {
			out = append(out, object)
		}
	}
	return out
}

// instanceIDOf returns the Node's providerID, or "" if that names no instance: the cloud controller
// managers built into K3s and RKE2 write the Node's name behind k3s:// or rke2://.
func instanceIDOf(node *corev1.Node) string {
	id := node.Spec.ProviderID
	if id == "k3s://"+node.Name || id == "rke2://"+node.Name {
		return ""
	}
	return id
}

func pointers[T any](items []T) []*T {
	out := make([]*T, 0, len(items))
	for i := range items {
		out = append(out, &items[i])
	}
	return out
}

func keys[T client.Object](objects []T) []string {
	out := make([]string, 0, len(objects))
	for _, object := range objects {
		out = append(out, keyOf(object))
	}
	return out
}

// keyOf returns namespace/name, or the name of an object without a namespace.
func keyOf(object client.Object) string {
	if object.GetNamespace() == "" {
		return object.GetName()
	}
	return object.GetNamespace() + "/" + object.GetName()
}
