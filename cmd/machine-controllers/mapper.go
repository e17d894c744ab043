package main

import (
	"fmt"
	"net/http"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// mapper remembers what it maps. The cache asks it for the scope of an object each time that one is read, and the mapper of controller-runtime, which keeps
// what it learned too, compares all groups of the API server then.
type mapper struct {
	meta.RESTMapper
	known sync.Map // schema.GroupVersionKind to *meta.RESTMapping
}

// newMapper returns a mapper that asks the API server for each kind once, but not for Nodes: the cache wants to know of them before the API server may be
// there, since it treats them apart.
func newMapper(config *rest.Config, http *http.Client) (meta.RESTMapper, error) {
	asking, err := apiutil.NewDynamicRESTMapper(config, http)
	if err != nil {
		return nil, fmt.Errorf("creating a mapper of kinds to resources: %w", err)
	}
	m := &mapper{RESTMapper: asking}
	node := corev1.SchemeGroupVersion.WithKind("Node")
	m.known.Store(node, &meta.RESTMapping{Resource: corev1.SchemeGroupVersion.WithResource("nodes"), GroupVersionKind: node, Scope: meta.RESTScopeRoot})
	return m, nil
}

// RESTMapping implements meta.RESTMapper.
func (m *mapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if len(versions) != 1 {
		return m.RESTMapper.RESTMapping(kind, versions...)
	}
	known, ok := m.known.Load(kind.WithVersion(versions[0]))
	if ok {
		return known.(*meta.RESTMapping), nil
	}
	mapping, err := m.RESTMapper.RESTMapping(kind, versions...)
	if err == nil {
		m.known.Store(kind.WithVersion(versions[0]), mapping)
	}
	return mapping, err //nolint:wrapcheck // callers look for meta's own errors
}
