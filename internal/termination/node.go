package termination

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/clock"
)

// The condition of a Node whose instance the cloud is about to terminate, as machine-api-operator sets it.
const (
	ConditionType    corev1.NodeConditionType = "Terminating"
	ConditionReason                           = "TerminationRequested"
	conditionMessage                          = "The cloud provider has marked this instance for termination"
)

// apiTimeout is how long one request to the API server may take.
const apiTimeout = 10 * time.Second

// Node is the Node that the handler runs on.
type Node struct {
	// Name is its name.
	Name string
	// Connect returns a client for Nodes. It is called anew for each attempt: a kubelet's credentials are replaced while the handler waits.
	Connect func() (typedcorev1.NodeInterface, error)
	// Clock is the real one when nil.
	Clock clock.Clock
}

func (n *Node) clock() clock.Clock {
	if n.Clock == nil {
		return clock.RealClock{}
	}
	return n.Clock
}

// Mark sets the condition, and reports whether it had to be written. One that is True is left as it is.
func (n *Node) Mark(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	nodes, node, err := n.get(ctx)
	if err != nil {
		return false, err
	}
	marked := slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == ConditionType && c.Status == corev1.ConditionTrue
	})
	if marked {
		return false, nil
	}
	patch, err := n.patch()
	if err != nil {
		return false, err
	}
	if _, err := nodes.Patch(ctx, n.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		return false, apiProblem(fmt.Errorf("writing the condition %s of Node %s: %w", ConditionType, n.Name, err))
	}
	return true, nil
}

// Cloud returns the cloud that the Node is in, by its provider ID. It waits for the API server, and for a Node that has none yet.
func (n *Node) Cloud(ctx context.Context, log logr.Logger) (Cloud, error) {
	errs := reporter{clock: n.clock(), log: log}
	for delay := markDelay; ; delay = min(2*delay, maxDelay) {
		id, err := n.providerID(ctx)
		if err == nil {
			errs.recovered()
			return CloudOf(id)
		}
		if ctx.Err() == nil {
			errs.failed(err)
		}
		if !sleep(ctx, n.clock(), delay) {
			return "", fmt.Errorf("finding the cloud of Node %s: %w", n.Name, err)
		}
	}
}

func (n *Node) providerID(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	_, node, err := n.get(ctx)
	if err != nil {
		return "", err
	}
	if node.Spec.ProviderID == "" {
		return "", &problem{"NoProviderID", fmt.Errorf("Node %s has no provider ID yet, which says what cloud it is in; --cloud would say so", n.Name)}
	}
	return node.Spec.ProviderID, nil
}

func (n *Node) get(ctx context.Context) (typedcorev1.NodeInterface, *corev1.Node, error) {
	nodes, err := n.Connect()
	if err != nil {
		return nil, nil, &problem{"Kubeconfig", err}
	}
	node, err := nodes.Get(ctx, n.Name, metav1.GetOptions{})
	if err != nil {
		return nil, nil, apiProblem(fmt.Errorf("reading Node %s: %w", n.Name, err))
	}
	return nodes, node, nil
}

// patch is a patch that merges the condition into those of the Node by its type, so that it conflicts with no write of the kubelet.
func (n *Node) patch() ([]byte, error) {
	now := metav1.NewTime(n.clock().Now())
	return json.Marshal(map[string]any{"status": map[string]any{"conditions": []corev1.NodeCondition{{
		Type: ConditionType, Status: corev1.ConditionTrue, Reason: ConditionReason, Message: conditionMessage,
		LastHeartbeatTime: now, LastTransitionTime: now,
	}}}})
}

// apiProblem returns an error of the API server as a problem of the kind that its reason names.
func apiProblem(err error) error {
	reason := apierrors.ReasonForError(err)
	if reason == metav1.StatusReasonUnknown {
		if errors.Is(err, context.DeadlineExceeded) {
			reason = metav1.StatusReasonTimeout
		} else {
			reason = "Unreachable"
		}
	}
	return &problem{"APIServer" + kind(reason), err}
}
