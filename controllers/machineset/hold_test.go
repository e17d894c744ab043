package machineset_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/api/v1beta1"
	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
	"github.com/machine-iac/machine-iac-operator/test/builder"
)

var _ = Describe("A MachineSet that a MachineDeployment holds", func() {
	It("tells how to end the hold, unless the MachineDeployment controls it", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		startManager(namespace)
		owner := *metav1.NewControllerRef(&metav1.ObjectMeta{Name: "workers", UID: "workers"},
			v1beta1.GroupVersion.WithKind(v1beta1.MachineDeploymentKind))
		set := builder.In(namespace, builder.MachineSet(func(s *machinev1beta1.MachineSet) {
			s.Annotations = map[string]string{v1beta1.HoldAnnotation: "workers"}
			s.OwnerReferences = []metav1.OwnerReference{owner}
		}))
		create(ctx, set)
		held := func() *machinev1beta1.Condition {
			GinkgoHelper()
			return machineapi.FindCondition(statusOf(ctx, set)().Conditions, "Held")
		}
		patch := func(content string) {
			GinkgoHelper()
			Expect(plane.Client.Patch(ctx, set.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(content)))).To(Succeed())
		}
		Eventually(func() int64 { return statusOf(ctx, set)().ObservedGeneration }).Should(Equal(set.Generation))
		Expect(held()).To(BeNil())

		By("leaving it as an orphan")
		patch(`{"metadata":{"ownerReferences":null}}`)
		Eventually(held).Should(HaveField("Message", ContainSubstring("remove the annotation machine-iac.io/held-by")))
		Expect(living(ctx, namespace)).To(BeEmpty())

		By("removing the annotation")
		patch(`{"metadata":{"annotations":null}}`)
		Eventually(held).Should(BeNil())
		Eventually(func() int { return len(living(ctx, namespace)) }).Should(Equal(1))
	})
})
