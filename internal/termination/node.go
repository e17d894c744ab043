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

// The condition of a Node whose instance the cloud is about to terminate, as machine-api-operator
// sets it.
const (
	ConditionType    = corev1.NodeConditionType("Terminating")
	ConditionReason  = "TerminationRequested"
	conditionMessage = "The cloud provider has marked this instance for termination"
)

// apiTimeout bounds one request to the API server.
const apiTimeout = 10 * time.Second

// Node is the Node that the handler runs on.
type Node struct {
	Name string
	// Connect returns a client for Nodes. It is called for each attempt, because a kubelet's
	// credentials rotate while the handler waits.
	Connect func() (typedcorev1.NodeInterface, error)
	// Clock defaults to the system clock.
	Clock clock.Clock
}

func (n *Node) clock() clock.Clock {
	if n.Clock == nil {
		return clock.RealClock{}
	}
	return n.Clock
}

// Mark sets the condition, and reports whether it had to be written. It keeps a condition that is
// already True.
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
	if _, err := nodes.Patch(ctx, n.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{},
		"status"); err != nil {
		return false, apiProblem(fmt.Errorf("writing the condition %s of Node %s: %w", ConditionType, n.Name, err))
	}
	return true, nil
}

// Cloud determines the Node's cloud from its provider ID. It waits for the API server, and for the
// provider ID.
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
		return "", &problem{"NoProviderID", fmt.Errorf("Node %s has no provider ID yet to determine its cloud; set --cloud",
			n.Name)}
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

// patch returns a patch that merges the condition by its type, so that it does not conflict with
// the kubelet.
func (n *Node) patch() ([]byte, error) {
	now := metav1.NewTime(n.clock().Now())
	return json.Marshal(map[string]any{"status": map[string]any{"conditions": []corev1.NodeCondition{{
		Type: ConditionType, Status: corev1.ConditionTrue, Reason: ConditionReason, Message: conditionMessage,
		LastHeartbeatTime: now, LastTransitionTime: now,
	}}}})
}

// apiProblem converts an API server error to a problem whose kind is the error's reason.
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
