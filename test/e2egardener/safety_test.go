//go:build e2e_gardener

package e2egardener_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/machine-iac/machine-iac-operator/hack/devcluster/cluster"
	"github.com/machine-iac/machine-iac-operator/hack/landscape"
)

// deadlocked is a condition for which MCM replaces a Machine, and which only the tests set.
const deadlocked = `{"status":{"conditions":[{"type":"KernelDeadlock","status":"True","reason":"Reported","message":"a test says so"}]}}`

func safety() {
	It("has a Machine replaced that is unhealthy for too long, and no other", func(ctx SpecContext) {
		list, err := machines(ctx, pool)
		Expect(err).NotTo(HaveOccurred())
		name := list[0].Metadata.Name
		target(ctx, "", "patch", "node", name, "--subresource=status", "--type=strategic", "--patch", deadlocked)
		Eventually(ctx, nodes).ShouldNot(ContainElement("node/" + name))
		Eventually(ctx, running("large", 6)).Should(Succeed())
		for _, m := range list[1:] {
			Expect(nodes(ctx)).To(ContainElement("node/"+m.Metadata.Name), "a healthy Machine was replaced")
		}
	}, SpecTimeout(2*patience))

	It("is left alone while the target's API server is away, but for deletions", func(ctx SpecContext) {
		before, err := nodes(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(w.land.Target.Stop(ctx, cluster.APIServer)).To(Succeed())
		Eventually(ctx, frozen).Should(BeEquivalentTo(1))
		change(ctx, `{"spec":{"replicas":7}}`)
		Eventually(ctx, func(ctx SpecContext) (int, error) {
			list, err := machines(ctx, pool)
			return len(list), err
		}).Should(Equal(7))
		Consistently(ctx, func(ctx SpecContext) []string {
			return strings.Fields(kubectl(ctx, "get", ours, "-o", "name"))
		}, aWhile).Should(HaveLen(6))
		Expect(w.land.Target.Start(ctx, cluster.APIServer)).To(Succeed())
		Eventually(ctx, frozen).Should(BeEquivalentTo(0))
		Eventually(ctx, running("large", 7), 2*patience).Should(Succeed())
		Expect(nodes(ctx)).To(ContainElements(before), "a Machine was replaced")
	}, SpecTimeout(3*patience))

	// Unremoved Machines are too many for a MachineDeployment of one.
	It("is frozen while there are far too many Machines, and makes none meanwhile", func(ctx SpecContext) {
		Expect(w.driver.Stop(time.Minute)).To(Succeed())
		change(ctx, `{"spec":{"replicas":1}}`)
		Eventually(ctx, freezes).Should(Equal("True"))
		change(ctx, `{"spec":{"replicas":2}}`)
		Consistently(ctx, func(ctx SpecContext) (int, error) {
			list, err := machines(ctx, pool)
			return len(list), err
		}, aWhile).Should(Equal(7))
		startMCM()
		Eventually(ctx, running("large", 2)).Should(Succeed())
		Eventually(ctx, freezes).Should(BeEmpty())
		events := kubectl(ctx, "get", "events", "-o", `jsonpath={range .items[*]}{.reason} {end}`)
		Expect(events).To(And(ContainSubstring("FrozeMachineSet"), ContainSubstring("UnfrozeMachineSet")))
	}, SpecTimeout(2*patience))
}

// freezes returns the MachineDeployment's freeze label.
func freezes(ctx SpecContext) string {
	return kubectl(ctx, "get", "machinedeployment", pool, "-o", "jsonpath={.metadata.labels.freeze}")
}

// frozen returns MCM's freeze metric.
func frozen(ctx SpecContext) (float64, error) {
	return w.driver.Metric(ctx, "mcm_machine_controller_frozen")
}

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

// target runs kubectl in the target cluster.
func target(ctx context.Context, input string, arguments ...string) string {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	out, err := w.land.KubectlTarget(ctx, input, arguments...)
	Expect(err).NotTo(HaveOccurred())
	return out
}
