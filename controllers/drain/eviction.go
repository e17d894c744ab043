package drain

import (
	"context"
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	policyclient "k8s.io/client-go/kubernetes/typed/policy/v1"
	"k8s.io/utils/ptr"
)

// evictionTracker tracks the eviction of each pod in one attempt. kubectl's library reports
// evictions as text in random order, and evicts by name alone; so the tracker is the client that
// the library uses.
type evictionTracker struct {
	kubernetes.Interface

	mu   sync.Mutex
	pods map[types.NamespacedName]*podEviction
}

// podEviction is how far the eviction of a pod is.
type podEviction struct {
	uid        types.UID
	finalizers []string
	gone       bool
	// evicted is set if the pod is terminating, at the latest once the API server has accepted an
	// eviction.
	evicted bool
	// since is when a pod that was terminating before this attempt was evicted or deleted.
	since time.Time
	// refusal is why the API server last refused an eviction.
	refusal string
	// fault is any other error.
	fault string
}

func newEvictionTracker(clientset kubernetes.Interface) *evictionTracker {
	return &evictionTracker{Interface: clientset, pods: map[types.NamespacedName]*podEviction{}}
}

// add tracks pods that are to be evicted.
func (l *evictionTracker) add(pods []corev1.Pod) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range pods {
		pod := &pods[i]
		l.pods[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}] = &podEviction{uid: pod.UID,
			finalizers: pod.Finalizers, evicted: pod.DeletionTimestamp != nil, since: terminatingSince(pod)}
	}
}

// terminatingSince returns when a pod was evicted or deleted, or the zero time. Its deletion
// timestamp is the end of its grace period.
func terminatingSince(pod *corev1.Pod) time.Time {
	if pod.DeletionTimestamp == nil {
		return time.Time{}
	}
	return pod.DeletionTimestamp.Add(-time.Duration(ptr.Deref(pod.DeletionGracePeriodSeconds, 0)) * time.Second)
}

// PolicyV1 implements kubernetes.Interface.
func (l *evictionTracker) PolicyV1() policyclient.PolicyV1Interface {
	return &trackedPolicy{PolicyV1Interface: l.Interface.PolicyV1(), evictionTracker: l}
}

// finished is called by the library when a pod has been deleted, or when waiting for that failed.
func (l *evictionTracker) finished(pod *corev1.Pod, _ bool, err error) {
	l.update(types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, func(f *podEviction) {
		if err == nil {
			f.gone = true
		} else {
			f.fault = err.Error()
		}
	})
}

func (l *evictionTracker) update(key types.NamespacedName, change func(*podEviction)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f := l.pods[key]; f != nil {
		change(f)
	}
}

func (l *evictionTracker) uid(key types.NamespacedName) types.UID {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f := l.pods[key]; f != nil {
		return f.uid
	}
	return ""
}

// trackedPolicy is the policy API with tracked evictions.
type trackedPolicy struct {
	policyclient.PolicyV1Interface
	evictionTracker *evictionTracker
}

// Evictions implements policyclient.EvictionsGetter.
func (p *trackedPolicy) Evictions(namespace string) policyclient.EvictionInterface {
	return &trackedEvictions{EvictionInterface: p.PolicyV1Interface.Evictions(namespace),
		evictionTracker: p.evictionTracker}
}

type trackedEvictions struct {
	policyclient.EvictionInterface
	evictionTracker *evictionTracker
}

// Evict evicts the pod that was on the Node, by UID. Another pod of the same name, such as a
// StatefulSet's on another Node, is left alone; then NotFound is returned.
func (e *trackedEvictions) Evict(ctx context.Context, eviction *policyv1.Eviction) error {
	key := types.NamespacedName{Namespace: eviction.Namespace, Name: eviction.Name}
	uid := e.evictionTracker.uid(key)
	exact := eviction.DeepCopy()
	if exact.DeleteOptions == nil {
		exact.DeleteOptions = &metav1.DeleteOptions{}
	}
	if uid != "" {
		exact.DeleteOptions.Preconditions = &metav1.Preconditions{UID: &uid}
	}
	err := e.EvictionInterface.Evict(ctx, exact)
	if err != nil && !apierrors.IsNotFound(err) && e.replaced(ctx, key, uid) {
		err = apierrors.NewNotFound(corev1.Resource("pods"), key.Name)
	}
	e.evictionTracker.update(key, func(f *podEviction) { f.setResult(err) })
	return err
}

// replaced reports whether the pod of the UID no longer exists.
func (e *trackedEvictions) replaced(ctx context.Context, key types.NamespacedName, uid types.UID) bool {
	pod, err := e.evictionTracker.CoreV1().Pods(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	return apierrors.IsNotFound(err) || (err == nil && pod.UID != uid)
}

// setResult records the result of an eviction request.
func (f *podEviction) setResult(err error) {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		f.evicted = true
	case apierrors.IsNotFound(err):
		f.gone = true
	case errors.As(err, &status):
		f.refusal = refusal(status.Status())
	default:
		f.fault = err.Error()
	}
}

// refusal returns why an eviction was refused: the message of the PodDisruptionBudget, where it is
// one that refused.
func refusal(status metav1.Status) string {
	if status.Details != nil {
		for _, cause := range status.Details.Causes {
			if cause.Type == policyv1.DisruptionBudgetCause && cause.Message != "" {
				return cause.Message
			}
		}
	}
	return status.Message
}
