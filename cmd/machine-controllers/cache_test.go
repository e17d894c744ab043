package main

import (
	"net/http"
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestNodesAreReadWithoutCopies: a MachineSet of thousands reads as many Nodes each time that one of its Machines changes.
func TestNodesAreReadWithoutCopies(t *testing.T) {
	p := newFixture(t)
	node, err := p.client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "shared", Labels: map[string]string{"a": "b"}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	httpClient, err := rest.HTTPClientFor(p.config)
	if err != nil {
		t.Fatal(err)
	}
	cached := cacheOf(t, p, httpClient)
	labels := func(options ...client.GetOption) uintptr {
		t.Helper()
		got := &corev1.Node{}
		if err := cached.Get(t.Context(), client.ObjectKeyFromObject(node), got, options...); err != nil {
			t.Fatal(err)
		}
		return reflect.ValueOf(got.Labels).Pointer()
	}
	shared, own := labels(client.UnsafeDisableDeepCopy), labels()
	if again := labels(client.UnsafeDisableDeepCopy); again != shared {
		t.Error("Nodes are copied")
	}
	if own == shared {
		t.Error("Nodes are not copied for who may change them")
	}
}

// cacheOf starts a cache as the manager has it.
func cacheOf(t *testing.T, p *fixture, httpClient *http.Client) cache.Cache {
	t.Helper()
	p.o.namespace = metav1.NamespaceDefault
	o, err := cacheOptions(p.config, p.o)
	if err != nil {
		t.Fatal(err)
	}
	if o.Scheme, err = newScheme(); err != nil {
		t.Fatal(err)
	}
	if o.Mapper, err = newMapper(p.config, httpClient); err != nil {
		t.Fatal(err)
	}
	cached, err := cache.New(p.config, o)
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = cached.Start(t.Context()) }()
	if !cached.WaitForCacheSync(t.Context()) {
		t.Fatal("the cache does not sync")
	}
	return cached
}

// TestChangesOfNodesAreCachedInBatches: their heartbeats would wake the manager several times each second.
func TestChangesOfNodesAreCachedInBatches(t *testing.T) {
	p := newFixture(t)
	httpClient, err := rest.HTTPClientFor(p.config)
	if err != nil {
		t.Fatal(err)
	}
	nodes, cached := p.client.CoreV1().Nodes(), cacheOf(t, p, httpClient)
	node, err := nodes.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{GenerateName: "beating-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	change := func(value string) time.Duration {
		t.Helper()
		began := time.Now()
		node.Annotations = map[string]string{"beat": value}
		if node, err = nodes.Update(t.Context(), node, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		for got := (&corev1.Node{}); got.Annotations["beat"] != value; time.Sleep(time.Millisecond) {
			if err := cached.Get(t.Context(), client.ObjectKeyFromObject(node), got); client.IgnoreNotFound(err) != nil {
				t.Fatal(err)
			}
			if time.Since(began) > time.Minute {
				t.Fatalf("the change %q is not in the cache after a minute", value)
			}
		}
		return time.Since(began)
	}
	change("listed")
	change("first")
	time.Sleep(100 * time.Millisecond) // what comes right behind it is of the same batch
	if took := change("second"); took < 500*time.Millisecond {
		t.Errorf("a change soon after another was in the cache after %s", took)
	}
}
