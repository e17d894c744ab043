package machinehealthcheck_test

import (
	"context"
	"errors"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
	"github.com/machine-iac/machine-iac-operator/controllers/machinehealthcheck"
	"github.com/machine-iac/machine-iac-operator/test/builder"
	"github.com/machine-iac/machine-iac-operator/test/suite"
)

var _ = Describe("External remediation by template", func() {
	const (
		template = machinev1beta1.ExternalRemediationTemplateAvailable
		request  = machinev1beta1.ExternalRemediationRequestAvailable
		missing  = "False ExternalRemediationTemplateNotFound"
		refused  = "False ExternalRemediationRequestCreationFailed"
		yes, no  = corev1.ConditionTrue, corev1.ConditionFalse
	)
	var namespace string
	BeforeEach(func(ctx SpecContext) { namespace = suite.Namespace(ctx, plane) })

	newCheck := func(ctx context.Context, mods ...checkMod) *machinev1beta1.MachineHealthCheck {
		GinkgoHelper()
		check := builder.In(namespace, builder.MachineHealthCheck(mods...))
		create(ctx, check)
		return check
	}
	// requestOf returns the request of a member, nil when there is none.
	requestOf := func(ctx context.Context, m member) *unstructured.Unstructured {
		GinkgoHelper()
		out := reboot("", "")
		err := plane.Client.Get(ctx, client.ObjectKeyFromObject(m.machine), out)
		if apierrors.IsNotFound(err) {
			return nil
		}
		Expect(err).NotTo(HaveOccurred())
		return out
	}
	messageOf := func(ctx context.Context, check *machinev1beta1.MachineHealthCheck, kind machinev1beta1.ConditionType) string {
		GinkgoHelper()
		condition := machineapi.FindCondition(statusOf(ctx, check).Conditions, kind)
		Expect(condition).NotTo(BeNil())
		return condition.Message
	}

	It("makes a request, keeps it, and deletes it when the Machine is healthy", func(ctx SpecContext) {
		create(ctx, rebootTemplate(namespace, "power"))
		check := newCheck(ctx, rebooting("power"))
		startManager(namespace)
		subject := onNode(namespace, no, time.Now().Add(-time.Hour), orphaned).create(ctx)
		current := func() *unstructured.Unstructured { return requestOf(ctx, subject) }
		Eventually(current).ShouldNot(BeNil())
		made := current()
		Expect(made.Object["spec"]).To(Equal(map[string]any{"method": "power"}))
		Expect(made.GetAnnotations()).To(Equal(map[string]string{
			"machine.openshift.io/cloned-from-name":      "power",
			"machine.openshift.io/cloned-from-groupkind": "RebootTemplate.reboot.example.com",
		}))
		Expect(made.GetOwnerReferences()).To(ConsistOf(metav1.OwnerReference{
			APIVersion: "machine.openshift.io/v1beta1", Kind: "Machine", Name: subject.machine.Name, UID: subject.machine.UID,
		}))
		Eventually(conditionOf(ctx, check, template)).Should(Equal("True"))
		Eventually(conditionOf(ctx, check, request)).Should(Equal("True"))

		By("keeping it while the Machine is not well")
		subject.turn(ctx, corev1.ConditionUnknown, time.Now().Add(-time.Minute))
		Eventually(func() string { return messageOfEvent(ctx, namespace, "DetectedUnhealthy") }).ShouldNot(BeEmpty())
		Expect(current()).To(HaveField("GetUID()", made.GetUID()))
		Expect(living(ctx, subject)()).To(HaveLen(1))

		subject.turn(ctx, yes, time.Now())
		Eventually(current).Should(BeNil())
		Eventually(conditionOf(ctx, check, request)).Should(BeEmpty())
	})

	It("shows that the template is missing, and fixes that", func(ctx SpecContext) {
		subject := onNode(namespace, no, ago(time.Hour)).create(ctx)
		check := newCheck(ctx, rebooting("power"))
		p := byHand(check, now)
		Expect(p.next(ctx).err).To(MatchError(ContainSubstring("getting the remediation template RebootTemplate power")))
		Expect(conditionOf(ctx, check, template)()).To(Equal(missing))
		Expect(messageOf(ctx, check, template)).To(ContainSubstring("create the RebootTemplate, or correct spec.remediationTemplate"))
		Expect(living(ctx, subject)()).To(HaveLen(1))
		quiet := p.next(ctx)
		Expect(quiet.writes).To(BeEmpty())

		create(ctx, rebootTemplate(namespace, "power"))
		Expect(p.next(ctx).err).NotTo(HaveOccurred())
		Expect(requestOf(ctx, subject)).NotTo(BeNil())
		Expect(conditionOf(ctx, check, template)()).To(Equal("True"))
		Expect(conditionOf(ctx, check, request)()).To(Equal("True"))

		By("dropping the conditions with the template")
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"remediationTemplate":null}}`))
		Expect(plane.Client.Patch(ctx, check.DeepCopy(), patch)).To(Succeed())
		Expect(p.next(ctx).err).NotTo(HaveOccurred())
		Expect(conditionOf(ctx, check, template)()).To(BeEmpty())
		Expect(conditionOf(ctx, check, request)()).To(BeEmpty())
	})

	It("shows a missing template before anything is wrong, without failing", func(ctx SpecContext) {
		onNode(namespace, yes, ago(time.Hour)).create(ctx)
		check := newCheck(ctx, rebooting("power"))
		got := byHand(check, now).next(ctx)
		Expect(got.err).NotTo(HaveOccurred())
		Expect(got.after).To(Equal(5 * time.Minute))
		Expect(conditionOf(ctx, check, template)()).To(Equal(missing))
	})

	DescribeTable("says what to do when", func(ctx SpecContext, apiVersion, kind string, wantTemplate, wantRequest, wantFix string) {
		onNode(namespace, no, ago(time.Hour)).create(ctx)
		check := newCheck(ctx, builder.WithRemediationTemplate(apiVersion, kind, "power"))
		Expect(byHand(check, now).next(ctx).err).To(HaveOccurred())
		Expect(conditionOf(ctx, check, template)()).To(Equal(wantTemplate))
		Expect(conditionOf(ctx, check, request)()).To(Equal(wantRequest))
		Expect(messageOf(ctx, check, template)).To(ContainSubstring(wantFix))
	},
		Entry("no CRD is installed", "absent.example.com/v1", "PowerTemplate", missing, refused,
			"install the CustomResourceDefinition of PowerTemplate in absent.example.com/v1"),
		Entry("the kind is no template's", rebootVersion, "Reboot", missing, "", "use a kind that ends in Template"),
	)

	It("shows a lack of rights in both conditions", func(ctx SpecContext) {
		onNode(namespace, no, ago(time.Hour)).create(ctx)
		create(ctx, rebootTemplate(namespace, "power"))
		check := newCheck(ctx, rebooting("power"))
		forbidden := func(resource string) error {
			return apierrors.NewForbidden(schema.GroupResource{Group: rebootGroup, Resource: resource}, "power", errors.New("no rule"))
		}
		p := byHand(check, now, func(options *machinehealthcheck.Options) {
			options.Reader = interceptor.NewClient(watching, interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, mods ...client.GetOption) error {
					if object.GetObjectKind().GroupVersionKind().Group == rebootGroup {
						return forbidden("reboottemplates")
					}
					return c.Get(ctx, key, object, mods...)
				},
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, mods ...client.ListOption) error {
					if list.GetObjectKind().GroupVersionKind().Group == rebootGroup {
						return forbidden("reboots")
					}
					return c.List(ctx, list, mods...)
				},
			})
		})
		Expect(p.next(ctx).err).To(MatchError(ContainSubstring("forbidden")))
		Expect(conditionOf(ctx, check, template)()).To(Equal(missing))
		Expect(messageOf(ctx, check, template)).To(ContainSubstring("grant the operator's service account get for RebootTemplate"))
		Expect(conditionOf(ctx, check, request)()).To(Equal(refused))
		Expect(messageOf(ctx, check, request)).To(ContainSubstring("grant the operator's service account list, create and delete for Reboot"))
	})

	It("shows a request that is refused, and makes those of others", func(ctx SpecContext) {
		refusedOne := onNode(namespace, no, ago(2*time.Hour)).create(ctx)
		other := onNode(namespace, no, ago(time.Hour)).create(ctx)
		create(ctx, rebootTemplate(namespace, "power"))
		check := newCheck(ctx, rebooting("power"))
		p := byHand(check, now, func(options *machinehealthcheck.Options) {
			options.Client = interceptor.NewClient(watching, interceptor.Funcs{
				Create: func(ctx context.Context, c client.WithWatch, object client.Object, mods ...client.CreateOption) error {
					if object.GetName() == refusedOne.machine.Name {
						return apierrors.NewBadRequest("a webhook says no")
					}
					return c.Create(ctx, object, mods...)
				},
			})
		})
		Expect(p.next(ctx).err).To(MatchError(ContainSubstring("a webhook says no")))
		Expect(conditionOf(ctx, check, template)()).To(Equal("True"))
		Expect(conditionOf(ctx, check, request)()).To(Equal(refused))
		Expect(messageOf(ctx, check, request)).To(ContainSubstring(refusedOne.machine.Name))
		Expect(requestOf(ctx, other)).NotTo(BeNil())
	})

	It("leaves a request alone that belongs to another, and takes it for its own purpose", func(ctx SpecContext) {
		subject := onNode(namespace, yes, ago(time.Hour)).create(ctx)
		create(ctx, rebootTemplate(namespace, "power"), reboot(namespace, subject.machine.Name))
		check := newCheck(ctx, rebooting("power"))
		p := byHand(check, now)
		Expect(p.next(ctx).err).NotTo(HaveOccurred())
		Expect(requestOf(ctx, subject)).NotTo(BeNil())
		subject.turn(ctx, no, ago(time.Hour))
		got := p.next(ctx)
		Expect(got.err).NotTo(HaveOccurred())
		Expect(got.writes).NotTo(ContainElement(HavePrefix("create")))
	})

	It("deletes the request of a healthy Machine though remediation is restricted", func(ctx SpecContext) {
		well := onNode(namespace, no, ago(time.Hour)).create(ctx)
		unhealthy := onNode(namespace, yes, ago(time.Hour)).create(ctx)
		create(ctx, rebootTemplate(namespace, "power"))
		check := newCheck(ctx, rebooting("power"), builder.WithMaxUnhealthy("1"))
		p := byHand(check, now)
		Expect(p.next(ctx).err).NotTo(HaveOccurred())
		Expect(requestOf(ctx, well)).NotTo(BeNil())

		patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"maxUnhealthy":0}}`))
		Expect(plane.Client.Patch(ctx, check.DeepCopy(), patch)).To(Succeed())
		well.turn(ctx, yes, ago(time.Minute))
		unhealthy.turn(ctx, no, ago(time.Hour))
		Expect(p.next(ctx).err).NotTo(HaveOccurred())
		Expect(requestOf(ctx, well)).To(BeNil())
		Expect(requestOf(ctx, unhealthy)).To(BeNil())
	})

	It("counts outstanding requests against the limit", func(ctx SpecContext) {
		first := onNode(namespace, no, ago(2*time.Hour)).create(ctx)
		second := onNode(namespace, no, ago(time.Hour)).create(ctx)
		create(ctx, rebootTemplate(namespace, "power"))
		check := newCheck(ctx, rebooting("power"),
			builder.WithCheckAnnotations(map[string]string{"machine-iac.io/max-remediations-in-flight": "1"}))
		p := byHand(check, now)
		for range 2 {
			got := p.next(ctx)
			Expect(got.err).NotTo(HaveOccurred())
			Expect(got.after).To(Equal(5 * time.Minute))
			Expect(requestOf(ctx, first)).NotTo(BeNil())
			Expect(requestOf(ctx, second)).To(BeNil())
		}
		first.turn(ctx, yes, ago(time.Minute))
		Expect(p.next(ctx).err).NotTo(HaveOccurred())
		Expect(requestOf(ctx, first)).To(BeNil())
		Expect(requestOf(ctx, second)).NotTo(BeNil())
	})
})
