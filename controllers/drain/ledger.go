package drain

import (
	"context"
	"errors"
	"sync"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	policyclient "k8s.io/client-go/kubernetes/typed/policy/v1"
)

// ledger notes what becomes of each pod in one pass. kubectl's library tells it in texts and in an order of chance, and evicts by
// name alone; so the ledger stands between the library and the API server.
type ledger struct {
	kubernetes.Interface

	mu   sync.Mutex
	pods map[types.NamespacedName]*fate
}

// fate is what has become of a pod.
type fate struct {
	uid        types.UID
	finalizers []string
	gone       bool
	// evicted is set once the API server has taken an eviction: the pod has been told to end.
	evicted bool
	// refusal is what the API server last said against an eviction.
	refusal string
	// fault is what went wrong otherwise.
	fault string
}

func newLedger(clientset kubernetes.Interface) *ledger {
	return &ledger{Interface: clientset, pods: map[types.NamespacedName]*fate{}}
}

// expect opens an entry for each pod that shall go.
func (l *ledger) expect(pods []corev1.Pod) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range pods {
		pod := &pods[i]
		l.pods[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}] = &fate{uid: pod.UID, finalizers: pod.Finalizers}
	}
}

// PolicyV1 implements kubernetes.Interface.
func (l *ledger) PolicyV1() policyclient.PolicyV1Interface {
	return &notedPolicy{PolicyV1Interface: l.Interface.PolicyV1(), ledger: l}
}

// finished is told by the library that a pod has gone, or that nobody knows.
func (l *ledger) finished(pod *corev1.Pod, _ bool, err error) {
	l.note(types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, func(f *fate) {
		if err == nil {
			f.gone = true
		} else {
			f.fault = err.Error()
		}
	})
}

func (l *ledger) note(key types.NamespacedName, change func(*fate)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f := l.pods[key]; f != nil {
		change(f)
	}
}

func (l *ledger) uid(key types.NamespacedName) types.UID {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f := l.pods[key]; f != nil {
		return f.uid
	}
	return ""
}

// notedPolicy is the policy API with noted evictions.
type notedPolicy struct {
	policyclient.PolicyV1Interface
	ledger *ledger
}

// Evictions implements policyclient.EvictionsGetter.
func (p *notedPolicy) Evictions(namespace string) policyclient.EvictionInterface {
	return &notedEvictions{EvictionInterface: p.PolicyV1Interface.Evictions(namespace), ledger: p.ledger}
}

type notedEvictions struct {
	policyclient.EvictionInterface
	ledger *ledger
}

// Evict evicts the very pod that was on the Node. Where another runs under its name by now, as those of StatefulSets do on another
// Node, that one is left alone, and the answer is that the pod is gone.
func (e *notedEvictions) Evict(ctx context.Context, eviction *policyv1.Eviction) error {
	key := types.NamespacedName{Namespace: eviction.Namespace, Name: eviction.Name}
	uid := e.ledger.uid(key)
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
	e.ledger.note(key, func(f *fate) { f.heard(err) })
	return err
}

// replaced reports whether no pod of the UID is there any more.
func (e *notedEvictions) replaced(ctx context.Context, key types.NamespacedName, uid types.UID) bool {
	pod, err := e.ledger.CoreV1().Pods(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	return apierrors.IsNotFound(err) || (err == nil && pod.UID != uid)
}

// heard takes the answer to an eviction.
func (f *fate) heard(err error) {
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

// refusal answers why an eviction was refused, in the words of the disruption budgets where these refused it.
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
