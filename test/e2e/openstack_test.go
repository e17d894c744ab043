//go:build e2e

package e2e_test

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"

	"github.com/machine-iac/machine-iac-operator/test/openstack"
)

const (
	openstackExample     = "modules/openstack/examples/machineset.yaml"
	openstackCredentials = "openstack-cloud-credentials"
)

// stack is a MachineSet in the simulated OpenStack.
type stack struct {
	*openstack.Cloud
	fleet
}

func aMachineSetOnOpenStack() {
	var s *stack

	BeforeAll(func(ctx SpecContext) {
		s = w.openStack(ctx)
		w.create(ctx, s.set)
	})

	It("is made by the module's example: each Machine gets a server that is as its providerSpec "+
		"asks for", func(ctx SpecContext) {
		for _, machine := range s.reach(ctx, 2, machinev1beta1.PhaseProvisioned) {
			s.looksAsAskedFor(&machine)
		}
		Expect(s.Count()).To(HaveKeyWithValue("server groups", 1), "the Machines do not share theirs")
	})

	It("has Machines that run once Nodes with their providerIDs have joined", func(ctx SpecContext) {
		for _, machine := range s.reach(ctx, 2, machinev1beta1.PhaseProvisioned) {
			s.join(ctx, &machine)
		}
		for _, machine := range s.reach(ctx, 2, machinev1beta1.PhaseRunning) {
			Expect(machine.Status.NodeRef).To(HaveValue(HaveField("Name", nodeNameOf(&machine))))
			w.expectEvent(ctx, &machine, "Create", "Created the instance with module openstack")
		}
	})

	It("takes its servers, ports and trunks with it, and leaves the server group", func(ctx SpecContext) {
		machines := s.machines(ctx)
		w.kubectl(ctx, "delete", "machineset", s.set.Name)
		s.leaves(ctx, machines, func(machine *machinev1beta1.Machine) error {
			if server := s.Server(machine.Name); server != nil {
				return fmt.Errorf("the server of %s is there still: %v", machine.Name, server)
			}
			return nil
		})
		Expect(s.Count()).To(
			Equal(map[string]int{"servers": 0, "ports": 0, "trunks": 0, "volumes": 0, "server groups": 1}))
	})
}

// openStack starts a cloud, and creates the MachineSet's dependencies.
func (w *world) openStack(ctx context.Context) *stack {
	GinkgoHelper()
	cloud := openstack.Start()
	DeferCleanup(cloud.Close)
	credentials := newSecret(openstackCredentials,
		map[string][]byte{"clouds.yaml": []byte(cloud.CloudsYAML()), "cacert": []byte(cloud.CACert())})
	w.create(ctx, credentials)
	DeferCleanup(func(ctx SpecContext) { Expect(w.client.Delete(ctx, credentials)).To(Succeed()) })
	set := exampleSet(openstackExample)
	*set.Spec.Replicas = 2
	return &stack{Cloud: cloud, fleet: fleet{set}}
}

// looksAsAskedFor compares a server, and the Machine's status, with the providerSpec.
func (s *stack) looksAsAskedFor(machine *machinev1beta1.Machine) {
	GinkgoHelper()
	server := s.Server(machine.Name)
	Expect(server).NotTo(BeNil())
	Expect([]string{server.Status, server.Flavor, server.Image, server.UserData}).To(
		Equal([]string{"ACTIVE", "m1.xlarge", openstack.Cluster + "-rhcos", w.userData}))
	Expect(server.Group).To(Equal(openstack.Cluster + "-worker"))
	Expect(server.Metadata).To(HaveKeyWithValue("machine-iac.io_machine-uid", string(machine.UID)))
	Expect(server.Ports).To(HaveExactElements(And(
		HaveField("Name", machine.Name+"-0"), HaveField("Trunk", true),
		HaveField("SecurityGroups", []string{openstack.Cluster + "-worker"}),
		HaveField("Others", []string{openstack.APIAddress, openstack.IngressAddress}),
	)))
	Expect(machine.Spec.ProviderID).To(HaveValue(Equal("openstack:///" + server.ID)))
	Expect(internalIPs(machine)).To(Equal(server.Ports[0].Addresses))
	Expect(machine.Status.Addresses).To(
		ContainElement(corev1.NodeAddress{Type: corev1.NodeInternalDNS, Address: machine.Name}))
}
