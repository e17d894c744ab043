//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/test/observe"
)

// timeline records when something happened first. Its clock is the resource version: one etcd counts all writes, so
// their order is certain, however late they are observed.
type timeline struct {
	stop context.CancelFunc

	mu      sync.Mutex
	moments map[string]uint64
}

// The recorded moments. A Node has its Machine's name.
func cordoned(node string) string   { return "Node " + node + " is cordoned" }
func leaves(pod string) string      { return "Pod " + pod + " is being deleted" }
func podGone(pod string) string     { return "Pod " + pod + " is gone" }
func drained(machine string) string { return "Machine " + machine + " is drained" }
func destroyed(machine string) string {
	return "the instance of " + machine + " is about to be destroyed"
}
func nodeGone(node string) string       { return "Node " + node + " is gone" }
func machineGone(machine string) string { return "Machine " + machine + " is gone" }

// timeline records events from now on, until the chapter ends.
func (w *world) timeline(ctx context.Context) *timeline {
	GinkgoHelper()
	config, err := w.lab.Cluster.AdminConfig()
	Expect(err).NotTo(HaveOccurred())
	watched, err := cache.New(config, cache.Options{Scheme: w.client.Scheme()})
	Expect(err).NotTo(HaveOccurred())
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	DeferCleanup(stop)
	c := &timeline{stop: stop, moments: map[string]uint64{}}
	for _, object := range []client.Object{&machinev1beta1.Machine{}, &corev1.Node{}, &corev1.Pod{}, &corev1.Secret{}} {
		informer, err := watched.GetInformer(ctx, object, cache.BlockUntilSynced(false))
		Expect(err).NotTo(HaveOccurred())
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc: c.see, UpdateFunc: func(_, now any) { c.see(now) }, DeleteFunc: c.miss,
		})
		Expect(err).NotTo(HaveOccurred())
	}
	go func() { _ = watched.Start(watching) }() // ends with its context
	syncing, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	Expect(watched.WaitForCacheSync(syncing)).To(BeTrue(),
		"the API server did not list what is to be watched within a minute")
	return c
}

func (c *timeline) see(object any) {
	switch o := object.(type) {
	case *machinev1beta1.Machine:
		if condition(o, machinev1beta1.MachineDrained).Status == corev1.ConditionTrue {
			c.note(drained(o.Name), o)
		}
	case *corev1.Node:
		if o.Spec.Unschedulable {
			c.note(cordoned(o.Name), o)
		}
	case *corev1.Pod:
		if o.DeletionTimestamp != nil {
			c.note(leaves(o.Name), o)
		}
	case *corev1.Secret:
		if strings.Contains(o.Annotations[observe.IntentAnnotation], `"operation":"destroy"`) {
			c.note(destroyed(o.Annotations[observe.OwnerAnnotation]), o)
		}
	}
}

func (c *timeline) miss(object any) {
	switch o := object.(type) {
	case *machinev1beta1.Machine:
		c.note(machineGone(o.Name), o)
	case *corev1.Node:
		c.note(nodeGone(o.Name), o)
	case *corev1.Pod:
		c.note(podGone(o.Name), o)
	}
}

func (c *timeline) note(moment string, object client.Object) {
	version, err := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
	if err != nil {
		return // a missing moment fails the spec
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.moments[moment]; !known {
		c.moments[moment] = version
	}
}

// has reports whether something has happened.
func (c *timeline) has(moment string) bool {
	_, known := c.when(moment)
	return known
}

func (c *timeline) when(moment string) (uint64, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	version, known := c.moments[moment]
	return version, known
}

// happens waits until all moments have happened, and expects this order.
func (c *timeline) happens(ctx context.Context, moments ...string) {
	GinkgoHelper()
	until(ctx, patience, moments[len(moments)-1], func(context.Context) error {
		for _, moment := range moments {
			if !c.has(moment) {
				return errors.New("not yet: " + moment)
			}
		}
		return nil
	})
	for i := range len(moments) - 1 {
		before, _ := c.when(moments[i])
		after, _ := c.when(moments[i+1])
		Expect(before).To(BeNumerically("<", after), fmt.Sprintf("%q must come before %q", moments[i], moments[i+1]))
	}
}

// among returns the moments that have happened.
func (c *timeline) among(moments ...string) []string {
	return slices.DeleteFunc(moments, func(moment string) bool { return !c.has(moment) })
}

// hasNone expects that none of these happens for a while.
func (c *timeline) hasNone(ctx context.Context, moments ...string) {
	GinkgoHelper()
	Consistently(ctx, func() []string { return c.among(slices.Clone(moments)...) }).WithTimeout(aWhile).
		WithPolling(poll).Should(BeEmpty())
}
