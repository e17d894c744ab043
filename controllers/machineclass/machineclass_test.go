package machineclass

import (
	"context"
	"encoding/json"
	"errors"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/actuators/fake"
)

// create creates a class with fields beside those that each has.
func (w *world) create(ctx context.Context, fields map[string]any) *unstructured.Unstructured {
	GinkgoHelper()
	class := classWith(fields)
	class.SetNamespace(w.namespace)
	Expect(plane.Client.Create(ctx, class)).To(Succeed())
	return class
}

// templateOf returns a function that reads the nodeTemplate of a class.
func templateOf(ctx context.Context, class *unstructured.Unstructured) func() (map[string]any, error) {
	return func() (map[string]any, error) {
		now := newClass()
		err := plane.Client.Get(ctx, client.ObjectKeyFromObject(class), now)
		template, _, _ := unstructured.NestedMap(now.Object, "nodeTemplate")
		return template, err
	}
}

func change(ctx context.Context, class *unstructured.Unstructured, fields map[string]any) {
	GinkgoHelper()
	patch, err := json.Marshal(fields)
	Expect(err).NotTo(HaveOccurred())
	Expect(plane.Client.Patch(ctx, class, client.RawPatch(types.MergePatchType, patch))).To(Succeed())
}

var _ = Describe("A MachineClass", func() {
	It("gets a nodeTemplate from its providerSpec, which follows it", func(ctx SpecContext) {
		w := start(ctx)
		class := w.create(ctx, nil)
		Eventually(templateOf(ctx, class)).Should(Equal(whole))
		change(ctx, class, map[string]any{"providerSpec": map[string]any{"instanceType": "big", "zone": "zone-b"}})
		Eventually(templateOf(ctx, class)).Should(Equal(map[string]any{
			"capacity": map[string]any{"cpu": "64", "gpu": "8", "memory": "512Gi"}, "architecture": "arm64",
			"instanceType": "big", "region": "region-a", "zone": "zone-b",
		}))
		Expect(w.events).NotTo(Receive())
	})

	It("gets the rest of what a person has begun", func(ctx SpecContext) {
		w := start(ctx)
		class := w.create(ctx, map[string]any{"nodeTemplate": map[string]any{
			"capacity": map[string]any{"cpu": 3}, "instanceType": "mine", "region": "here", "zone": "there", "virtualCapacity": map[string]any{"example.com/x": "1"},
		}})
		Eventually(templateOf(ctx, class)).Should(Equal(map[string]any{
			"capacity": map[string]any{"cpu": int64(3), "gpu": "0", "memory": "4Gi"}, "architecture": "amd64",
			"instanceType": "mine", "region": "here", "zone": "there", "virtualCapacity": map[string]any{"example.com/x": "1"},
		}))
	})

	It("is left alone with an event where its place is nowhere to be read", func(ctx SpecContext) {
		w := start(ctx)
		class := w.create(ctx, map[string]any{"providerSpec": map[string]any{"apiVersion": "v1", "kind": "Test", "instanceType": "small", "region": "region-a"}})
		Eventually(w.events).Should(Receive(And(HavePrefix("Warning FailedUpdate "), ContainSubstring("nodeTemplate.zone"))))
		Expect(templateOf(ctx, class)()).To(BeNil())
	})

	It("is left alone with an event where its size is in no catalogue", func(ctx SpecContext) {
		w := start(ctx)
		class := w.create(ctx, map[string]any{"providerSpec": map[string]any{"apiVersion": "v1", "kind": "Test", "instanceType": "odd", "region": "region-a", "zone": "zone-a"}})
		Eventually(w.events).Should(Receive(And(HavePrefix("Warning FailedUpdate "), ContainSubstring(" providerSpec.instanceType"), ContainSubstring("odd"))))
		Expect(templateOf(ctx, class)()).To(BeNil())
	})

	It("is not this controller's where it is of another provider", func(ctx SpecContext) {
		w := start(ctx)
		w.estimator.Fail(fake.Capacity, errors.New("connection reset by peer")) // tried again
		other := w.create(ctx, map[string]any{"provider": "Azure"})
		own := w.create(ctx, nil)
		Eventually(templateOf(ctx, own)).Should(Equal(whole))
		calls := func() []fake.Call { return w.estimator.Calls(fake.Capacity) }
		Eventually(calls).Should(HaveLen(3), "it asks again after its own write and a failure")
		Consistently(calls).Should(HaveLen(3), "it asks for no other class")
		Expect(templateOf(ctx, other)()).To(BeNil())
	})
})
