package drain

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubectl/pkg/drain"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// evictionRetry is the pause after a refused eviction, as in kubectl; four tries fit into an
	// attempt.
	evictionRetry = 5 * time.Second
	// unreachableGrace is the grace period, in seconds, of the pods of an unreachable Node, and how
	// long they are waited for after that. No kubelet reports their termination, and those of
	// StatefulSets would block the drain forever.
	unreachableGrace = 1
	// terminationLimit is how long after the end of its grace period an evicted pod is waited for.
	// One that has not terminated by then has a finalizer that nothing removes, or a container that
	// cannot be killed.
	terminationLimit = time.Hour
)

// outcomeKind is how a drain attempt ended.
type outcomeKind int

const (
	// podsRemain: pods remain, or could not be read.
	podsRemain outcomeKind = iota
	// nodeEmpty: no pod is left to evict.
	nodeEmpty
	// controlPlaneBusy: another control-plane Node is cordoned.
	controlPlaneBusy
	// cordonFailed: the Node could not be read or cordoned.
	cordonFailed
)

// outcome is how an attempt ended, and why.
type outcome struct {
	kind    outcomeKind
	message string
	// left is how many pods remain, as far as that is known.
	left int
	// newest is when the newest of the pods was created that the attempt found.
	newest time.Time
	// target is the Node that the attempt was about.
	target target
}

// target is the Node to drain.
type target struct {
	name       string
	uid        types.UID
	providerID string
}

func targetOf(machine *machinev1beta1.Machine) target {
	out := target{name: machine.Status.NodeRef.Name, uid: machine.Status.NodeRef.UID}
	if machine.Spec.ProviderID != nil {
		out.providerID = *machine.Spec.ProviderID
	}
	return out
}

// is reports whether a Node of the target's name is the target: the same object, or the same
// instance registered again.
func (t target) is(node *corev1.Node) bool {
	return t.uid == "" || t.uid == node.UID || (t.providerID != "" && t.providerID == node.Spec.ProviderID)
}

// drainer drains Nodes.
type drainer struct {
	clientset    kubernetes.Interface
	timeout      time.Duration
	controlPlane *controlPlaneLock
}

func newDrainer(clientset kubernetes.Interface, timeout time.Duration) *drainer {
	return &drainer{clientset: clientset, timeout: timeout, controlPlane: newControlPlaneLock(clientset.CoreV1().Nodes())}
}

// attempt cordons the Node, evicts its pods, and waits until they have terminated, within the
// timeout of an attempt. newest is the newest pod of the first attempt.
func (d *drainer) attempt(ctx context.Context, t target, newest time.Time) outcome {
	ctx, cancel := context.WithTimeout(log.IntoContext(ctx, log.FromContext(ctx).WithValues("Node", t.name)), d.timeout)
	defer cancel()
	node, err := d.node(ctx, t)
	if err != nil {
		return outcome{kind: cordonFailed, message: fmt.Sprintf("Node %s is not drained yet: %v", t.name, err)}
	}
	if node == nil {
		return outcome{kind: nodeEmpty}
	}
	pods := newEvictionTracker(d.clientset)
	helper := d.helper(ctx, pods, node, newest)
	helper.OnPodDeletionOrEvictionFinished = pods.finished
	other, err := d.controlPlane.cordon(ctx, node, func() error { return drain.RunCordonOrUncordon(helper, node, true) })
	switch {
	case apierrors.IsNotFound(err):
		return outcome{kind: nodeEmpty}
	case err != nil:
		return outcome{kind: cordonFailed, message: fmt.Sprintf("Node %s is not drained yet: cordoning it: %v", t.name, err)}
	case other != "":
		return outcome{kind: controlPlaneBusy, message: fmt.Sprintf(
			"Node %s is waiting: control-plane Node %s is cordoned, and control-plane Nodes are drained one at a time", t.name,
			other)}
	}
	return evict(helper, pods, node)
}

// evict empties a cordoned Node.
func evict(helper *drain.Helper, pods *evictionTracker, node *corev1.Node) outcome {
	list, errs := helper.GetPodsForDeletion(node.Name)
	if len(errs) > 0 {
		return outcome{message: fmt.Sprintf("Node %s is not drained yet: reading its pods: %s", node.Name, sorted(errs))}
	}
	pods.add(list.Pods())
	err := helper.DeleteOrEvictPods(list.Pods())
	if err == nil {
		return outcome{kind: nodeEmpty}
	}
	blockers := pods.blockers(unreachable(node))
	if len(blockers) == 0 {
		return outcome{newest: newestOf(list.Pods()), message: fmt.Sprintf("Node %s is not drained yet: %s", node.Name,
			sorted(flattened(err)))}
	}
	return outcome{newest: newestOf(list.Pods()), left: len(blockers), message: fmt.Sprintf("Node %s is not drained yet: %s", node.Name,
		describe(blockers))}
}

// newestOf returns when the newest pod was created, by the API server's clock.
func newestOf(pods []corev1.Pod) time.Time {
	var newest time.Time
	for i := range pods {
		if created := pods[i].CreationTimestamp.Time; created.After(newest) {
			newest = created
		}
	}
	return newest
}

// left lists the pods that are still to be evicted.
func (d *drainer) left(ctx context.Context, t target, newest time.Time) ([]string, error) {
	node, err := d.node(ctx, t)
	if err != nil || node == nil {
		return nil, err
	}
	list, errs := d.helper(ctx, d.clientset, node, newest).GetPodsForDeletion(t.name)
	if len(errs) > 0 {
		return nil, errors.New(sorted(errs))
	}
	var names []string
	for _, pod := range list.Pods() {
		names = append(names, pod.Namespace+"/"+pod.Name)
	}
	slices.Sort(names)
	return names, nil
}

// node returns the target, read from the API server; nil when it no longer exists.
func (d *drainer) node(ctx context.Context, t target) (*corev1.Node, error) {
	node, err := d.clientset.CoreV1().Nodes().Get(ctx, t.name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) || (err == nil && !t.is(node)):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading Node %s: %w", t.name, err)
	}
	return node, nil
}

// helper returns kubectl's drain with the settings of the Machine API.
func (d *drainer) helper(ctx context.Context, clientset kubernetes.Interface, node *corev1.Node,
	newest time.Time) *drain.Helper {
	out := &logWriter{ctx: ctx}
	helper := &drain.Helper{
		Ctx:                             ctx,
		Client:                          clientset,
		Force:                           true,
		IgnoreAllDaemonSets:             true,
		DeleteEmptyDirData:              true,
		GracePeriodSeconds:              -1,
		Timeout:                         d.timeout,
		SkipWaitForDeleteTimeoutSeconds: int(terminationLimit.Seconds()),
		EvictErrorRetryDelay:            min(evictionRetry, d.timeout/4),
		AdditionalFilters:               []drain.PodFilter{returned(newest)},
		Out:                             out,
		ErrOut:                          out,
	}
	if unreachable(node) {
		helper.GracePeriodSeconds = unreachableGrace
		helper.SkipWaitForDeleteTimeoutSeconds = unreachableGrace
	}
	return helper
}

// returned leaves out pods that were scheduled to the cordoned Node in place of evicted ones: they
// tolerate its taint and would come back after each eviction. They are newer than the newest pod of
// the first attempt, which is zero in that attempt.
func returned(newest time.Time) drain.PodFilter {
	cordon := &corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}
	return func(pod corev1.Pod) drain.PodDeleteStatus {
		tolerates := func(t corev1.Toleration) bool { return t.ToleratesTaint(logr.Discard(), cordon, false) }
		if !newest.IsZero() && pod.CreationTimestamp.After(newest) && slices.ContainsFunc(pod.Spec.Tolerations, tolerates) {
			return drain.MakePodDeleteStatusSkip()
		}
		return drain.MakePodDeleteStatusOkay()
	}
}

// unreachable reports whether the Node's kubelet no longer reports its status.
func unreachable(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionUnknown
	})
}

// flattened returns the errors of an aggregate, whose order is random.
func flattened(err error) []error {
	var aggregate utilerrors.Aggregate
	if errors.As(err, &aggregate) {
		return aggregate.Errors()
	}
	return []error{err}
}

// sorted joins errors in a fixed order.
func sorted(errs []error) string {
	texts := make([]string, 0, len(errs))
	for _, err := range errs {
		texts = append(texts, err.Error())
	}
	slices.Sort(texts)
	return joinLimited(slices.Compact(texts), "; ")
}

// logWriter logs kubectl's output.
type logWriter struct {
	ctx context.Context
}

// Write implements io.Writer.
func (w *logWriter) Write(text []byte) (int, error) {
	log.FromContext(w.ctx).V(1).Info("kubectl drain: " + strings.TrimSpace(string(text)))
	return len(text), nil
}

var _ io.Writer = &logWriter{}
