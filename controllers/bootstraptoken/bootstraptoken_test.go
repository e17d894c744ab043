package bootstraptoken_test

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/controllers/bootstraptoken"
	"github.com/machine-iac/machine-iac-operator/internal/bootstrap"
	"github.com/machine-iac/machine-iac-operator/internal/installation"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/test/builder"
	"github.com/machine-iac/machine-iac-operator/test/controlplane"
	"github.com/machine-iac/machine-iac-operator/test/suite"
)

var plane *controlplane.ControlPlane

func TestBootstrapTokens(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Bootstrap token controller")
}

var _ = BeforeSuite(func() { plane = suite.Start(controlplane.Default) })

var _ = Describe("The bootstrap token of a Machine", func() {
	var machine *machinev1beta1.Machine
	var own *installation.Installation
	var tokens *bootstrap.Tokens
	var run func()

	BeforeEach(func(ctx SpecContext) {
		namespace := suite.Namespace(ctx, plane)
		machine = builder.Machine(builder.WithFinalizer())
		machine.Namespace = namespace
		Expect(plane.Create(ctx, machine)).To(Succeed())
		own = installation.Generate()
		tokens = bootstrap.New(bootstrap.Options{Client: plane.Client, Installation: own,
			Groups: []string{"system:bootstrappers:test"}, Lifetime: time.Hour})
		Expect(tokens.Publish(ctx, client.ObjectKeyFromObject(machine), machine.UID)).To(Succeed())
		run = func() {
			mgr := suite.NewManager(plane, namespace)
			Expect(bootstraptoken.SetupWithManager(mgr, bootstraptoken.Options{Identity: tokens.Identity, Remove: tokens.Remove})).To(Succeed())
			suite.Run(mgr)
		}
	})

	count := func(ctx SpecContext) func(Gomega) int {
		return func(g Gomega) int {
			found := &corev1.SecretList{}
			g.Expect(plane.Client.List(ctx, found, client.InNamespace("kube-system"),
				client.HasLabels{bootstrap.Label})).To(Succeed())
			return len(found.Items)
		}
	}

	join := func(ctx SpecContext) {
		before := machine.DeepCopy()
		machine.Status.NodeRef = &corev1.ObjectReference{Kind: "Node", Name: "node"}
		Expect(plane.Client.Status().Patch(ctx, machine, client.MergeFrom(before))).To(Succeed())
	}

	remove := func(ctx SpecContext) { Expect(plane.Client.Delete(ctx, machine)).To(Succeed()) }

	release := func(ctx SpecContext) {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		Expect(plane.Client.Patch(ctx, machine, patch)).To(Succeed())
	}

	DescribeTable("is revoked", func(ctx SpecContext, happens func(SpecContext)) {
		run()
		Consistently(count(ctx)).Should(Equal(1), "it waits for its Node")
		happens(ctx)
		Eventually(count(ctx)).Should(BeZero())
	},
		Entry("when its Node joins", join),
		Entry("when its Machine is deleted", remove),
		Entry("when its Machine is gone at once", func(ctx SpecContext) { release(ctx); remove(ctx) }),
	)

	It("is revoked for a Machine that was restored", func(ctx SpecContext) {
		before := machine.DeepCopy()
		witness := record.Witness{IdentityUID: "predecessor"}.SignedFor(machine, own)
		machine.Annotations = map[string]string{record.WitnessAnnotation: witness}
		Expect(plane.Client.Patch(ctx, machine, client.MergeFrom(before))).To(Succeed())
		Expect(tokens.Publish(ctx, client.ObjectKeyFromObject(machine), "predecessor")).To(Succeed())
		Expect(tokens.Remove(ctx, machine.UID)).To(Succeed())
		run()
		join(ctx)
		Eventually(count(ctx)).Should(BeZero())
	})

	It("is revoked by the next manager when its Node joined meanwhile", func(ctx SpecContext) {
		join(ctx)
		run()
		Eventually(count(ctx)).Should(BeZero())
	})
})
