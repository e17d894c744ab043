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
		t.Error("Secrets are known without asking")
	}
}

// asked counts questions; it knows Secrets once they are there.
type asked struct {
	meta.RESTMapper
	there     bool
	questions int
}

func (a *asked) RESTMapping(schema.GroupKind, ...string) (*meta.RESTMapping, error) {
	a.questions++
	if !a.there {
		return nil, errors.New("not yet")
	}
	return &meta.RESTMapping{Resource: corev1.SchemeGroupVersion.WithResource("secrets")}, nil
}

func TestAKindIsAskedForUntilItIsKnown(t *testing.T) {
	answers := &asked{}
	m := &mapper{RESTMapper: answers}
	ask := func(versions ...string) error {
		_, err := m.RESTMapping(schema.GroupKind{Kind: "Secret"}, versions...)
		return err
	}
	for range 2 {
		if ask("v1") == nil {
			t.Error("a kind that is not there yet is known")
		}
	}
	if answers.questions != 2 {
		t.Errorf("%d questions, want two", answers.questions)
	}
	answers.there = true
	for range 3 {
		if err := ask("v1"); err != nil {
			t.Fatal(err)
		}
	}
	if answers.questions != 3 {
		t.Errorf("%d questions, want no more once it is known", answers.questions)
	}
	if err := ask(); err != nil || answers.questions != 4 {
		t.Errorf("%d questions (%v), want one for whatever version there is", answers.questions, err)
	}
}
