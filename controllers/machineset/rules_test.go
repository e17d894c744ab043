package machineset_test

import (
	"context"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/machine-iac/machine-iac-operator/controllers/machineset"
	"github.com/machine-iac/machine-iac-operator/test/builder"
	"github.com/machine-iac/machine-iac-operator/test/suite"
)

type setMod = func(*machinev1beta1.MachineSet)

// No webhook runs here, so what is tested is what a cluster without webhooks lets in.
var _ = Describe("A MachineSet that breaks a rule", func() {
	var (
		namespace string
		gets      *countingClient
	)
	BeforeEach(func(ctx SpecContext) {
		namespace = newNamespace(ctx)
		startManager(namespace, func(o *machineset.Options, mgr manager.Manager) {
			gets = &countingClient{Client: mgr.GetClient()}
			o.Client = gets
		})
	})

	// unhappy makes such a MachineSet and waits for the event about it.
	unhappy := func(ctx context.Context, mod setMod, says ...string) *machinev1beta1.MachineSet {
		GinkgoHelper()
		set := builder.In(namespace, builder.MachineSet(mod))
		create(ctx, set)
		all := make([]types.GomegaMatcher, 0, len(says))
		for _, text := range says {
			all = append(all, ContainSubstring(text))
		}
		Eventually(func() []string { return notes(ctx, namespace, "ReconcileError") }).Should(ContainElement(And(all...)))
		Expect(living(ctx, namespace)).To(BeEmpty())
		return set
	}
	canBeDeleted := func(ctx context.Context, set *machinev1beta1.MachineSet) {
		GinkgoHelper()
		Expect(plane.Client.Delete(ctx, set)).To(Succeed())
		Expect(apierrors.IsNotFound(plane.Client.Get(ctx, client.ObjectKeyFromObject(set), set))).To(BeTrue())
	}

	DescribeTable("reports which field to fix and how, once, and can be deleted",
		func(ctx SpecContext, mod setMod, says ...string) {
			set := unhappy(ctx, mod, says...)
			seen := gets.ofSets.Load()
			Consistently(gets.ofSets.Load).WithTimeout(suite.Watch(time.Second)).Should(BeNumerically("<=", seen+2), "reconciles although nothing has changed")
			canBeDeleted(ctx, set)
		},
		Entry("a selector that is empty", func(s *machinev1beta1.MachineSet) { s.Spec.Selector = metav1.LabelSelector{} },
			"spec.selector is empty", "name at least one label"),
		Entry("a selector that cannot be read", func(s *machinev1beta1.MachineSet) {
			s.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "x", Operator: "Like"}}
		}, "spec.selector cannot be read", `"Like"`, "fix the selector"),
		Entry("a selector with a label that Kubernetes does not allow", func(s *machinev1beta1.MachineSet) {
			s.Spec.Selector.MatchLabels = map[string]string{"not a key!": "x"}
		}, "spec.selector cannot be read", "not a key!", "fix the selector"),
		Entry("a selector that the template misses", func(s *machinev1beta1.MachineSet) { delete(s.Spec.Template.Labels, builder.MachineSetLabel) },
			"spec.selector", "does not match spec.template.metadata.labels", "add the selected labels to the template"),
		Entry("a template without labels", func(s *machinev1beta1.MachineSet) { s.Spec.Template.Labels = nil },
			"does not match spec.template.metadata.labels", "add the selected labels to the template"),
		Entry("a template without providerSpec", func(s *machinev1beta1.MachineSet) { s.Spec.Template.Spec.ProviderSpec.Value = nil },
			"spec.template.spec.providerSpec.value is missing", "describe the instance"),
	)

	It("reports what the API server says of its Machines, and tried again ever more rarely", func(ctx SpecContext) {
		set := unhappy(ctx, func(s *machinev1beta1.MachineSet) { s.Spec.Template.Labels["not a key!"] = "x" },
			"creating Machines", "metadata.labels", "not a key!")
		seen := gets.ofSets.Load()
		Consistently(gets.ofSets.Load).WithTimeout(suite.Watch(time.Second)).Should(BeNumerically("<=", seen+12))
		canBeDeleted(ctx, set)
	})

	It("can still shrink when its template has lost the providerSpec", func(ctx SpecContext) {
		set := builder.In(namespace, builder.MachineSet(builder.WithReplicas(3)))
		create(ctx, set)
		Eventually(func() int { return len(living(ctx, namespace)) }).Should(Equal(3))
		patch := []byte(`{"spec":{"replicas":1,"template":{"spec":{"providerSpec":{"value":null}}}}}`)
		Expect(plane.Client.Patch(ctx, set, client.RawPatch("application/merge-patch+json", patch))).To(Succeed())
		Eventually(func() int { return len(living(ctx, namespace)) }).Should(Equal(1))
	})

	DescribeTable("is refused by the API server itself", func(ctx SpecContext, mod setMod, says string) {
		err := plane.Create(ctx, builder.In(namespace, builder.MachineSet(mod)))
		Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
		Expect(err.Error()).To(ContainSubstring(says))
	},
		Entry("an unknown delete policy", builder.WithDeletePolicy("Biggest"), "spec.deletePolicy"),
		Entry("fewer replicas than none", builder.WithReplicas(-3), "spec.replicas"),
	)

	It("gets one Machine when it does not say how many", func(ctx SpecContext) {
		create(ctx, builder.In(namespace, builder.MachineSet(func(s *machinev1beta1.MachineSet) { s.Spec.Replicas = nil })))
		Eventually(func() int { return len(living(ctx, namespace)) }).Should(Equal(1))
	})
})

// countingClient counts the looks at MachineSets, of which each reconcile has one.
type countingClient struct {
	client.Client
	ofSets atomic.Int32
}

func (c *countingClient) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if _, ok := object.(*machinev1beta1.MachineSet); ok {
		c.ofSets.Add(1)
	}
	return c.Client.Get(ctx, key, object, options...)
}
