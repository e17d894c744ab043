package main

import (
	"net/http"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestNodesAreReadWithoutCopies: a MachineSet of thousands reads as many Nodes each time that one
// of its Machines changes.
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
	o := cacheOptions(p.o)
	var err error
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
