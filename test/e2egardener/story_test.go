//go:build e2e_gardener

package e2egardener_test

import (
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/machine-iac/machine-iac-operator/hack/landscape"
)

const pool = "pool"

var _ = Describe("A MachineDeployment", Ordered, func() {
	BeforeAll(func(ctx SpecContext) {
		startMCM()
		apply(ctx, landscape.Class("small", 2))
		apply(ctx, landscape.Class("large", 4))
		apply(ctx, landscape.Deployment(pool, "small", 3))
	}, NodeTimeout(time.Minute))

	AfterAll(func(ctx SpecContext) {
		kubectl(ctx, "delete", "machinedeployment", pool, "--ignore-not-found", "--wait=false")
		Eventually(ctx, nothingLeft).Should(Succeed())
		kubectl(ctx, "delete", "machineclass", "--all")
	}, NodeTimeout(10*time.Minute))

	It("gets its Machines, with Nodes in the target cluster", func(ctx SpecContext) {
		Eventually(ctx, running(pool, "small", 3)).Should(Succeed())
		list, err := machines(ctx, pool)
		Expect(err).NotTo(HaveOccurred())
		for _, m := range list {
			id, err := w.land.KubectlTarget(ctx, "", "get", "node", m.Metadata.Labels["node"], "-o", "jsonpath={.spec.providerID}")
			Expect(err).NotTo(HaveOccurred())
			Expect(id).To(Equal(m.Spec.ProviderID))
		}
		Expect(kubectl(ctx, "get", "nodes", "-o", "name")).To(BeEmpty(), "the control cluster has Nodes")
	}, SpecTimeout(patience))

	It("is rolled over by a new class, with surge, and back", func(ctx SpecContext) {
		kubectl(ctx, "patch", "machinedeployment", pool, "--type=merge", "--patch", `{"spec":{"template":{"spec":{"class":{"name":"large"}}}}}`)
		most := 0
		Eventually(ctx, func(ctx SpecContext) error {
			list, err := machines(ctx, pool)
			if err != nil {
				return err
			}
			most = max(most, len(list))
			return running(pool, "large", 3)(ctx)
		}).Should(Succeed())
		Expect(most).To(BeNumerically(">", 3), "no Machine was made before another went")
		kubectl(ctx, "patch", "machinedeployment", pool, "--type=merge", "--patch", `{"spec":{"rollbackTo":{"revision":0}}}`)
		Eventually(ctx, running(pool, "small", 3)).Should(Succeed())
	}, SpecTimeout(2*patience))

	It("is not rolled over while it is paused", func(ctx SpecContext) {
		kubectl(ctx, "patch", "machinedeployment", pool, "--type=merge", "--patch", `{"spec":{"paused":true,"template":{"spec":{"class":{"name":"large"}}}}}`)
		Consistently(ctx, running(pool, "small", 3), 10*time.Second).Should(Succeed())
		kubectl(ctx, "patch", "machinedeployment", pool, "--type=merge", "--patch", `{"spec":{"paused":false,"strategy":{"type":"Recreate","rollingUpdate":null}}}`)
		Eventually(ctx, running(pool, "large", 3)).Should(Succeed())
	}, SpecTimeout(2*patience))

	It("gets an instance only once, though the driver is killed in the middle of creates", func(ctx SpecContext) {
		kubectl(ctx, "patch", "machinedeployment", pool, "--type=merge", "--patch", `{"spec":{"replicas":6}}`)
		Eventually(ctx, func(ctx SpecContext) string {
			return kubectl(ctx, "get", "machines.machine.openshift.io", "-o", `jsonpath={range .items[*]}{.status.providerStatus.run.operation}{end}`)
		}, patience, 20*time.Millisecond).Should(ContainSubstring("Create"))
		Expect(w.driver.Kill()).To(Succeed())
		startMCM()
		Eventually(ctx, running(pool, "large", 6)).Should(Succeed())
		Consistently(ctx, func(ctx SpecContext) (int, error) {
			found, err := nodes(ctx)
			return len(found), err
		}, 5*time.Second).Should(Equal(6))
	}, SpecTimeout(patience))

	It("keeps its Machines from those who delete ours", func(ctx SpecContext) {
		list, err := machines(ctx, pool)
		Expect(err).NotTo(HaveOccurred())
		name := list[0].Metadata.Name
		kubectl(ctx, "delete", "machines.machine.openshift.io", name, "--wait=false")
		Consistently(ctx, func(ctx SpecContext) ([]string, error) { return nodes(ctx) }, 5*time.Second).Should(ContainElement("node/" + name))
		kubectl(ctx, "delete", "machines.machine.sapcloud.io", name, "--wait=false")
		Eventually(ctx, func(ctx SpecContext) ([]string, error) { return nodes(ctx) }).ShouldNot(ContainElement("node/" + name))
		Eventually(ctx, running(pool, "large", 6)).Should(Succeed())
	}, SpecTimeout(patience))

	It("loses the instance of a Machine that was removed by force", func(ctx SpecContext) {
		list, err := machines(ctx, pool)
		Expect(err).NotTo(HaveOccurred())
		name := list[0].Metadata.Name
		Expect(w.driver.Stop()).To(Succeed())
		kubectl(ctx, "delete", "machines.machine.sapcloud.io", name, "--wait=false")
		kubectl(ctx, "patch", "machines.machine.sapcloud.io", name, "--type=merge", "--patch", `{"metadata":{"finalizers":null}}`)
		startMCM()
		Eventually(ctx, func(ctx SpecContext) ([]string, error) { return nodes(ctx) }).ShouldNot(ContainElement("node/" + name))
		Eventually(ctx, running(pool, "large", 6)).Should(Succeed())
	}, SpecTimeout(patience))

	It("is scaled in", func(ctx SpecContext) {
		kubectl(ctx, "patch", "machinedeployment", pool, "--type=merge", "--patch", `{"spec":{"replicas":1}}`)
		Eventually(ctx, running(pool, "large", 1)).Should(Succeed())
	}, SpecTimeout(patience))
})

var _ = Describe("A class that cannot be made", Ordered, func() {
	BeforeAll(func() { startMCM() })

	It("is InvalidArgument, with the path of the field", func(ctx SpecContext) {
		apply(ctx, strings.Replace(landscape.Class("wrong", 2), "  cpu: 2\n", "  cpu: -2\n", 1))
		apply(ctx, landscape.Deployment("wrong", "wrong", 1))
		Eventually(ctx, func(ctx SpecContext) (string, error) {
			list, err := machines(ctx, "wrong")
			if err != nil || len(list) != 1 {
				return fmt.Sprintf("%d Machines", len(list)), err
			}
			return list[0].Status.LastOperation.ErrorCode + " " + list[0].Status.LastOperation.Description, nil
		}).Should(And(ContainSubstring("InvalidArgument"), ContainSubstring("cpu")))
		kubectl(ctx, "delete", "machinedeployment", "wrong", "--wait=false")
		Eventually(ctx, nothingLeft).Should(Succeed())
		kubectl(ctx, "delete", "machineclass", "wrong")
	}, SpecTimeout(2*patience))
})
