package drain

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// controlPlaneLabels mark Nodes of the control plane, whatever their value.
var controlPlaneLabels = []string{"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"}

// gate lets one control-plane Node at a time be cordoned. A Node that is cordoned already goes through: its drain began before.
type gate struct {
	nodes typedcorev1.NodeInterface
	// turn is held from the look at the other Nodes until the cordon is done.
	turn chan struct{}
}

func newGate(nodes typedcorev1.NodeInterface) *gate {
	return &gate{nodes: nodes, turn: make(chan struct{}, 1)}
}

// cordon cordons the Node, unless another control-plane Node stands in the way, whose name it answers then.
func (g *gate) cordon(ctx context.Context, node *corev1.Node, cordon func() error) (string, error) {
	if !gated(node) {
		return "", cordon()
	}
	select {
	case g.turn <- struct{}{}:
		defer func() { <-g.turn }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	others, err := g.controlPlane(ctx)
	if err != nil {
		return "", err
	}
	if other := inTheWay(node, others); other != "" {
		return other, nil
	}
	return "", cordon()
}

// controlPlane answers the Nodes of the control plane as they are now, not as a cache knows them.
func (g *gate) controlPlane(ctx context.Context) ([]corev1.Node, error) {
	var out []corev1.Node
	for _, label := range controlPlaneLabels {
		list, err := g.nodes.List(ctx, metav1.ListOptions{LabelSelector: label})
		if err != nil {
			return nil, fmt.Errorf("listing the Nodes of the control plane: %w", err)
		}
		out = append(out, list.Items...)
	}
	return out, nil
}

// gated reports whether the Node must look at others before it is cordoned.
func gated(node *corev1.Node) bool {
	return isControlPlane(node) && !node.Spec.Unschedulable
}

// inTheWay answers the name of a control-plane Node other than node that is cordoned; the first by name, so that it is the same
// each time.
func inTheWay(node *corev1.Node, others []corev1.Node) string {
	var names []string
	for i := range others {
		if other := &others[i]; other.Name != node.Name && other.Spec.Unschedulable && isControlPlane(other) {
			names = append(names, other.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return slices.Min(names)
}

func isControlPlane(node *corev1.Node) bool {
	return slices.ContainsFunc(controlPlaneLabels, func(label string) bool {
		_, ok := node.Labels[label]
		return ok
	})
}
