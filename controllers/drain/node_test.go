package drain

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/machine-iac/machine-iac-operator/test/builder"
)

func TestHelperHasTheSettingsOfTheMachineAPI(t *testing.T) {
	tcs := map[string]struct {
		ready               corev1.ConditionStatus
		wantGrace, wantSkip int
	}{
		"a Ready Node":                           {corev1.ConditionTrue, -1, 3600},
		"a NotReady Node, whose kubelet reports": {corev1.ConditionFalse, -1, 3600},
		"an unreachable Node":                    {corev1.ConditionUnknown, 1, 1},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			node := builder.Node(builder.WithReady(tc.ready, now))
			h := newDrainer(fake.NewClientset(), 20*time.Second).helper(t.Context(), nil, node, now)
			if !h.Force || !h.IgnoreAllDaemonSets || !h.DeleteEmptyDirData || h.DisableEviction || h.Timeout != 20*time.Second {
				t.Errorf("got %+v", h)
			}
			if h.GracePeriodSeconds != tc.wantGrace || h.SkipWaitForDeleteTimeoutSeconds != tc.wantSkip {
				t.Errorf("got a grace of %d and a wait of %d, want %d and %d", h.GracePeriodSeconds, h.SkipWaitForDeleteTimeoutSeconds, tc.wantGrace, tc.wantSkip)
			}
			if h.EvictErrorRetryDelay != 5*time.Second {
				t.Errorf("evictions are repeated after %s; without a pause they never stop", h.EvictErrorRetryDelay)
			}
		})
	}
}

func TestTargetIs(t *testing.T) {
	node := builder.Node(func(n *corev1.Node) { n.UID, n.Spec.ProviderID = "u", "p" })
	tcs := map[string]struct {
		target target
		want   bool
	}{
		"the Node that was linked":                {target{uid: "u"}, true},
		"a link without a UID":                    {target{}, true},
		"made again by another":                   {target{uid: "v"}, false},
		"made again by the same instance":         {target{uid: "v", providerID: "p"}, true},
		"made again, on another instance":         {target{uid: "v", providerID: "q"}, false},
		"the Node that was linked, strangely set": {target{uid: "u", providerID: "q"}, true},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			if got := tc.target.is(node); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestPassSaysWhatFailed(t *testing.T) {
	node := builder.Node()
	tcs := map[string]struct {
		verb, resource string
		want           outcomeKind
		wantMessage    string
	}{
		"the Node cannot be read":     {"get", "nodes", cordonFailed, "reading Node " + node.Name + ": no luck"},
		"the Node cannot be cordoned": {"patch", "nodes", cordonFailed, "cordoning it: cordon error: no luck"},
		"the pods cannot be read":     {"list", "pods", podsRemain, "reading its pods: no luck"},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			clientset := fake.NewClientset(node)
			clientset.PrependReactor(tc.verb, tc.resource, func(k8stesting.Action) (bool, runtime.Object, error) {
				return true, nil, errors.New("no luck")
			})
			got := newDrainer(clientset, time.Second).attempt(t.Context(), target{name: node.Name}, now)
			if got.kind != tc.want || !strings.HasSuffix(got.message, tc.wantMessage) || !strings.HasPrefix(got.message, "Node "+node.Name) {
				t.Errorf("got %+v, want %v, %q", got, tc.want, tc.wantMessage)
			}
		})
	}
}

func TestAPodThatCannotEndIsWaitedForWithALimit(t *testing.T) {
	node := builder.Node()
	for name, tc := range map[string]struct {
		overdue time.Duration
		want    outcomeKind
	}{
		"within the limit": {terminationLimit - time.Minute, podsRemain},
		"past the limit":   {terminationLimit + time.Minute, nodeEmpty},
	} {
		t.Run(name, func(t *testing.T) {
			pod := builder.Pod(builder.OnNode(node), func(p *corev1.Pod) {
				end := metav1.NewTime(time.Now().Add(-tc.overdue)) // kubectl's library reads the real clock
				p.DeletionTimestamp, p.Finalizers = &end, []string{"example.com/hold"}
			})
			got := newDrainer(fake.NewClientset(node, pod), time.Second).attempt(t.Context(), target{name: node.Name}, now)
			if got.kind != tc.want {
				t.Errorf("got %+v, want %v", got, tc.want)
			}
			at := pod.DeletionTimestamp.UTC().Format(time.RFC3339)
			if tc.want == podsRemain && !strings.Contains(got.message, "it was evicted at "+at+" and has not terminated") {
				t.Errorf("got %q, want since when it waits", got.message)
			}
		})
	}
}

func TestOnlyReturnedPodsAreLeftOut(t *testing.T) {
	tolerant := func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}} }
	at := func(created time.Time) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(created) }
	}
	for name, tc := range map[string]struct {
		newest time.Time
		pod    *corev1.Pod
		want   bool
	}{
		"returned":                     {now, builder.Pod(tolerant, at(now.Add(time.Second))), true},
		"found by the first attempt":   {now, builder.Pod(tolerant, at(now)), false},
		"before the first attempt":     {time.Time{}, builder.Pod(tolerant, at(now)), false},
		"does not tolerate the cordon": {now, builder.Pod(at(now.Add(time.Second))), false},
	} {
		if got := !returned(tc.newest)(*tc.pod).Delete; got != tc.want {
			t.Errorf("%s: got %t, want %t", name, got, tc.want)
		}
	}
}

func TestErrorsAreTextsInOneOrder(t *testing.T) {
	a, b := errors.New("a"), errors.New("b")
	if got := sorted(flattened(utilerrors.NewAggregate([]error{b, a, b}))); got != "a; b" {
		t.Errorf("got %q", got)
	}
	if got := sorted(flattened(b)); got != "b" {
		t.Errorf("got %q", got)
	}
}

func TestWhatKubectlPrintsIsLoggedForDebugging(t *testing.T) {
	for _, tc := range []struct{ verbosity, want int }{{0, 0}, {1, 1}} {
		lines := 0
		logger := funcr.New(func(_, text string) {
			if strings.Contains(text, "evicting pod") && !strings.Contains(text, `\n`) {
				lines++
			}
		}, funcr.Options{Verbosity: tc.verbosity})
		w := &logWriter{ctx: log.IntoContext(t.Context(), logger)}
		if n, err := w.Write([]byte("evicting pod a/b\n")); n != 17 || err != nil {
			t.Errorf("got %d, %v", n, err)
		}
		if lines != tc.want {
			t.Errorf("got %d lines at verbosity %d, want %d", lines, tc.verbosity, tc.want)
		}
	}
}
