//go:build e2e_gardener

package e2egardener_test

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/machine-iac/machine-iac-operator/hack/landscape"
)

const (
	pool = "pool"
	// aWhile is long enough to observe something that must not happen.
	aWhile = 5 * time.Second
)

// All specs below are one story of one MachineDeployment.
var _ = Describe("A MachineDeployment", Ordered, ContinueOnFailure, func() {
	BeforeAll(func(ctx SpecContext) {
		startMCM()
		for class, cpu := range map[string]int{"small": 2, "medium": 4, "big": 6, "large": 8} {
			manifest := landscape.Class(class, cpu)
			if class == "big" {
				manifest = bare(manifest)
			}
			apply(ctx, manifest)
		}
		apply(ctx, landscape.Deployment(pool, "small", 3))
	}, NodeTimeout(time.Minute))

	AfterAll(func(ctx SpecContext) {
		startMCM()
		kubectl(ctx, "delete", "machinedeployment", pool, "--ignore-not-found", "--wait=false")
		Eventually(ctx, nothingLeft).Should(Succeed())
		kubectl(ctx, "delete", "machineclass", "--all")
	}, NodeTimeout(10*time.Minute))

	It("gets its Machines, with Nodes in the target cluster", func(ctx SpecContext) {
		Eventually(ctx, running("small", 3)).Should(Succeed())
		list, err := machines(ctx, pool)
		Expect(err).NotTo(HaveOccurred())
		for _, m := range list {
			id := target(ctx, "", "get", "node", m.Metadata.Labels["node"], "-o", "jsonpath={.spec.providerID}")
			Expect(id).To(Equal(m.Spec.ProviderID))
		}
		Expect(kubectl(ctx, "get", "nodes", "-o", "name")).To(BeEmpty(), "the control cluster has Nodes")
	}, SpecTimeout(patience))

	It("has the nodeTemplate of its class completed, for scaling from zero", func(ctx SpecContext) {
		Eventually(ctx, func(ctx SpecContext) string {
			return kubectl(ctx, "get", "machineclass", "big", "-o", "jsonpath={.nodeTemplate}")
		}).Should(
			MatchJSON(
				`{"capacity":{"cpu":"6","gpu":"0","memory":"16Gi"},"architecture":"amd64","instanceType":"kubemark.6","region":"region-a","zone":"zone-a"}`))
	}, SpecTimeout(patience))

	rollouts()
	removals()
	safety()
	deletedClasses()
})

// bare returns the manifest of a class without its nodeTemplate.
func bare(class string) string {
	head, tail, _ := strings.Cut(class, "nodeTemplate:")
	_, rest, _ := strings.Cut(tail, "secretRef:")
	return head + "secretRef:" + rest
}

func change(ctx context.Context, patch string) {
	GinkgoHelper()
	kubectl(ctx, "patch", "machinedeployment", pool, "--type=merge", "--patch", patch)
}

// toClass returns the patch for another class.
func toClass(name string) string {
	return `{"spec":{"template":{"spec":{"class":{"name":"` + name + `"}}}}}`
}
