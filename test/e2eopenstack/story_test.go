//go:build e2e_openstack

package e2eopenstack_test

import (
	"net/http"
	"net/url"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	. "github.com/onsi/gomega/gstruct"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/hack/lab"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
)

var _ = Describe("A MachineSet", Ordered, func() {
	var set *machinev1beta1.MachineSet
	var machine *machinev1beta1.Machine

	BeforeAll(func(ctx SpecContext) {
		set = exampleSet(1)
		Expect(w.client.Create(ctx, set)).To(Succeed())
	})

	It("makes a server with its port, trunk and server group", func(ctx SpecContext) {
		machine = &w.reach(ctx, set, 1, machinev1beta1.PhaseProvisioned)[0]
		made := w.cloud.server(ctx, machine.Name)
		Expect(made).NotTo(BeNil())
		Expect([]string{made.Status, made.Flavor.Name, made.Zone}).To(Equal([]string{"ACTIVE", "m1.xlarge", "nova"}))
		Expect(made.Image).To(HaveKeyWithValue("id", w.installed.image))
		Expect(made.Metadata).To(MatchAllKeys(Keys{
			"Name": Equal(clusterID + "-worker"), "openshiftClusterID": Equal(clusterID),
			"machine-iac.io_machine-uid":  Equal(string(machine.UID)),
			"machine-iac.io_installation": Not(BeEmpty()),
		}))
		own := []string{tag, "cluster-api-provider-openstack", lab.Namespace + "-" + clusterID}
		Expect(made.Tags).To(ConsistOf(own))
		Expect(made.Groups).To(HaveLen(1))
		Expect(w.cloud.names(ctx, compute, "/os-server-groups", "server_groups")).To(
			Equal([]string{clusterID + "-worker"}))

		ports := w.cloud.portsOf(ctx, made)
		Expect(ports).To(HaveLen(1))
		Expect(ports[0].Name).To(Equal(machine.Name + "-0"))
		Expect(ports[0].NetworkID).To(Equal(w.installed.network))
		Expect(ports[0].SecurityGroups).To(Equal([]string{w.installed.securityGroup}))
		Expect(ports[0].Trunk).NotTo(BeEmpty())
		Expect(ports[0].Tags).To(ConsistOf(append(own, "machine-uid="+string(machine.UID))))
		Expect(ports[0].Pairs).To(ConsistOf(HaveField("Address", apiAddress), HaveField("Address", ingressAddress)))
		Expect(w.cloud.trunks(ctx)).To(Equal([]string{machine.Name + "-0"}))
	})

	It("publishes it on the Machine", func(ctx SpecContext) {
		made := w.cloud.server(ctx, machine.Name)
		Expect(machine.Spec.ProviderID).To(HaveValue(Equal("openstack:///" + made.ID)))
		Expect(machine.Annotations).To(HaveKeyWithValue("machine.openshift.io/instance-state", "ACTIVE"))
		Expect(machine.Labels).To(And(
			HaveKeyWithValue("machine.openshift.io/region", "RegionOne"),
			HaveKeyWithValue("machine.openshift.io/zone", "nova"),
			HaveKeyWithValue("machine.openshift.io/instance-type", "m1.xlarge"),
		))
		address := w.cloud.portsOf(ctx, made)[0].addresses()
		Expect(address).To(HaveLen(1))
		Expect(machine.Status.Addresses).To(ConsistOf(
			corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: address[0]},
			corev1.NodeAddress{Type: corev1.NodeInternalDNS, Address: machine.Name},
			corev1.NodeAddress{Type: corev1.NodeHostName, Address: machine.Name},
		))
	})

	It("has a Machine that runs when its Node joins", func(ctx SpecContext) {
		w.joins(ctx, machine)
		machine = &w.reach(ctx, set, 1, machinev1beta1.PhaseRunning)[0]
	})

	It("finds no drift in what it has made, nor in a server that was shut off", func(ctx SpecContext) {
		Expect(w.checked(ctx, machine.Name)).To(HaveField("Status", metav1.ConditionFalse))
		made := w.cloud.server(ctx, machine.Name)
		w.cloud.do(ctx, http.MethodPost, compute, "/servers/"+made.ID+"/action", map[string]any{"os-stop": nil}, nil)
		Eventually(ctx, func() string { return w.cloud.server(ctx, machine.Name).Status }).Should(Equal("SHUTOFF"))
		Expect(w.checked(ctx, machine.Name)).To(HaveField("Status", metav1.ConditionFalse))
		Eventually(ctx, func(g Gomega) {
			g.Expect(w.machine(ctx, g, machine.Name).Annotations).To(
				HaveKeyWithValue("machine.openshift.io/instance-state", "SHUTOFF"))
		}).Should(Succeed())
		w.cloud.do(ctx, http.MethodPost, compute, "/servers/"+made.ID+"/action", map[string]any{"os-start": nil}, nil)
		Eventually(ctx, func() string { return w.cloud.server(ctx, machine.Name).Status }).Should(Equal("ACTIVE"))
	})

	It("takes an edit in place, and refuses one that needs another server", func(ctx SpecContext) {
		before := w.cloud.server(ctx, machine.Name)
		Expect(w.client.Create(ctx, newSecret("openstack-rotated", map[string]string{"clouds.yaml": w.cloud.file}))).To(
			Succeed())
		w.patch(ctx, machine.Name, map[string]any{"cloudsSecret": map[string]any{"name": "openstack-rotated"}})
		inPlace := func(status corev1.ConditionStatus, reason, message string) {
			GinkgoHelper()
			Eventually(ctx, func(g Gomega) {
				found := w.machine(ctx, g, machine.Name)
				g.Expect(condition(found, upToDate)).To(And(
					HaveField("Status", status), HaveField("Reason", reason),
					HaveField("Message", ContainSubstring(message)),
				), explain(found))
			}).Should(Succeed())
		}
		inPlace(corev1.ConditionTrue, "", "")
		w.patch(ctx, machine.Name, map[string]any{"flavor": "m1.small"})
		inPlace(corev1.ConditionFalse, string(machinev1beta1.UnsupportedChangeMachineError),
			"A server that exists stays as it is")
		w.patch(ctx, machine.Name, map[string]any{
			"flavor": "m1.xlarge", "cloudsSecret": map[string]any{"name": credentials},
		})
		inPlace(corev1.ConditionTrue, "", "")
		Expect(w.cloud.server(ctx, machine.Name)).To(Equal(before))
	})

	It("grows, with all servers in one server group", func(ctx SpecContext) {
		_, err := w.lab.Kubectl(ctx, "scale", "machineset", set.Name, "--replicas=2")
		Expect(err).NotTo(HaveOccurred())
		var groups []string
		Eventually(ctx, func(g Gomega) {
			machines := w.machinesOf(ctx, g, set)
			g.Expect(machines).To(HaveLen(2))
			groups = nil
			for i := range machines {
				g.Expect(machines[i].Spec.ProviderID).NotTo(BeNil(), explain(&machines[i]))
				groups = append(groups, w.cloud.server(ctx, machines[i].Name).Groups...)
			}
		}).Should(Succeed())
		Expect(groups).To(HaveLen(2))
		Expect(groups[0]).To(Equal(groups[1]))
	})

	It("has a Machine fail whose server was deleted by others", func(ctx SpecContext) {
		w.cloud.do(ctx, http.MethodDelete, compute, "/servers/"+w.cloud.server(ctx, machine.Name).ID, nil, nil)
		Eventually(ctx, func() *server { return w.cloud.server(ctx, machine.Name) }).Should(BeNil())
		Expect(w.checked(ctx, machine.Name)).To(
			And(HaveField("Status", metav1.ConditionTrue), HaveField("Message", ContainSubstring(instance))))
		Eventually(ctx, func(g Gomega) {
			g.Expect(w.machine(ctx, g, machine.Name).Status.Phase).To(HaveValue(Equal(machinev1beta1.PhaseFailed)))
		}).Should(Succeed())
		Expect(w.cloud.server(ctx, machine.Name)).To(BeNil(), "it was made again")
	})

	It("takes servers, ports and trunks with it when it shrinks to zero, and leaves the server "+
		"group", func(ctx SpecContext) {
		_, err := w.lab.Kubectl(ctx, "scale", "machineset", set.Name, "--replicas=0")
		Expect(err).NotTo(HaveOccurred())
		Eventually(ctx, func(g Gomega) { g.Expect(w.machinesOf(ctx, g, set)).To(BeEmpty()) }).Should(Succeed())
		Expect(w.cloud.servers(ctx)).To(BeEmpty())
		Expect(w.cloud.trunks(ctx)).To(BeEmpty())
		Expect(w.cloud.ports(ctx, url.Values{"tags": {tag}})).To(BeEmpty())
		Expect(w.cloud.names(ctx, compute, "/os-server-groups", "server_groups")).To(
			Equal([]string{clusterID + "-worker"}))
	})
})

var _ = Describe("A Machine", func() {
	It("of a dual-stack network with a floating address has one port, and drifts when others "+
		"delete that", func(ctx SpecContext) {
		const name = "dual"
		machine := w.brings(ctx, alone(name, map[string]any{
			"networks": []any{map[string]any{
				"filter": map[string]any{"name": clusterID + "-openshift"}, "subnets": []any{
					map[string]any{"filter": map[string]any{"name": clusterID + "-nodes-v6"}},
					map[string]any{"uuid": w.installed.subnet},
				}}},
			"floatingIP": w.installed.floating, "trunk": false, // a trunk's port cannot be deleted
		}))
		ports := w.cloud.portsOf(ctx, w.cloud.server(ctx, name))
		Expect(ports).To(HaveLen(1))
		Expect(ports[0].FixedIPs).To(ConsistOf(HaveField("SubnetID", w.installed.subnet),
			HaveField("SubnetID", w.installed.subnet6)))
		Expect(internalIPs(machine)).To(
			And(ConsistOf(ports[0].addresses()), HaveExactElements(HavePrefix("10.0."), HavePrefix("fd2e:6f44:5dd8:"))))
		Expect(machine.Status.Addresses).To(
			ContainElement(corev1.NodeAddress{Type: corev1.NodeExternalIP, Address: w.installed.floating}))
		Expect(w.checked(ctx, name)).To(HaveField("Status", metav1.ConditionFalse))

		w.cloud.do(ctx, http.MethodDelete, network, "/v2.0/ports/"+ports[0].ID, nil, nil)
		Expect(w.checked(ctx, name)).To(And(
			HaveField("Status", metav1.ConditionTrue),
			HaveField("Message", ContainSubstring("openstack_networking_port_v2.interface")),
		))
		w.removed(ctx, name)
		Expect(w.cloud.ports(ctx, url.Values{"name": {name + "-0"}})).To(BeEmpty())
	})

	It("boots from a volume and has another, which go with it", func(ctx SpecContext) {
		const name = "volumes"
		w.brings(ctx, alone(name, map[string]any{
			"rootVolume": map[string]any{"diskSize": 10},
			"additionalBlockDevices": []any{
				map[string]any{"name": "etcd", "sizeGiB": 1, "storage": map[string]any{"type": "Volume"}},
				map[string]any{"name": "scratch", "sizeGiB": 5, "storage": map[string]any{"type": "Local"}},
			},
		}))
		made := w.cloud.server(ctx, name)
		Expect(made.Image).To(BeEmpty())
		Expect(made.Attached).To(HaveLen(2))
		Expect(w.cloud.volumes(ctx)).To(ConsistOf(name+"-root", name+"-etcd"))
		Expect(w.checked(ctx, name)).To(HaveField("Status", metav1.ConditionFalse))
		w.removed(ctx, name)
		Expect(w.cloud.volumes(ctx)).To(BeEmpty())
	})

	It("whose manager is killed while its server is made has that very server", func(ctx SpecContext) {
		const name = "crashed"
		Expect(w.client.Create(ctx, alone(name, map[string]any{"rootVolume": map[string]any{"diskSize": 10}}))).To(
			Succeed())
		var made *server
		Eventually(ctx, func() *server { made = w.cloud.server(ctx, name); return made }).WithPolling(
			50 * time.Millisecond).ShouldNot(BeNil())
		Expect(w.manager.Kill()).To(Succeed())
		found := &machinev1beta1.Machine{}
		Expect(w.client.Get(ctx, client.ObjectKey{Namespace: lab.Namespace, Name: name}, found)).To(Succeed())
		Expect(found.Spec.ProviderID).To(BeNil(), "the kill came too late")
		var err error
		w.manager, err = w.manager.Restart(ctx)
		Expect(err).NotTo(HaveOccurred())

		machine := w.provisioned(ctx, name)
		Expect(machine.Spec.ProviderID).To(HaveValue(Equal("openstack:///" + made.ID)))
		Expect(w.cloud.ports(ctx, url.Values{"name": {name + "-0"}})).To(HaveLen(1))
		Expect(w.cloud.volumes(ctx)).To(Equal([]string{name + "-root"}))
		Expect(w.checked(ctx, name)).To(HaveField("Status", metav1.ConditionFalse))
		w.removed(ctx, name)
		Expect(w.cloud.volumes(ctx)).To(BeEmpty())
	})

	It("adopts a server that others have made, changes nothing of it, and deletes it in the end",
		func(ctx SpecContext) {
			const name = "elsewhere"
			providerID := "openstack:///" + w.serverElsewhere(ctx, name)
			before, portsBefore := w.cloud.server(ctx, name), w.cloud.ports(ctx, url.Values{"name": {name + "-0"}})
			machine := alone(name, nil)
			machine.Spec.ProviderID = &providerID
			machine.Annotations = map[string]string{lifecycle.AdoptionAnnotation: string(lifecycle.AdoptionAdopt)}
			w.brings(ctx, machine)
			Eventually(ctx, func(g Gomega) {
				g.Expect(condition(w.machine(ctx, g, name), upToDate).Status).To(Equal(corev1.ConditionTrue))
			}).Should(Succeed())
			Expect(w.checked(ctx, name)).To(HaveField("Status", metav1.ConditionFalse))
			Expect(w.cloud.server(ctx, name)).To(Equal(before))
			Expect(w.cloud.ports(ctx, url.Values{"name": {name + "-0"}})).To(Equal(portsBefore))
			w.removed(ctx, name)
			Expect(w.cloud.ports(ctx, url.Values{"name": {name + "-0"}})).To(BeEmpty())
		})

	DescribeTable("fails for good that asks for what the cloud does not "+
		"have:", func(ctx SpecContext, name string, fields map[string]any, message string) {
		Expect(w.client.Create(ctx, alone(name, fields))).To(Succeed())
		Eventually(ctx, func(g Gomega) {
			found := w.machine(ctx, g, name)
			g.Expect(found.Status.Phase).To(HaveValue(Equal(machinev1beta1.PhaseFailed)), explain(found))
			g.Expect(found.Status.ErrorMessage).To(HaveValue(ContainSubstring(message)))
		}).Should(Succeed())
		w.removed(ctx, name)
		Expect(w.cloud.ports(ctx, url.Values{"name": {name + "-0"}})).To(BeEmpty())
	},
		Entry("a flavor", "no-flavor", map[string]any{"flavor": "m1.nowhere"}, "m1.nowhere"),
		Entry("an image", "no-image", map[string]any{"image": "nowhere"}, "nowhere"),
		Entry("a zone", "no-zone", map[string]any{"availabilityZone": "nowhere"},
			"The requested availability zone is not available"),
	)
})
