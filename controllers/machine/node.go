package machine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
	"github.com/machine-iac/machine-iac-operator/internal/cluster/events"
)

const (
	// NodeLinked is False if an instance has had no Node for nodePatience. It is removed once the
	// Machine has a Node.
	NodeLinked machinev1beta1.ConditionType = "NodeLinked"

	// providerIDDiffers surfaces on NodeLinked if a Node has the Machine's address, but another
	// providerID.
	providerIDDiffers = "ProviderIDDiffers"
	// nodeMissing surfaces on NodeLinked if no Node has the Machine's providerID or address.
	nodeMissing = "NodeMissing"

	// nodePatience is how long an instance may take to get a Node before NodeLinked says why not.
	nodePatience = 5 * time.Minute
)

// reportNode says why a Machine in phase Provisioned has no Node.
type reportNode struct {
	client   client.Client
	recorder events.Recorder
	clock    clock.PassiveClock
}

// Reconcile implements pipeline.Step.
func (r *reportNode) Reconcile(ctx context.Context, s *scope) (bool, error) {
	current := machineapi.FindCondition(s.machine.Status.Conditions, NodeLinked)
	if s.machine.Status.NodeRef != nil {
		if current != nil {
			s.machine.Status.Conditions = machineapi.WithoutCondition(s.machine.Status.Conditions, NodeLinked)
		}
		return true, nil
	}
	exists := machineapi.FindCondition(s.machine.Status.Conditions, machinev1beta1.InstanceExistsCondition)
	if !s.exists || machineapi.Phase(s.machine) != machinev1beta1.PhaseProvisioned || exists == nil {
		return true, nil
	}
	now := r.clock.Now()
	if remaining := exists.LastTransitionTime.Add(nodePatience).Sub(now); remaining > 0 {
		s.RequeueAfter(remaining)
		return true, nil
	}
	nodes := &corev1.NodeList{}
	if err := r.client.List(ctx, nodes, client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "Cannot list Nodes to say why a Machine has none")
		return true, nil
	}
	reason, message := whyUnlinked(s.machine, nodes.Items, exists.LastTransitionTime.Time)
	if reason == "" {
		return true, nil
	}
	if current == nil || current.Message != message {
		nodeNotLinked(s.original, message).Send(r.recorder)
	}
	setCondition(s.machine, condition(NodeLinked, corev1.ConditionFalse, reason, message), now)
	return true, nil
}

// whyUnlinked returns why none of the Nodes is the Machine's, or nothing if one has its providerID:
// the nodelink controller links that one or says why not.
func whyUnlinked(machine *machinev1beta1.Machine, nodes []corev1.Node, since time.Time) (reason, message string) {
	id, addresses := machineapi.ProviderID(machine), internalIPs(machine.Status.Addresses)
	for i := range nodes {
		node := &nodes[i]
		if id != "" && node.Spec.ProviderID == id {
			return "", ""
		}
		own := internalIPs(node.Status.Addresses)
		if len(own) > 0 && slices.Contains(addresses, own[0]) && id != "" && node.Spec.ProviderID != "" {
			return providerIDDiffers, fmt.Sprintf("Node %s has the Machine's InternalIP %s, but providerID %q. The Machine has "+
				"providerID %q, so the Node is not linked. If it is the Machine's, delete the Node and start its kubelet with "+
				"--provider-id=%s or with the cloud's controller manager", node.Name, own[0], node.Spec.ProviderID, id, id)
		}
	}
	return nodeMissing, fmt.Sprintf("No Node has providerID %q or InternalIP %q. The instance has existed since %s. Check "+
		"its console and kubelet, and whether `kubectl get csr` has a pending request of it", id,
		strings.Join(addresses, ", "), since.UTC().Format(time.RFC3339))
}

func internalIPs(addresses []corev1.NodeAddress) []string {
	var out []string
	for _, address := range addresses {
		if address.Type == corev1.NodeInternalIP && address.Address != "" {
			out = append(out, address.Address)
		}
	}
	return out
}
