package machineapi

import (
	"context"
	"fmt"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// NodeMachineAnnotation names, on a Node, its Machine as namespace/name.
const NodeMachineAnnotation = "machine.openshift.io/machine"

// ProviderID returns a Machine's providerID, or "" if it has none.
func ProviderID(machine *machinev1beta1.Machine) string {
	return ptr.Deref(machine.Spec.ProviderID, "")
}

// NodeIndex is the name of a cache index that finds Machines by the Node that they refer to. The
// cache is shared and no index may be registered twice, so each controller has one of its own name.
type NodeIndex string

// Register registers the index.
func (i NodeIndex) Register(ctx context.Context, indexer client.FieldIndexer) error {
	if err := indexer.IndexField(ctx, &machinev1beta1.Machine{}, string(i), nodeName); err != nil {
		return fmt.Errorf("indexing Machines by Node: %w", err)
	}
	return nil
}

// Machines returns the Machines that refer to a Node. They belong to the cache: do not modify them.
// Since watches use it, it logs an error and returns none.
func (i NodeIndex) Machines(ctx context.Context, reader client.Reader, node string) []machinev1beta1.Machine {
	machines := &machinev1beta1.MachineList{}
	if err := reader.List(ctx, machines, client.MatchingFields{string(i): node},
		client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "Cannot list the Machines of a Node", "Node", node)
		return nil
	}
	return machines.Items
}

func nodeName(object client.Object) []string {
	machine, ok := object.(*machinev1beta1.Machine)
	if !ok || machine.Status.NodeRef == nil {
		return nil
	}
	return []string{machine.Status.NodeRef.Name}
}
