package webhooks_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-iac/machine-iac-operator/api/v1beta1"
	"github.com/machine-iac/machine-iac-operator/test/suite"
)

var _ = Describe("A MachineDeployment", func() {
	deployment := func(namespace string, fields map[string]any) *v1beta1.MachineDeployment {
		set := setWith(namespace, fields)
		return &v1beta1.MachineDeployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "workers-"},
			Spec:       v1beta1.MachineDeploymentSpec{Selector: set.Spec.Selector, Template: set.Spec.Template},
		}
	}

	It("is checked as a MachineSet", func(ctx SpecContext) {
		start(ctx)
		namespace := suite.Namespace(ctx, plane)

		By("creating one")
		good := deployment(namespace, with(nil))
		Expect(plane.Client.Create(ctx, good)).To(Succeed())

		By("creating bad ones")
		wrong := deployment(namespace, with(map[string]any{"cpu": "four"}))
		Expect(plane.Client.Create(ctx, wrong)).To(MatchError(ContainSubstring("providerSpec.cpu")))
		mismatch := deployment(namespace, with(nil))
		mismatch.Spec.Template.Labels = map[string]string{"other": "x"}
		Expect(plane.Client.Create(ctx, mismatch)).To(MatchError(ContainSubstring("does not match template")))
		empty := deployment(namespace, with(nil))
		empty.Spec.Template.Spec.ProviderSpec.Value = nil
		Expect(plane.Client.Create(ctx, empty)).To(MatchError(ContainSubstring("a value must be provided")))

		By("updating one")
		good.Spec.Template.Spec.ProviderSpec.Value = wrong.Spec.Template.Spec.ProviderSpec.Value
		Expect(plane.Client.Update(ctx, good)).To(MatchError(ContainSubstring("providerSpec.cpu")))
	})
})
