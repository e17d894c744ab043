package machinehealthcheck_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/test/builder"
	"github.com/machine-iac/machine-iac-operator/test/suite"
)

var _ = Describe("A MachineHealthCheck that its type cannot hold", func() {
	It("reports what is wrong with it, keeps no other from its work, and works once it is fixed", func(ctx SpecContext) {
		namespace := suite.Namespace(ctx, plane)
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(
			builder.In(namespace, builder.MachineHealthCheck(builder.WithSelector(map[string]string{"of": "misfit"}))))
		Expect(err).NotTo(HaveOccurred())
		misfit := &unstructured.Unstructured{Object: content}
		Expect(unstructured.SetNestedField(misfit.Object, "99999999h", "spec", "nodeStartupTimeout")).To(Succeed())
		Expect(plane.Client.Create(ctx, misfit)).To(Succeed())
		long := time.Now().Add(-time.Hour)
		labelled := func(of string) func(*machinev1beta1.Machine) { return builder.WithLabels(map[string]string{"of": of}) }
		theirs := onNode(namespace, corev1.ConditionFalse, long, labelled("misfit")).create(ctx)
		others := onNode(namespace, corev1.ConditionFalse, long, labelled("other")).create(ctx)
		create(ctx, builder.In(namespace, builder.MachineHealthCheck(builder.WithSelector(map[string]string{"of": "other"}))))

		startManager(namespace)
		Eventually(living(ctx, others)).Should(BeEmpty())
		sent := func() string {
			GinkgoHelper()
			Expect(plane.Client.Get(ctx, client.ObjectKeyFromObject(misfit), misfit)).To(Succeed())
			conditions, _, err := unstructured.NestedSlice(misfit.Object, "status", "conditions")
			Expect(err).NotTo(HaveOccurred())
			if len(conditions) != 1 {
				return ""
			}
			condition := conditions[0].(map[string]any)
			return condition["type"].(string) + " " + condition["status"].(string) + ": " + condition["message"].(string)
		}
		Eventually(sent).Should(And(HavePrefix("RemediationAllowed False"), ContainSubstring(`spec.nodeStartupTimeout is "99999999h"`)))
		Eventually(func() string { return messageOfEvent(ctx, namespace, "RemediationRestricted") }).Should(ContainSubstring("use a value such as 10m"))
		Expect(living(ctx, theirs)()).To(HaveLen(1))

		fix := []byte(`{"spec":{"nodeStartupTimeout":"10m"}}`)
		Expect(plane.Client.Patch(ctx, misfit, client.RawPatch(types.MergePatchType, fix))).To(Succeed())
		Eventually(living(ctx, theirs)).Should(BeEmpty())
	})
})
