package drain

import (
	"context"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/machine-iac/machine-iac-operator/test/builder"
)

type nodeMod = func(*corev1.Node)

func named(name string) nodeMod { return func(n *corev1.Node) { n.Name = name } }

var (
	controlPlane = builder.WithNodeRole("control-plane")
	master       = builder.WithNodeRole("master")
)

func TestControlPlaneLock(t *testing.T) {
	tcs := map[string]struct {
		subject []nodeMod
		others  [][]nodeMod
		want    string
	}{
		"a worker alone": {subject: nil},
		"a worker beside a cordoned worker: never waits":          {subject: nil, others: [][]nodeMod{{builder.Cordoned}}},
		"a worker beside a cordoned control plane":                {subject: nil, others: [][]nodeMod{{controlPlane, builder.Cordoned}}},
		"a cordoned worker beside a cordoned control plane":       {subject: []nodeMod{builder.Cordoned}, others: [][]nodeMod{{controlPlane, builder.Cordoned}}},
		"a control plane alone":                                   {subject: []nodeMod{controlPlane}},
		"a control plane beside a free one":                       {subject: []nodeMod{controlPlane}, others: [][]nodeMod{{controlPlane}}},
		"a control plane beside a cordoned worker":                {subject: []nodeMod{controlPlane}, others: [][]nodeMod{{builder.Cordoned}}},
		"a control plane beside a cordoned one: waits":            {subject: []nodeMod{controlPlane}, others: [][]nodeMod{{controlPlane, builder.Cordoned}}, want: "other-0"},
		"a control plane beside a cordoned master: waits":         {subject: []nodeMod{controlPlane}, others: [][]nodeMod{{master, builder.Cordoned}}, want: "other-0"},
		"a master beside a cordoned control plane: waits":         {subject: []nodeMod{master}, others: [][]nodeMod{{controlPlane, builder.Cordoned}}, want: "other-0"},
		"a cordoned control plane began before: goes on":          {subject: []nodeMod{controlPlane, builder.Cordoned}, others: [][]nodeMod{{controlPlane, builder.Cordoned}}},
		"the first by name is returned, so that it does not vary": {subject: []nodeMod{controlPlane}, others: [][]nodeMod{{master}, {master, builder.Cordoned}, {controlPlane, builder.Cordoned}}, want: "other-1"},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			node := builder.Node(append(tc.subject, named("subject"))...)
			clientset := fake.NewClientset(node)
			for i, mods := range tc.others {
				other := builder.Node(append(mods, named("other-"+string(rune('0'+i))))...)
				if err := clientset.Tracker().Add(other); err != nil {
					t.Fatal(err)
				}
			}
			cordoned := false
			got, err := newControlPlaneLock(clientset.CoreV1().Nodes()).cordon(t.Context(), node, func() error { cordoned = true; return nil })
			if err != nil || got != tc.want || cordoned != (tc.want == "") {
				t.Errorf("got %q, %v, cordoned: %v; want %q", got, err, cordoned, tc.want)
			}
		})
	}
}

func TestControlPlaneLockIsHeldByOneOfMany(t *testing.T) {
	clientset := fake.NewClientset()
	nodes := make([]*corev1.Node, 8)
	for i := range nodes {
		nodes[i] = builder.Node(controlPlane)
		if err := clientset.Tracker().Add(nodes[i]); err != nil {
			t.Fatal(err)
		}
	}
	lock := newControlPlaneLock(clientset.CoreV1().Nodes())
	var all sync.WaitGroup
	for _, node := range nodes {
		all.Go(func() {
			_, err := lock.cordon(t.Context(), node, func() error {
				cordoned := node.DeepCopy()
				cordoned.Spec.Unschedulable = true
				_, err := clientset.CoreV1().Nodes().Update(t.Context(), cordoned, metav1.UpdateOptions{})
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	list, err := clientset.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, node := range list.Items {
		if node.Spec.Unschedulable {
			count++
		}
	}
	if count != 1 {
		t.Errorf("%d Nodes are cordoned, want 1", count)
	}
}

func TestControlPlaneLockDoesNotWaitForEver(t *testing.T) {
	lock := newControlPlaneLock(fake.NewClientset().CoreV1().Nodes())
	lock.semaphore <- struct{}{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	cordon := func() error { t.Error("must not be cordoned"); return nil }
	if _, err := lock.cordon(ctx, builder.Node(controlPlane), cordon); err == nil {
		t.Error("want an error, as somebody else holds the lock")
	}
}
