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

// controlPlaneLock lets one control-plane Node be cordoned at a time. A Node that is already
// cordoned proceeds: its drain began earlier.
type controlPlaneLock struct {
	nodes typedcorev1.NodeInterface
	// semaphore is held from reading the other Nodes until the cordon is written.
	semaphore chan struct{}
}

func newControlPlaneLock(nodes typedcorev1.NodeInterface) *controlPlaneLock {
	return &controlPlaneLock{nodes: nodes, semaphore: make(chan struct{}, 1)}
}

// cordon cordons the Node, unless another control-plane Node is cordoned, whose name it then
// returns.
func (g *controlPlaneLock) cordon(ctx context.Context, node *corev1.Node, cordon func() error) (string, error) {
	if !needsLock(node) {
		return "", cordon()
	}
	select {
	case g.semaphore <- struct{}{}:
		defer func() { <-g.semaphore }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	others, err := g.controlPlane(ctx)
	if err != nil {
		return "", err
	}
	if other := otherCordoned(node, others); other != "" {
		return other, nil
	}
	return "", cordon()
}

// controlPlane returns the Nodes of the control plane, read from the API server.
func (g *controlPlaneLock) controlPlane(ctx context.Context) ([]corev1.Node, error) {
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

// needsLock reports whether the Node may be cordoned only while no other control-plane Node is.
func needsLock(node *corev1.Node) bool {
	return isControlPlane(node) && !node.Spec.Unschedulable
}

// otherCordoned returns the name of a cordoned control-plane Node other than node: the first by
// name, so that it is the same each time.
func otherCordoned(node *corev1.Node, others []corev1.Node) string {
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
