package drain

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/machine-iac/machine-iac-operator/test/builder"
)

// overBudget is how the API server refuses an eviction for a budget's sake.
func overBudget(budget string) error {
	err := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 0)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{
		Type: policyv1.DisruptionBudgetCause, Message: fmt.Sprintf("The disruption budget %s needs 1 healthy pods and has 1 currently", budget),
	}}
	return err
}

func TestMessageSaysWhatHoldsEachPod(t *testing.T) {
	refused := overBudget("web")
	silent := errors.New("connection reset by peer")
	tcs := map[string]struct {
		finalizers []string
		setResult  []error
		want       string
	}{
		"nothing is known":                         {nil, nil, "it has not been evicted yet"},
		"a budget, in its own words":               {nil, []error{refused}, "The disruption budget web needs 1 healthy pods and has 1 currently"},
		"a refusal without a budget":               {nil, []error{apierrors.NewTooManyRequests("Slow down.", 0)}, "Slow down"},
		"evicted after a refusal":                  {nil, []error{refused, nil}, "it was evicted and has not terminated"},
		"evicted, and held":                        {[]string{"a/b", "c/d"}, []error{nil}, "it has finalizers: a/b, c/d"},
		"no response":                              {nil, []error{silent}, "evicting it failed: connection reset by peer"},
		"a refusal says more than a later silence": {nil, []error{refused, silent}, "The disruption budget web needs"},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			f := &podEviction{finalizers: tc.finalizers}
			for _, err := range tc.setResult {
				f.setResult(err)
			}
			if got := f.reason(); !strings.Contains(got, tc.want) || strings.HasSuffix(got, ".") {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestBlockersComeInOneOrderAndAreCounted(t *testing.T) {
	l := newEvictionTracker(nil)
	var pods []corev1.Pod
	for i := range 14 {
		pods = append(pods, *builder.Pod(func(p *corev1.Pod) { p.Name = fmt.Sprintf("p%02d", i) }))
	}
	l.add(pods)
	key := func(i int) types.NamespacedName {
		return types.NamespacedName{Namespace: pods[i].Namespace, Name: pods[i].Name}
	}
	l.update(key(0), func(f *podEviction) { f.setResult(nil) })
	l.update(key(1), func(f *podEviction) { f.setResult(apierrors.NewNotFound(corev1.Resource("pods"), "p01")) })
	l.finished(&pods[2], true, nil)
	l.update(key(3), func(f *podEviction) { f.setResult(overBudget("web")) })
	l.update(types.NamespacedName{Name: "unknown"}, func(*podEviction) { t.Error("an unknown pod is not tracked") })

	blockers := l.blockers(false)
	if len(blockers) != 12 || blockers[0].pod != key(3).String() || blockers[11].pod != key(0).String() {
		t.Fatalf("the gone must not be there, and the ending come last; got %+v", blockers)
	}
	message := describe(blockers)
	if message != describe(l.blockers(false)) || strings.Count(message, "pod ") != maxNamed || !strings.HasSuffix(message, " and 2 more") {
		t.Errorf("got %q", message)
	}
	if got := len(l.blockers(true)); got != 11 {
		t.Errorf("ending pods of an unreachable Node are not waited for; got %d blockers, want 11", got)
	}
}

func TestEvictionIsOfTheVeryPod(t *testing.T) {
	seen := builder.Pod(func(p *corev1.Pod) { p.UID = "seen" })
	again := seen.DeepCopy()
	again.UID = "again"
	tcs := map[string]struct {
		stored   []runtime.Object
		err      error
		wantGone bool
		want     bool
	}{
		"it goes":                                 {[]runtime.Object{seen}, nil, false, false},
		"it is refused":                           {[]runtime.Object{seen}, overBudget("web"), false, true},
		"another of its name would be refused":    {[]runtime.Object{again}, overBudget("web"), true, true},
		"another of its name is protected by UID": {[]runtime.Object{again}, apierrors.NewConflict(corev1.Resource("pods"), seen.Name, errors.New("uid")), true, true},
		"it went while its eviction was refused":  {nil, overBudget("web"), true, true},
		"it is gone":                              {nil, apierrors.NewNotFound(corev1.Resource("pods"), seen.Name), true, true},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			clientset := fake.NewClientset(tc.stored...)
			var sent *policyv1.Eviction
			clientset.PrependReactor("create", "pods", func(a k8stesting.Action) (bool, runtime.Object, error) {
				sent = a.(k8stesting.CreateAction).GetObject().(*policyv1.Eviction)
				return true, nil, tc.err
			})
			l := newEvictionTracker(clientset)
			l.add([]corev1.Pod{*seen})
			eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: seen.Namespace, Name: seen.Name}}
			err := l.PolicyV1().Evictions(seen.Namespace).Evict(t.Context(), eviction)
			if (err != nil) != tc.want || apierrors.IsNotFound(err) != tc.wantGone {
				t.Errorf("got %v; want an error: %v, not found: %v", err, tc.want, tc.wantGone)
			}
			if got := sent.DeleteOptions.Preconditions; got == nil || got.UID == nil || *got.UID != seen.UID {
				t.Errorf("got preconditions %+v, want the UID of the pod that was seen", got)
			}
			if got := len(l.blockers(false)) == 0; got != tc.wantGone {
				t.Errorf("noted as gone: %v, want %v", got, tc.wantGone)
			}
		})
	}
}
