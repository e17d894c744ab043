package machineset_test

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
	"github.com/machine-iac/machine-iac-operator/test/builder"
)

var _ = Describe("A MachineSet's selector and template", func() {
	var namespace string
	BeforeEach(func(ctx SpecContext) {
		namespace = newNamespace(ctx)
		startManager(namespace)
	})
	count := func(ctx context.Context) func() int { return func() int { return len(living(ctx, namespace)) } }

	It("give the scale subresource what an autoscaler needs", func(ctx SpecContext) {
		set := builder.In(namespace, builder.MachineSet(builder.WithReplicas(2), func(s *machinev1beta1.MachineSet) {
			s.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{
				{Key: builder.RoleLabel, Operator: metav1.LabelSelectorOpIn, Values: []string{"worker", "infra"}},
				{Key: "retired", Operator: metav1.LabelSelectorOpDoesNotExist},
			}
		}))
		stranger := builder.In(namespace, builder.Machine())
		create(ctx, stranger, set)
		scaled := &autoscalingv1.Scale{}
		Eventually(func() string {
			Expect(plane.Client.SubResource("scale").Get(ctx, set, scaled)).To(Succeed())
			return scaled.Status.Selector
		}).ShouldNot(BeEmpty())
		Eventually(count(ctx)).Should(Equal(3))
		Expect(len(scaled.Status.Selector)).To(BeNumerically("<=", 4096))
		selector, err := labels.Parse(scaled.Status.Selector)
		Expect(err).NotTo(HaveOccurred())
		selected := &machinev1beta1.MachineList{}
		Expect(plane.Client.List(ctx, selected, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: selector})).To(Succeed())
		Expect(selected.Items).To(HaveLen(2))
		for _, machine := range selected.Items {
			Expect(metav1.IsControlledBy(&machine, set)).To(BeTrue())
		}
	})

	It("change Machines to come, and never those that are there", func(ctx SpecContext) {
		set := builder.In(namespace, builder.MachineSet())
		create(ctx, set)
		Eventually(func() int32 { return statusOf(ctx, set)().FullyLabeledReplicas }).Should(BeEquivalentTo(1))
		first := living(ctx, namespace)[0]
		patch := []byte(`{"spec":{"replicas":2,"template":{"metadata":{"labels":{"wave":"two"}},"spec":{"metadata":{"labels":{"node":"new"}}}}}}`)
		Expect(plane.Client.Patch(ctx, set, client.RawPatch("application/merge-patch+json", patch))).To(Succeed())
		Eventually(func() []int32 {
			status := statusOf(ctx, set)()
			return []int32{status.Replicas, status.FullyLabeledReplicas}
		}).Should(Equal([]int32{2, 1}))
		for _, machine := range living(ctx, namespace) {
			if machine.UID == first.UID {
				Expect(machine.ResourceVersion).To(Equal(first.ResourceVersion))
				continue
			}
			Expect(machine.Labels).To(HaveKeyWithValue("wave", "two"))
			Expect(machine.Spec.Labels).To(HaveKeyWithValue("node", "new"))
		}
	})

	It("are compared with the Machines that are there", func(ctx SpecContext) {
		set := builder.In(namespace, builder.MachineSet(builder.WithReplicas(2)))
		create(ctx, set)
		is := func() string {
			condition := machineapi.FindCondition(statusOf(ctx, set)().Conditions, "TemplateInSync")
			if condition == nil {
				return ""
			}
			return string(condition.Status) + " " + condition.Message
		}
		Eventually(count(ctx)).Should(Equal(2))
		Eventually(is).Should(HavePrefix("True "))
		edit := func(object client.Object, format string) {
			patch := fmt.Appendf(nil, format, builder.ProviderSpec(map[string]any{"cpu": 8}).Raw)
			Expect(plane.Client.Patch(ctx, object, client.RawPatch("application/merge-patch+json", patch))).To(Succeed())
		}
		edit(set, `{"spec":{"template":{"spec":{"providerSpec":{"value":%s}}}}}`)
		for differ := 2; differ > 0; differ-- {
			Eventually(is).Should(HavePrefix("False %d of 2 Machines differ from the template in cpu.", differ))
			edit(&living(ctx, namespace)[differ-1], `{"spec":{"providerSpec":{"value":%s}}}`)
		}
		Eventually(is).Should(HavePrefix("True "))
	})

	It("leave the Machines of a MachineSet alone that selects some of the same", func(ctx SpecContext) {
		narrow := builder.In(namespace, builder.MachineSet(builder.WithReplicas(3)))
		wide := builder.In(namespace, builder.MachineSet(builder.WithReplicas(2), func(s *machinev1beta1.MachineSet) {
			s.Spec.Selector = metav1.LabelSelector{MatchLabels: map[string]string{builder.RoleLabel: "worker"}}
		}))
		create(ctx, narrow, wide)
		counts := func() map[string]int {
			out := map[string]int{}
			for _, machine := range living(ctx, namespace) {
				out[metav1.GetControllerOf(&machine).Name]++
			}
			return out
		}
		want := map[string]int{narrow.Name: 3, wide.Name: 2}
		Eventually(counts).Should(Equal(want))
		Consistently(counts).Should(Equal(want))
		scale(ctx, wide, 0)
		want = map[string]int{narrow.Name: 3}
		Eventually(counts).Should(Equal(want))
		Consistently(counts).Should(Equal(want))
	})
})
