package main

import (
	"errors"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

func TestNodesAreKnownWithoutTheAPIServer(t *testing.T) {
	m, err := newMapper(&rest.Config{Host: "https://127.0.0.1:1"}, http.DefaultClient)
	if err != nil {
		t.Fatal(err)
	}
	node, err := m.RESTMapping(schema.GroupKind{Kind: "Node"}, "v1")
	if err != nil || node.Scope.Name() != meta.RESTScopeNameRoot || node.Resource != corev1.SchemeGroupVersion.WithResource("nodes") {
		t.Errorf("Nodes are %+v (%v), want them without a namespace", node, err)
	}
	if _, err := m.RESTMapping(schema.GroupKind{Kind: "Secret"}, "v1"); err == nil {
		t.Error("Secrets are known without discovery")
	}
}

// counting counts lookups; they succeed once the kind is served.
type counting struct {
	meta.RESTMapper
	served  bool
	lookups int
}

func (c *counting) RESTMapping(schema.GroupKind, ...string) (*meta.RESTMapping, error) {
	c.lookups++
	if !c.served {
		return nil, errors.New("not yet")
	}
	return &meta.RESTMapping{Resource: corev1.SchemeGroupVersion.WithResource("secrets")}, nil
}

func TestAKindIsDiscoveredUntilItIsKnown(t *testing.T) {
	discovery := &counting{}
	m := &mapper{RESTMapper: discovery}
	lookup := func(versions ...string) error {
		_, err := m.RESTMapping(schema.GroupKind{Kind: "Secret"}, versions...)
		return err
	}
	for range 2 {
		if lookup("v1") == nil {
			t.Error("a kind that is not served yet is known")
		}
	}
	if discovery.lookups != 2 {
		t.Errorf("%d lookups, want two", discovery.lookups)
	}
	discovery.served = true
	for range 3 {
		if err := lookup("v1"); err != nil {
			t.Fatal(err)
		}
	}
	if discovery.lookups != 3 {
		t.Errorf("%d lookups, want no more once it is known", discovery.lookups)
	}
	if err := lookup(); err != nil || discovery.lookups != 4 {
		t.Errorf("%d lookups (%v), want one for whatever version there is", discovery.lookups, err)
	}
}
