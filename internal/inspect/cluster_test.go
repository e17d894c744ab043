package inspect_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/internal/inspect"
	"github.com/machine-iac/machine-iac-operator/test/builder"
	"github.com/machine-iac/machine-iac-operator/test/suite"
)

var _ = Describe("Reading a cluster", func() {
	var namespace string
	everything := inspect.Want{Sets: true, Nodes: true}

	BeforeEach(func(ctx SpecContext) { namespace = suite.Namespace(ctx, plane) })

	It("returns what there is, sorted, in one namespace or in all", func(ctx SpecContext) {
		node := builder.Node()
		set := builder.In(namespace, builder.MachineSet())
		Expect(plane.Create(ctx, node, set)).To(Succeed())
		for _, name := range []string{"c", "a", "b"} {
			Expect(plane.Create(ctx, builder.Machine(builder.WithOwner(set), builder.WithPhase("Running"), builder.WithNodeRef(node),
				func(m *machinev1beta1.Machine) { m.Name = name }))).To(Succeed())
		}
		other := suite.Namespace(ctx, plane)
		Expect(plane.Create(ctx, builder.In(other, builder.Machine()))).To(Succeed())

		facts, err := clusterOf("", namespace).Read(ctx, everything, time.Now())
		Expect(err).NotTo(HaveOccurred())
		Expect(facts.Notes).To(BeEmpty())
		Expect(facts.Machines).To(HaveExactElements(HaveField("Name", "a"), HaveField("Name", "b"), HaveField("Name", "c")))
		forest := inspect.Tree(facts)
		Expect(forest.Items).To(HaveExactElements(And(HaveField("Name", set.Name), HaveField("Children", HaveLen(3)))))
		Expect(forest.Items[0].Children[0]).To(And(HaveField("Status", "Running"), HaveField("Children", HaveExactElements(
			And(HaveField("Kind", "Node"), HaveField("Name", node.Name), HaveField("Status", "Ready"))))))

		facts, err = clusterOf("", "").Read(ctx, inspect.Want{}, time.Now())
		Expect(err).NotTo(HaveOccurred())
		Expect(facts.Machines).To(And(ContainElement(HaveField("Namespace", namespace)), ContainElement(HaveField("Namespace", other))))
		Expect(facts.Sets).To(BeEmpty())
		Expect(facts.Nodes).To(BeNil())
	})

	It("reads more Machines than one response holds", func(ctx SpecContext) {
		const many = 502
		for range many {
			Expect(plane.Client.Create(ctx, builder.In(namespace, builder.Machine()))).To(Succeed())
		}
		names, err := clusterOf("", namespace).Names(ctx, "Machine")
		Expect(err).NotTo(HaveOccurred())
		Expect(names).To(HaveLen(many))
	})

	It("does without Nodes where they may not be read, and says so", func(ctx SpecContext) {
		user := userWho(ctx, namespace, mayRead("machine.openshift.io", "machines", "machinesets", "machinedeployments"))
		Expect(plane.Create(ctx, builder.In(namespace, builder.Machine()))).To(Succeed())

		facts, err := clusterOf(user, namespace).Read(ctx, everything, time.Now())
		Expect(err).NotTo(HaveOccurred())
		Expect(facts.Machines).To(HaveLen(1))
		Expect(facts.Nodes).To(BeNil())
		Expect(facts.Notes).To(HaveExactElements(HavePrefix("you may not list Nodes")))
	})

	It("says which right is missing where it can do nothing without", func(ctx SpecContext) {
		user := userWho(ctx, namespace, mayRead("machine.openshift.io", "machinesets"))

		_, err := clusterOf(user, namespace).Read(ctx, everything, time.Now())
		Expect(err).To(MatchError(And(ContainSubstring("cannot list resource \"machines\""), ContainSubstring("docs/kubectl-machine.md lists the rights"))))
	})
})
