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

// mapper caches mappings. The cache looks up an object's scope on each read. controller-runtime's
// mapper caches its discovery, but still iterates over all API groups.
type mapper struct {
	meta.RESTMapper
	known sync.Map // schema.GroupVersionKind to *meta.RESTMapping
}

// newMapper returns a mapper that discovers each kind once. Nodes are predefined: cacheOptions
// needs their scope when the API server may not be reachable yet.
func newMapper(config *rest.Config, httpClient *http.Client) (meta.RESTMapper, error) {
	discovering, err := apiutil.NewDynamicRESTMapper(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("creating a mapper of kinds to resources: %w", err)
	}
	m := &mapper{RESTMapper: discovering}
	node := corev1.SchemeGroupVersion.WithKind("Node")
	m.known.Store(node, &meta.RESTMapping{Resource: corev1.SchemeGroupVersion.WithResource("nodes"),
		GroupVersionKind: node, Scope: meta.RESTScopeRoot})
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
	return mapping, err //nolint:wrapcheck // callers match meta's errors
}
