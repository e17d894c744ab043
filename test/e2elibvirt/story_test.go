//go:build e2e_libvirt

package e2elibvirt_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/hack/lab"
)

const (
	example  = "modules/libvirt/examples/machineset.yaml"
	setLabel = "machine.openshift.io/cluster-api-machineset"
	// marker is in the user data, and must not appear in any log.
	marker   = "b0b1e5-of-the-user-data"
	userData = `{"ignition":{"version":"3.2.0"},"storage":{"files":[{"path":"/etc/` + marker + `"}]}}`
)

var _ = Describe("The module libvirt", Ordered, func() {
	var (
		set     *machinev1beta1.MachineSet
		machine *machinev1beta1.Machine
	)

	BeforeAll(func(ctx SpecContext) {
		Expect(w.client.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: lab.Namespace, Name: "worker-user-data"},
			StringData: map[string]string{"userData": userData},
		})).To(Succeed())
		set = machineSet()
		Expect(w.client.Create(ctx, set)).To(Succeed())
	})

	It("makes a domain of QEMU, with a volume and user data", func(ctx SpecContext) {
		Eventually(ctx, func(g Gomega) {
			machine = onlyMachine(ctx, g, set)
			g.Expect(machine.Status.Phase).To(HaveValue(Equal(machinev1beta1.PhaseProvisioned)))
		}).Should(Succeed())

		Expect(w.host.domains(ctx)).To(ConsistOf(machine.Name))
		Expect(w.host.state(ctx, machine.Name)).To(Equal("running"))
		made := w.host.domain(ctx, machine.Name)
		Expect(made.Type).To(Equal(w.host.DomainType))
		Expect(made.Description).To(ContainSubstring(string(machine.UID)))
		Expect(made.Memory.Unit).To(Equal("KiB"))
		Expect([]int{made.Memory.Value, made.Processors}).To(Equal([]int{64 << 10, 1}))
		Expect(made.Interfaces).To(HaveLen(1))
		Expect(made.Interfaces[0].Source.Network).To(Equal(hostName))

		volume := machine.Name + "-" + string(machine.UID)
		Expect(w.host.volumes()).To(Equal([]string{volume, volume + ".ign"}))
		Expect(made.Disks).To(HaveLen(1))
		Expect(made.Disks[0].Source.Pool + "/" + made.Disks[0].Source.Volume).To(Equal(hostName + "/" + volume))
		Expect(w.host.virsh(ctx, "vol-dumpxml", volume, "--pool", hostName)).To(SatisfyAll(
			ContainSubstring("<capacity unit='bytes'>%d</capacity>", 128<<20),
			ContainSubstring("<path>%s</path>", filepath.Join(w.host.Pool, baseName)),
		))
		ignition := filepath.Join(w.host.Pool, volume+".ign")
		Expect(made.Arguments).To(ContainElement(HaveField("Value", "name=opt/com.coreos/config,file="+ignition)))
		Expect(os.ReadFile(ignition)).To(And(ContainSubstring(marker), ContainSubstring(`"data:,%s"`, machine.Name)))
	})

	It("publishes it on the Machine", func(ctx SpecContext) {
		uuid := w.host.domain(ctx, machine.Name).UUID
		Expect(machine.Spec.ProviderID).To(HaveValue(Equal("libvirt:///" + uuid)))
		Expect(machine.Annotations).To(HaveKeyWithValue("machine.openshift.io/instance-state", "Running"))
		Expect(machine.Status.Addresses).To(ConsistOf(
			corev1.NodeAddress{Type: corev1.NodeInternalDNS, Address: machine.Name},
			corev1.NodeAddress{Type: corev1.NodeHostName, Address: machine.Name},
		), "nobody in the domain asks for a lease")
	})

	It("is Running when the Node joins", func(ctx SpecContext) {
		Expect(w.client.Create(ctx, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{
				Name: machine.Name, Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
			},
			Spec: corev1.NodeSpec{ProviderID: *machine.Spec.ProviderID},
		})).To(Succeed())
		Eventually(ctx, func(g Gomega) {
			g.Expect(onlyMachine(ctx, g, set).Status.Phase).To(HaveValue(Equal(machinev1beta1.PhaseRunning)))
		}).Should(Succeed())
	})

	It("finds no drift in what it has made", func(ctx SpecContext) {
		Eventually(ctx, func(g Gomega) {
			g.Expect(drift(onlyMachine(ctx, g, set))).To(HaveField("Status", metav1.ConditionFalse))
		}).Should(Succeed())
	})

	It("detects a domain that is powered off outside of the operator, and on again", func(ctx SpecContext) {
		w.host.virsh(ctx, "destroy", machine.Name)
		Eventually(ctx, func(g Gomega) {
			g.Expect(drift(onlyMachine(ctx, g, set))).To(And(
				HaveField("Status", metav1.ConditionTrue),
				HaveField("Message", ContainSubstring("libvirt_domain.this")),
			))
		}).Should(Succeed())
		Expect(w.host.state(ctx, machine.Name)).To(Equal("shut off"), "nobody has asked for repair")
		w.host.virsh(ctx, "start", machine.Name)
		Eventually(ctx, func(g Gomega) {
			g.Expect(drift(onlyMachine(ctx, g, set))).To(HaveField("Status", metav1.ConditionFalse))
		}).Should(Succeed())
	})

	It("finds a domain again whose create was lost", func(ctx SpecContext) {
		// QEMU does not start without this file, but by then libvirt knows the domain, which the engine's state does
		// not contain.
		late := filepath.Join(w.host.Dir, "late.ign")
		lost := &machinev1beta1.Machine{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: lab.Namespace, Name: "lost", Labels: maps.Clone(set.Spec.Template.Labels),
			},
			Spec: *set.Spec.Template.Spec.DeepCopy(),
		}
		delete(lost.Labels, setLabel)
		change(&lost.Spec, func(fields map[string]any) { fields["ignKey"], fields["ignition"] = late, nil })
		Expect(w.client.Create(ctx, lost)).To(Succeed())
		Eventually(ctx, func(g Gomega) {
			g.Expect(w.client.Get(ctx, client.ObjectKeyFromObject(lost), lost)).To(Succeed())
			g.Expect(conditionOf(lost, machinev1beta1.MachineCreation)).To(
				HaveField("Message", ContainSubstring("error creating libvirt domain")))
		}).Should(Succeed())
		Expect(w.host.state(ctx, lost.Name)).To(Equal("shut off"))
		uuid := w.host.domain(ctx, lost.Name).UUID
		Expect(os.WriteFile(late, []byte(userData), 0o600)).To(Succeed())

		Eventually(ctx, func(g Gomega) {
			g.Expect(w.client.Get(ctx, client.ObjectKeyFromObject(lost), lost)).To(Succeed())
			g.Expect(lost.Status.Phase).To(HaveValue(Equal(machinev1beta1.PhaseProvisioned)))
		}).Should(Succeed())
		Expect(lost.Spec.ProviderID).To(HaveValue(Equal("libvirt:///" + uuid)))
		Expect(w.host.state(ctx, lost.Name)).To(Equal("running"))
		Expect(w.host.domains(ctx)).To(ConsistOf(machine.Name, lost.Name))

		Expect(w.client.Delete(ctx, lost)).To(Succeed())
		Eventually(ctx, w.host.domains).WithArguments(ctx).Should(ConsistOf(machine.Name))
		Eventually(ctx, w.host.volumes).Should(HaveLen(2), "what is left is the other Machine's")
	})

	It("destroys domain and volumes when the MachineSet is scaled to zero", func(ctx SpecContext) {
		_, err := w.lab.Kubectl(ctx, "scale", "machineset", set.Name, "--replicas=0")
		Expect(err).NotTo(HaveOccurred())
		Eventually(ctx, func(g Gomega) {
			g.Expect(machinesOf(ctx, g, set)).To(BeEmpty())
		}).Should(Succeed())
		Expect(w.host.domains(ctx)).To(BeEmpty())
		Expect(w.host.volumes()).To(BeEmpty())
	})

	It("has the user data in no log", func() {
		Expect(os.ReadFile(w.manager.Log)).NotTo(ContainSubstring(marker))
	})
})

// machineSet returns the module's example with one small Machine on the tests' host.
func machineSet() *machinev1beta1.MachineSet {
	GinkgoHelper()
	content, err := os.ReadFile(w.lab.Path(example))
	Expect(err).NotTo(HaveOccurred())
	set := &machinev1beta1.MachineSet{}
	Expect(yaml.UnmarshalStrict(content, set)).To(Succeed())
	one := int32(1)
	set.Spec.Replicas = &one
	change(&set.Spec.Template.Spec, func(fields map[string]any) {
		fields["uri"], fields["domainMemory"], fields["domainVcpu"] = w.host.URI, 64, 1
		fields["volume"].(map[string]any)["volumeSize"] = "128Mi"
		fields["networkInterfaceAddress"] = "" // do not wait for a DHCP lease
	})
	return set
}

func change(spec *machinev1beta1.MachineSpec, how func(map[string]any)) {
	GinkgoHelper()
	fields := map[string]any{}
	Expect(json.Unmarshal(spec.ProviderSpec.Value.Raw, &fields)).To(Succeed())
	how(fields)
	raw, err := json.Marshal(fields)
	Expect(err).NotTo(HaveOccurred())
	spec.ProviderSpec.Value = &runtime.RawExtension{Raw: raw}
}

func machinesOf(ctx context.Context, g Gomega, set *machinev1beta1.MachineSet) []machinev1beta1.Machine {
	list := &machinev1beta1.MachineList{}
	g.Expect(w.client.List(ctx, list, client.InNamespace(lab.Namespace), client.MatchingLabels{setLabel: set.Name})).To(
		Succeed())
	return list.Items
}

func onlyMachine(ctx context.Context, g Gomega, set *machinev1beta1.MachineSet) *machinev1beta1.Machine {
	machines := machinesOf(ctx, g, set)
	g.Expect(machines).To(HaveLen(1))
	return &machines[0]
}

// drift returns the result of the last drift check, or an empty condition.
func drift(machine *machinev1beta1.Machine) metav1.Condition {
	GinkgoHelper()
	return conditionOf(machine, "Drifted")
}

// conditionOf returns a condition of the provider status.
func conditionOf(machine *machinev1beta1.Machine, condition machinev1beta1.ConditionType) metav1.Condition {
	GinkgoHelper()
	status := v1alpha1.TerraformMachineProviderStatus{}
	if machine.Status.ProviderStatus != nil {
		Expect(json.Unmarshal(machine.Status.ProviderStatus.Raw, &status)).To(Succeed())
	}
	if found := meta.FindStatusCondition(status.Conditions, string(condition)); found != nil {
		return *found
	}
	return metav1.Condition{Message: fmt.Sprintf("there is no %s of %s yet", condition, machine.Name)}
}
