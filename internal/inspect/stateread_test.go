package inspect_test

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-iac/machine-iac-operator/internal/inspect"
	"github.com/machine-iac/machine-iac-operator/internal/state"
	"github.com/machine-iac/machine-iac-operator/test/builder"
	"github.com/machine-iac/machine-iac-operator/test/suite"
)

// stored gives a Machine a state of some versions, and leaves its lock held where that is wanted.
func stored(ctx SpecContext, namespace, machine string, uid types.UID, versions int, locked bool) {
	GinkgoHelper()
	session, err := state.New(plane.Client, state.Options{}).Acquire(ctx, state.KeyFor(namespace, uid), state.AcquireOptions{
		Lock: state.Lock{Owner: "manager-1", Run: "run-1", Operation: "update"}, Labels: map[string]string{state.LabelMachineUID: string(uid)},
		Annotations: map[string]string{state.AnnotationMachine: machine},
	})
	Expect(err).NotTo(HaveOccurred())
	for serial := 1; serial <= versions; serial++ {
		Expect(session.Put(ctx, fmt.Appendf(nil, `{"version":4,"serial":%d,"lineage":"l","outputs":{},"resources":[{"mode":"managed","type":"t","name":"this","provider":"p","instances":[{"attributes":{"id":"i-%d"}}]}]}`, serial, serial))).To(Succeed())
	}
	if !locked {
		Expect(session.Release(ctx, nil)).To(Succeed())
	}
}

var _ = Describe("Reading states", func() {
	var namespace string
	var machine *machinev1beta1.Machine
	const departed = types.UID("11111111-2222-4333-8444-555555555555")

	BeforeEach(func(ctx SpecContext) {
		namespace = suite.Namespace(ctx, plane)
		machine = builder.In(namespace, builder.Machine(builder.WithPhase("Running")))
		Expect(plane.Create(ctx, machine)).To(Succeed())
		stored(ctx, namespace, machine.Name, machine.UID, 2, true)
		stored(ctx, namespace, "departed", departed, 1, false)
	})

	It("lists those of Machines, and those whose Machine is gone", func(ctx SpecContext) {
		facts, err := clusterOf("", namespace).Read(ctx, inspect.Want{States: true}, time.Now())
		Expect(err).NotTo(HaveOccurred())
		list, err := inspect.States(facts)
		Expect(err).NotTo(HaveOccurred())
		Expect(list.Items).To(HaveExactElements(
			And(HaveField("Machine", "departed"), HaveField("UID", departed), HaveField("Phase", "Gone"), HaveField("Lock", BeNil()), HaveField("Serial", BeEquivalentTo(1)),
				HaveField("Size", BeNumerically(">", 50)), HaveField("Resources", 1)),
			And(HaveField("Machine", machine.Name), HaveField("Phase", "Running"), HaveField("Lock.Operation", "update"), HaveField("Serial", BeEquivalentTo(2))),
		))
	})

	It("returns one by the Machine, its name when it is gone, and its UID", func(ctx SpecContext) {
		cluster := clusterOf("", namespace)
		for name, want := range map[string]string{machine.Name: `"i-2"`, "departed": `"i-1"`, string(departed): `"i-1"`} {
			snapshot, err := cluster.State(ctx, name)
			Expect(err).NotTo(HaveOccurred())
			Expect(string(snapshot.Raw)).To(ContainSubstring(want))
		}
		_, err := cluster.State(ctx, "departd")
		Expect(err).To(MatchError(ContainSubstring("did you mean departed?")))
		Expect(cluster.StateNames(ctx)).To(ConsistOf("departed", machine.Name))
	})

	It("asks for the UID where several Machines of a name are gone", func(ctx SpecContext) {
		stored(ctx, namespace, "departed", "11111111-2222-4333-8444-666666666666", 1, false)
		_, err := clusterOf("", namespace).State(ctx, "departed")
		Expect(err).To(MatchError(ContainSubstring("2 states are of Machines \"departed\" that are gone; name one by its Machine's UID")))
	})

	It("returns earlier versions, and says which there are", func(ctx SpecContext) {
		cluster := clusterOf("", namespace)
		Expect(cluster.Version(ctx, machine.Name, 1)).To(ContainSubstring(`"i-1"`))
		_, err := cluster.Version(ctx, machine.Name, 9)
		Expect(err).To(MatchError(ContainSubstring("has no version 9; it has 2, 1")))
	})

	It("says what helps where there is no state, or a damaged one", func(ctx SpecContext) {
		fresh := builder.In(namespace, builder.Machine())
		Expect(plane.Create(ctx, fresh)).To(Succeed())
		cluster := clusterOf("", namespace)
		_, err := cluster.State(ctx, fresh.Name)
		Expect(err).To(MatchError(ContainSubstring("has no state: no run has begun for it")))

		head := &corev1.Secret{}
		key := state.KeyFor(namespace, machine.UID)
		Expect(plane.Client.Get(ctx, types.NamespacedName(key), head)).To(Succeed())
		head.Data["tfstate"] = []byte("no gzip")
		Expect(plane.Client.Update(ctx, head)).To(Succeed())
		_, err = cluster.State(ctx, machine.Name)
		Expect(err).To(MatchError(ContainSubstring("state pull " + machine.Name + " --serial N")))
		Expect(cluster.Version(ctx, machine.Name, 1)).To(ContainSubstring(`"i-1"`))
	})

	It("needs no right but get for a Machine that is there", func(ctx SpecContext) {
		rule, secrets := mayRead("machine.openshift.io", "machines"), mayRead("", "secrets")
		rule.Verbs, secrets.Verbs = []string{"get"}, []string{"get"}
		cluster := clusterOf(userWho(ctx, namespace, rule, secrets), namespace)
		Expect(cluster.State(ctx, machine.Name)).NotTo(BeNil())
		_, err := cluster.State(ctx, "departed")
		Expect(err).To(MatchError(And(ContainSubstring("cannot list resource \"secrets\""), ContainSubstring("docs/kubectl-machine.md"))))
	})
})
