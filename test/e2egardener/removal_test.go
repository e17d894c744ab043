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

// guest is a Pod on a Node, and a budget that forbids its eviction.
const guest = `
apiVersion: v1
kind: Pod
metadata: {name: guest, namespace: default, labels: {app: guest}}
spec:
  nodeName: NODE
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: registry.example/none}]
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: guest, namespace: default}
spec:
  minAvailable: 1
  selector: {matchLabels: {app: guest}}
`

// stray is a cluster's instance without a Machine or state; INSTALLATION is the installation that created it.
const stray = `
apiVersion: v1
kind: Node
metadata:
  name: stray
  labels: {machine-iac.io/cluster-id: ` + landscape.Namespace +
	`, machine-iac.io/machine-uid: 6d0a0e5c-0000-4000-8000-000000000000, machine-iac.io/installation: INSTALLATION}
  annotations: {kwok.x-k8s.io/node: fake}
spec: {providerID: "kubemark://6d0a0e5c-0000-4000-8000-000000000000"}
status: {capacity: {cpu: "4", memory: 16Gi, pods: "110"}, allocatable: {cpu: "4", memory: 16Gi, pods: "110"}}
`

func removals() {
	It("gets an instance only once, though the driver is killed in the middle of creates", func(ctx SpecContext) {
		change(ctx, `{"spec":{"replicas":6}}`)
		Eventually(ctx, func(ctx SpecContext) string {
			return kubectl(ctx, "get", ours,
				"-o", `jsonpath={range .items[*]}{.status.providerStatus.run.operation}{end}`)
		}, patience, 20*time.Millisecond).Should(ContainSubstring("Create"))
		Expect(w.driver.Kill()).To(Succeed())
		startMCM()
		Eventually(ctx, running("large", 6)).Should(Succeed())
		Consistently(ctx, func(ctx SpecContext) (int, error) {
			found, err := nodes(ctx)
			return len(found), err
		}, aWhile).Should(Equal(6))
		for _, kind := range []string{ours, "secrets -l tfstate=true"} {
			arguments := append([]string{"get", "-o", "name"}, strings.Fields(kind)...)
			Expect(strings.Fields(kubectl(ctx, arguments...))).To(HaveLen(6), kind)
		}
	}, SpecTimeout(2*patience))

	It("keeps its Machines from those who delete ours", func(ctx SpecContext) {
		name := anyMachine(ctx)
		kubectl(ctx, "delete", ours, name, "--wait=false")
		Consistently(ctx, nodes, aWhile).Should(ContainElement("node/" + name))
		kubectl(ctx, "delete", theirs, name, "--wait=false")
		Eventually(ctx, nodes).ShouldNot(ContainElement("node/" + name))
		Eventually(ctx, running("large", 6)).Should(Succeed())
	}, SpecTimeout(patience))

	It("loses the instance of a Machine that was removed by force", func(ctx SpecContext) {
		name := anyMachine(ctx)
		Expect(w.driver.Stop(time.Minute)).To(Succeed())
		kubectl(ctx, "delete", theirs, name, "--wait=false")
		kubectl(ctx, "patch", theirs, name, "--type=merge", "--patch", `{"metadata":{"finalizers":null}}`)
		startMCM()
		Eventually(ctx, nodes).ShouldNot(ContainElement("node/" + name))
		Eventually(ctx, running("large", 6)).Should(Succeed())
	}, SpecTimeout(patience))

	It("loses an instance that belongs to no Machine and no state, once the manager's inventory has found it "+
		"twice", func(ctx SpecContext) {
		own := kubectl(ctx, "get", "secret", "machine-iac-installation", "--template={{.data.uid | base64decode}}")
		target(ctx, strings.ReplaceAll(stray, "INSTALLATION", own), "create", "-f", "-")
		Eventually(ctx, nodes, 2*patience).ShouldNot(ContainElement("node/stray"))
		all := func(ctx SpecContext) []string { return strings.Fields(kubectl(ctx, "get", ours, "-o", "name")) }
		Eventually(ctx, all).Should(HaveLen(6))
		Consistently(ctx, all, 3*aWhile).Should(HaveLen(6), "it is removed once more by an inventory from before")
		Expect(running("large", 6)(ctx)).To(Succeed())
	}, SpecTimeout(3*patience))

	It("has a Node drained before its instance goes, as a PodDisruptionBudget allows", func(ctx SpecContext) {
		name := anyMachine(ctx)
		target(ctx, strings.ReplaceAll(guest, "NODE", name), "apply", "-f", "-")
		Eventually(ctx, func(ctx SpecContext) string {
			return target(ctx, "", "get", "pdb", "guest", "-o", "jsonpath={.status.currentHealthy}")
		}).Should(Equal("1"))
		kubectl(ctx, "delete", theirs, name, "--wait=false")
		Eventually(ctx, func(ctx SpecContext) string {
			return target(ctx, "", "get", "node", name, "-o", "jsonpath={.spec.unschedulable}")
		}).Should(Equal("true"))
		Consistently(ctx, func(ctx SpecContext) string {
			return kubectl(ctx, "get", ours, name, "-o", "jsonpath={.metadata.name} {.metadata.deletionTimestamp}") +
				target(ctx, "", "get", "pod", "guest", "-o", "jsonpath={.metadata.name} {.metadata.deletionTimestamp}")
		}, aWhile).Should(Equal(name+" guest "), "the instance or the Pod was removed against the budget")
		target(ctx, "", "delete", "pdb", "guest")
		Eventually(ctx, nodes).ShouldNot(ContainElement("node/" + name))
		Expect(target(ctx, "", "get", "pod", "guest", "--ignore-not-found", "-o", "name")).To(BeEmpty())
		Eventually(ctx, running("large", 6)).Should(Succeed())
	}, SpecTimeout(2*patience))
}

func deletedClasses() {
	It("keeps its Machines while their class is being deleted, which goes with the last "+
		"of them", func(ctx SpecContext) {
		kubectl(ctx, "delete", "machineclass", "large", "--wait=false")
		Consistently(ctx, running("large", 2), aWhile).Should(Succeed())
		change(ctx, toClass("small"))
		rolls(ctx, "small", 2)
		Eventually(ctx, func(ctx SpecContext) string {
			return kubectl(ctx, "get", "machineclass", "large", "--ignore-not-found", "-o", "name")
		}).Should(BeEmpty())
	}, SpecTimeout(2*patience))

	It("keeps the instances of a class that was removed by force, until there is one of that name "+
		"again", func(ctx SpecContext) {
		kubectl(ctx, "delete", "machineclass", "small", "--wait=false")
		kubectl(ctx, "patch", "machineclass", "small", "--type=merge", "--patch", `{"metadata":{"finalizers":null}}`)
		name := anyMachine(ctx)
		kubectl(ctx, "delete", theirs, name, "--wait=false")
		Consistently(ctx, nodes, aWhile).Should(ContainElement("node/" + name))
		apply(ctx, landscape.Class("small", 2))
		Eventually(ctx, nodes).ShouldNot(ContainElement("node/" + name))
		Eventually(ctx, running("small", 2)).Should(Succeed())
	}, SpecTimeout(2*patience))
}

// anyMachine returns the name of a Machine.
func anyMachine(ctx context.Context) string {
	GinkgoHelper()
	list, err := machines(ctx, pool)
	Expect(err).NotTo(HaveOccurred())
	Expect(list).NotTo(BeEmpty())
	return list[0].Metadata.Name
}
