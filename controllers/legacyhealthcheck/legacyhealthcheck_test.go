package legacyhealthcheck

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/controllers/pipeline"
	"github.com/machine-iac/machine-iac-operator/test/suite"
)

var workers = map[string]any{"matchLabels": map[string]any{"role": "worker"}}

var _ = Describe("A MachineHealthCheck of healthchecking.openshift.io", func() {
	It("is converted, and its changes are", func(ctx SpecContext) {
		w := start(ctx, "")
		legacy := w.create(ctx, map[string]any{"selector": workers})
		Eventually(w.unhealthy(ctx)).Should(Equal([]string{"Ready Unknown 5m0s", "Ready False 5m0s"}))
		check, err := w.converted(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(check.Spec.Selector.MatchLabels).To(Equal(map[string]string{"role": "worker"}))
		Expect(check.Spec.MaxUnhealthy.String()).To(Equal("100%"))
		Expect(metav1.IsControlledBy(check, legacy)).To(BeTrue())

		legacy.Object["spec"] = map[string]any{
			"selector": workers, "maxUnhealthy": int64(2), "remediationStrategy": "ReCreate",
			"unhealthyConditions": []any{map[string]any{"type": "DiskPressure", "status": "True", "timeout": "90s"}},
		}
		Expect(plane.Client.Update(ctx, legacy)).To(Succeed())
		Eventually(w.unhealthy(ctx)).Should(Equal([]string{"DiskPressure True 1m30s"}))
		check, err = w.converted(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(check.Spec.MaxUnhealthy.String()).To(Equal("2"))
		Expect(w.events).NotTo(Receive())
	})

	It("takes what is unhealthy from the ConfigMap", func(ctx SpecContext) {
		w := start(ctx, "items:\n- {name: Ready, status: Unknown, timeout: 300s}\n- {name: NetworkUnavailable, status: True, timeout: 5m}\n")
		w.create(ctx, map[string]any{"selector": workers})
		Eventually(w.unhealthy(ctx)).Should(Equal([]string{"Ready Unknown 5m0s", "NetworkUnavailable True 5m0s"}))
	})

	DescribeTable("is not converted, with an event",
		func(ctx SpecContext, conditions string, spec map[string]any, want string) {
			w := start(ctx, conditions)
			spec["selector"] = workers
			w.create(ctx, spec)
			Eventually(w.events).Should(Receive(And(HavePrefix("Warning NotConverted "), ContainSubstring(want))))
			_, err := w.converted(ctx)
			Expect(client.IgnoreNotFound(err)).To(Succeed())
			Expect(err).To(HaveOccurred())
		},
		Entry("if it asks for a reboot", "", map[string]any{"remediationStrategy": "Reboot"}, `remediationStrategy "Reboot" is not supported`),
		Entry("if the ConfigMap is no list", "Ready", map[string]any{}, "ConfigMap node-unhealthy-conditions: conditions is no list"),
		Entry("if a timeout is invalid", "items: [{name: Ready, status: 'False', timeout: soon}]", map[string]any{}, "spec.unhealthyConditions[0].timeout"),
	)

	It("leaves one of its name alone", func(ctx SpecContext) {
		w := start(ctx, "")
		own := &machinev1beta1.MachineHealthCheck{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "workers"}}
		own.Spec.UnhealthyConditions = []machinev1beta1.UnhealthyCondition{{Type: "Own", Status: "True"}}
		Expect(plane.Client.Create(ctx, own)).To(Succeed())
		w.create(ctx, map[string]any{"selector": workers})
		Eventually(w.events).Should(Receive(ContainSubstring("exists already and counts")))
		Expect(w.unhealthy(ctx)()).To(Equal([]string{"Own True 0s"}))
	})
})

var _ = Describe("A Cluster", func() {
	It("is kept as it is written", func(ctx SpecContext) {
		w := start(ctx, "")
		made := ofKind(schema.GroupVersionKind{Group: "machine.openshift.io", Version: "v1beta1", Kind: "Cluster"})
		made.SetNamespace(w.namespace)
		made.SetName("demo")
		made.Object["spec"] = map[string]any{"clusterNetwork": map[string]any{"serviceDomain": "cluster.local"}}
		Expect(plane.Client.Create(ctx, made)).To(Succeed())
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(made.GroupVersionKind())
		Expect(plane.Client.List(ctx, list, client.InNamespace(w.namespace))).To(Succeed())
		Expect(list.Items).To(HaveLen(1))
		Expect(list.Items[0].Object["spec"]).To(Equal(made.Object["spec"]))
	})
})

var _ = Describe("The API of legacy MachineHealthChecks", func() {
	readable := func(ctx context.Context, user rest.ImpersonationConfig) bool {
		GinkgoHelper()
		config := rest.CopyConfig(plane.Config)
		config.Impersonate = user
		as, err := client.New(config, client.Options{Scheme: plane.Scheme})
		Expect(err).NotTo(HaveOccurred())
		found, err := pipeline.Readable(ctx, as, Kind, suite.Namespace(ctx, plane), "apply install/legacy")
		Expect(err).NotTo(HaveOccurred())
		return found
	}

	It("is not read by a manager without the right, which goes on", func(ctx SpecContext) {
		Expect(readable(ctx, rest.ImpersonationConfig{})).To(BeTrue())
		Expect(readable(ctx, rest.ImpersonationConfig{UserName: "manager", Groups: []string{"system:authenticated"}})).To(BeFalse())
	})
})
