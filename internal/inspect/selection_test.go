package inspect_test

import (
	"context"

	"net/http"
	"net/http/httptest"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/internal/inspect"
	"github.com/machine-iac/machine-iac-operator/internal/state"
	"github.com/machine-iac/machine-iac-operator/test/builder"
	"github.com/machine-iac/machine-iac-operator/test/suite"
)

var _ = Describe("Selecting Machines", func() {
	var namespace string

	BeforeEach(func(ctx SpecContext) {
		namespace = suite.Namespace(ctx, plane)
		for _, name := range []string{"workers", "others"} {
			set := builder.In(namespace, builder.MachineSet(func(s *machinev1beta1.MachineSet) { s.Name = name }))
			Expect(plane.Create(ctx, set)).To(Succeed())
			for _, suffix := range []string{"-a", "-b"} {
				Expect(plane.Create(ctx, builder.Machine(builder.WithOwner(set), builder.WithLabels(map[string]string{"team": name}),
					func(m *machinev1beta1.Machine) { m.Name = name + suffix }))).To(Succeed())
			}
		}
		Expect(plane.Create(ctx, builder.In(namespace, builder.Machine(func(m *machinev1beta1.Machine) { m.Name = "workers" })))).To(Succeed())
	})

	namesOf := func(facts *inspect.Facts) (sets, machines []string) {
		for i := range facts.Sets {
			sets = append(sets, facts.Sets[i].Name)
		}
		for i := range facts.Machines {
			machines = append(machines, facts.Machines[i].Name)
		}
		return sets, machines
	}

	DescribeTable("finds what is named, and the Machines of MachineSets",
		func(ctx SpecContext, selection inspect.Selection, withSets bool, wantSets, wantMachines []string) {
			facts, err := clusterOf("", namespace).Read(ctx, inspect.Want{Selection: selection, Sets: withSets}, time.Now())
			Expect(err).NotTo(HaveOccurred())
			sets, machines := namesOf(facts)
			Expect(sets).To(Equal(wantSets))
			Expect(machines).To(Equal(wantMachines))
		},
		Entry("a Machine", inspect.Selection{Names: []string{"others-b"}}, false, nil, []string{"others-b"}),
		Entry("a Machine, twice", inspect.Selection{Names: []string{"others-b", "machine/others-b"}}, false, nil, []string{"others-b"}),
		Entry("kinds as kubectl has them", inspect.Selection{Names: []string{"Machine/others-b", "machines.machine.openshift.io/others-a"}}, false, nil, []string{"others-a", "others-b"}),
		Entry("a name of a MachineSet and of a Machine, where both are wanted", inspect.Selection{Names: []string{"workers"}}, true,
			[]string{"workers"}, []string{"workers", "workers-a", "workers-b"}),
		Entry("the same name, where Machines are", inspect.Selection{Names: []string{"workers"}}, false, nil, []string{"workers"}),
		Entry("a MachineSet", inspect.Selection{Names: []string{"machineset/others"}}, false, nil, []string{"others-a", "others-b"}),
		Entry("a MachineSet and one of its Machines", inspect.Selection{Names: []string{"machineset/others", "machine/others-a"}}, true,
			[]string{"others"}, []string{"others-a", "others-b"}),
		Entry("labels", inspect.Selection{Labels: "team in (others)"}, true, nil, []string{"others-a", "others-b"}),
		Entry("labels that nothing has", inspect.Selection{Labels: "team=none"}, false, nil, nil),
	)

	It("names what is there for a name that is not", func(ctx SpecContext) {
		_, err := clusterOf("", namespace).Read(ctx, inspect.Want{Selection: inspect.Selection{Names: []string{"others-a", "othres-b"}}, Sets: true}, time.Now())
		Expect(err).To(MatchError(HavePrefix(`there is no MachineDeployment or MachineSet or Machine "othres-b" in namespace ` + namespace + "; did you mean others-b")))
		_, err = clusterOf("", namespace).Get(ctx, []string{"otters"})
		Expect(err).To(MatchError(`there is no MachineSet "otters" in namespace ` + namespace + "; did you mean others?"))
	})

	It("needs no right to list for a Machine that is named", func(ctx SpecContext) {
		rule := mayRead("machine.openshift.io", "machines")
		rule.Verbs = []string{"get"}
		cluster := clusterOf(userWho(ctx, namespace, rule), namespace)
		read := func(name string) error {
			_, err := cluster.Read(ctx, inspect.Want{Selection: inspect.Selection{Names: []string{name}}}, time.Now())
			return err
		}
		Expect(read("workers-a")).To(Succeed())
		Expect(read("workers-c")).To(MatchError(`there is no Machine "workers-c" in namespace ` + namespace))
		Expect(read("machineset/workers")).To(MatchError(And(ContainSubstring(`cannot get resource "machinesets"`), ContainSubstring("docs/kubectl-machine.md lists the rights"))))
	})

	It("returns objects with their kind, as manifests have it", func(ctx SpecContext) {
		objects, err := clusterOf("", namespace).Get(ctx, []string{"workers", "machine/workers-a"})
		Expect(err).NotTo(HaveOccurred())
		kindOf := func(object client.Object) string { return object.GetObjectKind().GroupVersionKind().Kind }
		Expect(objects).To(HaveExactElements(WithTransform(kindOf, Equal("MachineSet")), WithTransform(kindOf, Equal("Machine"))))
	})
})

var _ = Describe("A request that takes long", func() {
	var release chan struct{}
	var cluster *inspect.Cluster

	BeforeEach(func() {
		release = make(chan struct{})
		server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
		DeferCleanup(server.Close)
		DeferCleanup(func() { close(release) })
		var err error
		cluster, err = inspect.New(&rest.Config{Host: server.URL, Timeout: 5 * time.Second}, "ns", state.Options{})
		Expect(err).NotTo(HaveOccurred())
	})

	It("ends with its context", func(ctx SpecContext) {
		ended, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		began := time.Now()
		_, err := cluster.Read(ended, inspect.Want{}, began)
		Expect(err).To(HaveOccurred())
		Expect(time.Since(began)).To(BeNumerically("<", 4*time.Second))
	})
})
