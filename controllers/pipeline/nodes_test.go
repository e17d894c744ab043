package pipeline

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// countedCache is a cache with one Node that counts the handlers which it is given.
type countedCache struct {
	informertest.FakeInformers
	handlers int
	fails    error
}

func (c *countedCache) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if nodes, ok := list.(*corev1.NodeList); ok {
		nodes.Items = []corev1.Node{*named("present")}
	}
	return c.fails
}

func (c *countedCache) GetInformer(ctx context.Context, object client.Object, options ...cache.InformerGetOption) (cache.Informer, error) {
	informer, err := c.FakeInformers.GetInformer(ctx, object, options...)
	return &countedInformer{informer, c}, err
}

type countedInformer struct {
	cache.Informer
	cache *countedCache
}

func (i *countedInformer) AddEventHandlerWithOptions(h toolscache.ResourceEventHandler, o toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	i.cache.handlers++
	return i.Informer.AddEventHandlerWithOptions(h, o)
}

func named(name string) *corev1.Node { return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}} }

// seen notes events.
type seen []string

func (s *seen) note(what string, object any) {
	if node, ok := object.(*corev1.Node); ok {
		*s = append(*s, what+" "+node.Name)
	}
}

func (s *seen) OnAdd(object any, initial bool) {
	if initial {
		s.note("there was", object)
		return
	}
	s.note("added", object)
}
func (s *seen) OnUpdate(_, after any) { s.note("updated", after) }
func (s *seen) OnDelete(object any)   { s.note("deleted", object) }

func TestAllThatWatchNodesShareAHandler(t *testing.T) {
	of := &countedCache{}
	nodes := NewNodes(of)
	watch := func() *seen {
		t.Helper()
		informer, err := nodes.GetInformer(t.Context(), &corev1.Node{})
		if err != nil {
			t.Fatal(err)
		}
		handler := &seen{}
		registration, err := informer.AddEventHandlerWithOptions(handler, toolscache.HandlerOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if registration == nil {
			t.Fatal("there is no registration")
		}
		return handler
	}
	real, err := of.FakeInformerFor(t.Context(), &corev1.Node{})
	if err != nil {
		t.Fatal(err)
	}
	first := watch()
	real.Add(named("new"))
	second := watch()
	real.Update(named("new"), named("new"))
	real.Delete(named("present"))

	if of.handlers != 1 {
		t.Errorf("the cache has %d handlers, want 1", of.handlers)
	}
	if diff := cmp.Diff(&seen{"there was present", "added new", "updated new", "deleted present"}, first); diff != "" {
		t.Errorf("the first was given (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(&seen{"there was present", "updated new", "deleted present"}, second); diff != "" {
		t.Errorf("the second was given (-want +got):\n%s", diff)
	}
	nodes.events.OnAdd(named("present"), true) // as the cache says first of each Node
	if len(*first) != 4 {
		t.Errorf("what was there first was given twice: %q", *first)
	}
}

func TestOnlyNodesAreShared(t *testing.T) {
	of := &countedCache{}
	for range 2 {
		informer, err := NewNodes(of).GetInformer(t.Context(), &corev1.Secret{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := informer.AddEventHandlerWithOptions(&seen{}, toolscache.HandlerOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if of.handlers != 2 {
		t.Errorf("the cache has %d handlers, want 2", of.handlers)
	}
}

func TestAHandlerIsNotAddedWithoutTheNodesThatAreThere(t *testing.T) {
	of := &countedCache{fails: errors.New("no lists today")}
	nodes := NewNodes(of)
	informer, err := nodes.GetInformer(t.Context(), &corev1.Node{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := informer.AddEventHandlerWithOptions(&seen{}, toolscache.HandlerOptions{}); !errors.Is(err, of.fails) {
		t.Errorf("error %v, want that the Nodes cannot be listed", err)
	}
	if len(nodes.events.handlers) != 0 {
		t.Error("it was added all the same")
	}
}
