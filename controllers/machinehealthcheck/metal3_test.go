package machinehealthcheck_test

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/test/builder"
	"github.com/machine-iac/machine-iac-operator/test/suite"
)

const (
	metal3Group   = "infrastructure.cluster.x-k8s.io"
	metal3Version = metal3Group + "/v1beta1"
	// metal3Finalizer holds a request while Metal3 remediates the host.
	metal3Finalizer = "metal3remediation." + metal3Group
	// hostAnnotation names a Machine's host. Metal3 reads it.
	hostAnnotation = "metal3.io/BareMetalHost"
)

// object returns the schema of an object; other fields are pruned, as by the schemas of Metal3.
func object(properties map[string]any) map[string]any {
	return map[string]any{"type": "object", "properties": properties}
}

// installMetal3Kinds installs CRDs of the form of Metal3's: with schemas, and a status that only
// its subresource writes.
func installMetal3Kinds(ctx context.Context) {
	GinkgoHelper()
	strategy := object(map[string]any{
		"type": map[string]any{"type": "string"}, "retryLimit": map[string]any{"type": "integer"}, "timeout": map[string]any{"type": "string"},
	})
	remediation := object(map[string]any{"strategy": strategy})
	schemas := map[string]any{
		"Metal3Remediation":         remediation,
		"Metal3RemediationTemplate": object(map[string]any{"template": object(map[string]any{"spec": remediation})}),
	}
	for kind, spec := range schemas {
		plural := strings.ToLower(kind) + "s"
		status := object(map[string]any{"phase": map[string]any{"type": "string"}, "retryCount": map[string]any{"type": "integer"}})
		create(ctx, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
			"metadata": map[string]any{"name": plural + "." + metal3Group},
			"spec": map[string]any{
				"group": metal3Group, "scope": "Namespaced",
				"names": map[string]any{"kind": kind, "listKind": kind + "List", "plural": plural, "singular": strings.ToLower(kind)},
				"versions": []any{map[string]any{
					"name": "v1beta1", "served": true, "storage": true, "subresources": map[string]any{"status": map[string]any{}},
					"schema": map[string]any{"openAPIV3Schema": object(map[string]any{"spec": spec, "status": status})},
				}},
			},
		}})
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(metal3("", "", "").GroupVersionKind().GroupVersion().WithKind(kind + "List"))
		Eventually(func() error { return plane.Client.List(ctx, list) }).Should(Succeed())
	}
}

func metal3(kind, namespace, name string) *unstructured.Unstructured {
	out := &unstructured.Unstructured{}
	out.SetAPIVersion(metal3Version)
	out.SetKind(kind)
	out.SetNamespace(namespace)
	out.SetName(name)
	return out
}

var _ = Describe("A MachineHealthCheck of bare-metal hosts", Ordered, func() {
	const yes, no = corev1.ConditionTrue, corev1.ConditionFalse
	var namespace string
	BeforeAll(func(ctx SpecContext) { installMetal3Kinds(ctx) })
	BeforeEach(func(ctx SpecContext) { namespace = suite.Namespace(ctx, plane) })

	host := builder.WithAnnotations(map[string]string{hostAnnotation: "openshift-machine-api/host-1"})
	machineOf := func(ctx context.Context, m member) *machinev1beta1.Machine {
		GinkgoHelper()
		machine := &machinev1beta1.Machine{}
		Expect(plane.Client.Get(ctx, client.ObjectKeyFromObject(m.machine), machine)).To(Succeed())
		return machine
	}
	healthy := func(ctx context.Context, check *machinev1beta1.MachineHealthCheck) func() int {
		return func() int {
			if current := statusOf(ctx, check).CurrentHealthy; current != nil {
				return *current
			}
			return -1
		}
	}
	// rejoin deletes the Node, as Metal3 does with that of a host which is off, and creates one of
	// the same name, as the kubelet does.
	rejoin := func(ctx context.Context, m member, meanwhile func()) {
		GinkgoHelper()
		Expect(plane.Client.Delete(ctx, m.node.DeepCopy())).To(Succeed())
		meanwhile()
		again := builder.Node(builder.WithReady(yes, time.Now()))
		again.Name = m.node.Name
		create(ctx, again)
		machine := machineOf(ctx, m)
		machine.Status.NodeRef.UID = again.UID
		Expect(plane.Client.Status().Update(ctx, machine)).To(Succeed())
	}

	It("with a template has Metal3 remediate a host, waits, and is done when the Node is back", func(ctx SpecContext) {
		template := metal3("Metal3RemediationTemplate", namespace, "reboot")
		strategy := map[string]any{"strategy": map[string]any{"type": "Reboot", "retryLimit": int64(1), "timeout": "5m0s"}}
		template.Object["spec"] = map[string]any{"template": map[string]any{"spec": strategy}}
		create(ctx, template)
		check := builder.In(namespace, builder.MachineHealthCheck(builder.WithRemediationTemplate(metal3Version, "Metal3RemediationTemplate", "reboot")))
		create(ctx, check)
		startManager(namespace)
		subject := onNode(namespace, no, time.Now().Add(-time.Hour), host).create(ctx)

		request := metal3("Metal3Remediation", namespace, subject.machine.Name)
		stored := func() error { return plane.Client.Get(ctx, client.ObjectKeyFromObject(request), request) }
		Eventually(stored).Should(Succeed())
		Expect(request.Object["spec"]).To(Equal(strategy))
		Expect(request.GetAnnotations()).To(HaveKeyWithValue("machine.openshift.io/cloned-from-groupkind", "Metal3RemediationTemplate."+metal3Group))
		Expect(request.GetOwnerReferences()).To(ConsistOf(HaveField("UID", subject.machine.UID)))
		made := request.GetUID()

		By("waiting while Metal3 is at work, also when the Node is gone")
		request.SetFinalizers([]string{metal3Finalizer})
		Expect(plane.Client.Update(ctx, request)).To(Succeed())
		phase := client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Running"}}`))
		Expect(plane.Client.Status().Patch(ctx, request, phase)).To(Succeed())
		rejoin(ctx, subject, func() {
			Consistently(func(g Gomega) {
				g.Expect(stored()).To(Succeed())
				g.Expect(request.GetUID()).To(Equal(made))
				g.Expect(request.GetDeletionTimestamp()).To(BeNil())
				g.Expect(living(ctx, subject)()).To(HaveLen(1))
			}).Should(Succeed())
		})

		By("deleting the request when the Node is back, which Metal3 lets go")
		Eventually(func() *metav1.Time { _ = stored(); return request.GetDeletionTimestamp() }).ShouldNot(BeNil())
		letGo := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		Expect(plane.Client.Patch(ctx, request, letGo)).To(Succeed())
		Eventually(stored).Should(MatchError(apierrors.IsNotFound, "NotFound"))
		Eventually(healthy(ctx, check)).Should(Equal(1))
		Expect(machineOf(ctx, subject).Annotations).To(Equal(map[string]string{hostAnnotation: "openshift-machine-api/host-1"}))
	})

	It("with the annotation asks for remediation once, and counts the Machine as unhealthy until Metal3 has removed it", func(ctx SpecContext) {
		check := builder.In(namespace, builder.MachineHealthCheck(baremetal))
		create(ctx, check)
		startManager(namespace)
		subject := onNode(namespace, no, time.Now().Add(-time.Hour), host).create(ctx)
		annotations := func() map[string]string { return machineOf(ctx, subject).Annotations }
		Eventually(annotations).Should(HaveKeyWithValue("host.metal3.io/external-remediation", ""))
		version := machineOf(ctx, subject).ResourceVersion

		rejoin(ctx, subject, func() {
			Consistently(func() string { return machineOf(ctx, subject).ResourceVersion }).Should(Equal(version))
			Expect(living(ctx, subject)()).To(HaveLen(1))
		})
		Eventually(healthy(ctx, check)).Should(Equal(0))
		Consistently(healthy(ctx, check)).Should(Equal(0))

		remove := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"host.metal3.io/external-remediation":null}}}`))
		Expect(plane.Client.Patch(ctx, machineOf(ctx, subject), remove)).To(Succeed())
		Eventually(healthy(ctx, check)).Should(Equal(1))
		Expect(annotations()).To(Equal(map[string]string{hostAnnotation: "openshift-machine-api/host-1"}))
	})
})
