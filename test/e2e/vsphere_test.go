//go:build e2e

package e2e_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/hack/lab"
	"github.com/machine-iac/machine-iac-operator/test/vcenter"
)

const (
	vsphereExample     = "modules/vsphere/examples/machineset.yaml"
	vsphereCredentials = "vsphere-cloud-credentials"
	instanceState      = "machine.openshift.io/instance-state"
	// volume is another owner's file.
	volume = "[LocalDS_0] volumes/claim-1.vmdk"
	// claim is the name of a Kubernetes volume in a Node's status.
	claim = "kubernetes.io/csi/csi.vsphere.vmware.com^claim-1"
)

// vsphere is a MachineSet in a simulated vCenter.
type vsphere struct {
	*vcenter.VCenter
	fleet
}

func aMachineSetOnVSphere() {
	var v *vsphere

	BeforeAll(func(ctx SpecContext) {
		v = w.openVSphere(ctx)
		w.reachedAs(ctx, v.Environment())
		w.pod.restart(ctx) // the first runs must not use cached configuration
		w.create(ctx, v.set)
	})

	It("is made by the module's example: each Machine gets a virtual machine that is as its providerSpec "+
		"asks for", func(ctx SpecContext) {
		for _, machine := range v.reach(ctx, 2, machinev1beta1.PhaseProvisioned) {
			v.looksAsAskedFor(ctx, &machine)
		}
	})

	It("has Machines that run once Nodes with their providerIDs have joined", func(ctx SpecContext) {
		for _, machine := range v.reach(ctx, 2, machinev1beta1.PhaseProvisioned) {
			v.join(ctx, &machine)
		}
		for _, machine := range v.reach(ctx, 2, machinev1beta1.PhaseRunning) {
			Expect(machine.Status.NodeRef).To(HaveValue(HaveField("Name", nodeNameOf(&machine))))
			w.expectEvent(ctx, &machine, "Create", "Created the instance with module vsphere")
		}
	})

	It("is compared with its virtual machines by kubectl machine, which reaches them as "+
		"runs do", func(ctx SpecContext) {
		printed := w.plans(ctx, "--refresh", "machineset/"+v.set.Name, "--namespace", lab.Namespace)
		Expect(printed).To(HaveLen(2))
		Expect(printed).To(HaveEach(And(HaveField("Result", "Unchanged"), HaveField("Drift", ""))))
	})

	Context("whose virtual machines are meddled with", Ordered, func() {
		var machine *machinev1beta1.Machine

		BeforeAll(func(ctx SpecContext) {
			w.pod.restart(ctx, "--drift-interval=10s")
			DeferCleanup(func(ctx SpecContext) { w.pod.restart(ctx) })
			machine = &v.reach(ctx, 2, machinev1beta1.PhaseRunning)[0]
		})

		It("reports a guest that was powered off", func(ctx SpecContext) {
			Expect(machine.Annotations).To(HaveKeyWithValue(instanceState, "poweredOn"))
			Expect(v.PowerOff(ctx, vmPath(machine))).To(Succeed())
			until(ctx, time.Minute, "the Machine says that it is off",
				func(ctx context.Context) error {
					machine = w.get(ctx, machine.Name)
					// Its tools fall silent a moment after the power.
					if got, ips := machine.Annotations[instanceState], internalIPs(machine); got != "poweredOff" || len(ips) > 0 {
						return fmt.Errorf("the instance's state is %q, and its addresses are %q", got, ips)
					}
					return nil
				})
			Expect(phaseOf(machine)).To(Equal(machinev1beta1.PhaseRunning))
		})

		It("has a Machine fail whose virtual machine was deleted", func(ctx SpecContext) {
			Expect(v.Destroy(ctx, vmPath(machine))).To(Succeed())
			until(ctx, time.Minute, "the Machine has failed", func(ctx context.Context) error {
				machine = w.get(ctx, machine.Name)
				return phaseIs(machine, machinev1beta1.PhaseFailed)
			})
			Expect(machine.Status.ErrorMessage).To(HaveValue(Equal("can't find created instance")))
			Expect(condition(machine, machinev1beta1.InstanceExistsCondition).Reason).To(
				Equal(machinev1beta1.InstanceMissingReason))
			w.expectEvent(ctx, machine, "DriftMissing", "vsphere_virtual_machine.this")
			Expect(v.VM(ctx, vmPath(machine))).To(BeNil(), "it was made again")
		})
	})

	It("takes its virtual machines and their disks with it, and leaves alone what others have "+
		"attached", func(ctx SpecContext) {
		machines := v.machines(ctx)
		var files []string
		var held *machinev1beta1.Machine
		for _, machine := range machines {
			vm, err := v.VM(ctx, vmPath(&machine))
			Expect(err).NotTo(HaveOccurred())
			if vm == nil {
				continue // the deleted one
			}
			for _, disk := range vm.Disks {
				files = append(files, disk.File)
			}
			if held == nil {
				held = machine.DeepCopy()
				Expect(v.Attach(ctx, vmPath(held), volume)).To(Succeed())
			}
		}
		Expect(held).NotTo(BeNil())
		v.holds(ctx, held, claim)
		w.kubectl(ctx, "delete", "machineset", v.set.Name)
		until(ctx, patience, "the Machine waits for its volume", func(ctx context.Context) error {
			if found := condition(w.get(ctx, held.Name), "VolumesDetached"); found.Reason != "VolumesAttached" {
				return fmt.Errorf("the condition is %+v", found)
			}
			return nil
		})
		w.expectEvent(ctx, held, "WaitingForVolumes", claim)
		Consistently(func(g Gomega) {
			vm, err := v.VM(ctx, vmPath(held))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(vm).To(HaveValue(HaveField("PowerState", "poweredOn")))
		}).WithTimeout(aWhile).Should(Succeed(), "it was deleted while a volume was attached to its Node")
		v.holds(ctx, held)
		v.leaves(ctx, machines, func(machine *machinev1beta1.Machine) error {
			vm, err := v.VM(ctx, vmPath(machine))
			if err == nil && vm != nil {
				err = fmt.Errorf("the virtual machine of %s is there still: %v", machine.Name, vm)
			}
			return err
		})
		for _, file := range files {
			Expect(v.HasFile(ctx, file)).To(BeFalse(), file)
		}
		Expect(v.HasFile(ctx, volume)).To(BeTrue(), "the volume is gone")
	})
}

// holds sets the volumes attached to a Machine's Node, as the attach-detach controller does.
func (v *vsphere) holds(ctx context.Context, machine *machinev1beta1.Machine, volumes ...corev1.UniqueVolumeName) {
	GinkgoHelper()
	before := w.node(ctx, nodeNameOf(machine))
	after := before.DeepCopy()
	after.Status.VolumesAttached = nil
	for _, name := range volumes {
		after.Status.VolumesAttached = append(after.Status.VolumesAttached, corev1.AttachedVolume{Name: name})
	}
	Expect(w.client.Status().Patch(ctx, after, client.MergeFrom(before))).To(Succeed())
}

// openVSphere starts a vCenter, and creates the MachineSet's dependencies.
func (w *world) openVSphere(ctx context.Context) *vsphere {
	GinkgoHelper()
	opened, err := vcenter.Start(ctx, w.lab.Path("bin", "vcsim"), w.dir)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(opened.Close)
	credentials := newSecret(vsphereCredentials, map[string][]byte{
		vcenter.Name + ".username": []byte(vcenter.Username), vcenter.Name + ".password": []byte(vcenter.Password),
	})
	w.create(ctx, credentials)
	DeferCleanup(func(ctx SpecContext) { Expect(w.client.Delete(ctx, credentials)).To(Succeed()) })
	set := exampleSet(vsphereExample)
	*set.Spec.Replicas = 2
	changeSpec(&set.Spec.Template.Spec, with("template", vcenter.Template), with("tagIDs", []string{opened.Tag}),
		inWorkspace("server", vcenter.Name),
		inWorkspace("folder", vcenter.Folder), with("dataDisks", []any{map[string]any{"name": "images", "sizeGiB": 3}}))
	return &vsphere{VCenter: opened, fleet: fleet{set}}
}

func inWorkspace(field, value string) func(map[string]any) {
	return func(fields map[string]any) {
		workspace, ok := fields["workspace"].(map[string]any)
		Expect(ok).To(BeTrue())
		workspace[field] = value
	}
}

// looksAsAskedFor compares a virtual machine, and the Machine's status, with the providerSpec.
func (v *vsphere) looksAsAskedFor(ctx context.Context, machine *machinev1beta1.Machine) {
	GinkgoHelper()
	vm, err := v.VM(ctx, vmPath(machine))
	Expect(err).NotTo(HaveOccurred())
	Expect(vm).NotTo(BeNil(), "it is not in the folder")
	Expect(vm.PowerState).To(Equal("poweredOn"))
	Expect(vm.Annotation).To(ContainSubstring(string(machine.UID)))
	Expect(vm.ClonedFrom).To(Equal(vcenter.Template))
	Expect([]int{vm.CPUs, vm.MemoryMiB}).To(Equal([]int{4, 16384}))
	Expect(vm.Networks).To(ConsistOf("/DC0/network/VM Network"))
	Expect(vm.ResourcePool).To(Equal("/DC0/host/DC0_C0/Resources"))
	Expect(vm.Disks).To(HaveExactElements(HaveField("SizeGiB", 120), HaveField("SizeGiB", 3)))
	Expect(vm.Disks).To(HaveEach(HaveField("File", HavePrefix("[LocalDS_0] "+machine.Name+"/"))))
	Expect(vm.Tags).To(ConsistOf(v.Tag))
	Expect(vm.ExtraConfig).To(And(
		HaveKeyWithValue("guestinfo.ignition.config.data", base64.StdEncoding.EncodeToString([]byte(w.userData))),
		HaveKeyWithValue("guestinfo.hostname", machine.Name),
	))

	Expect(machine.Spec.ProviderID).To(HaveValue(Equal("vsphere://" + vm.UUID)))
	Expect(machine.Status.Addresses).To(
		ContainElement(corev1.NodeAddress{Type: corev1.NodeInternalDNS, Address: machine.Name}))
	until(ctx, patience, "the Machine has the address that its guest reports", func(ctx context.Context) error {
		ips := internalIPs(w.get(ctx, machine.Name))
		matches, err := ConsistOf(HavePrefix("10.")).Match(ips)
		if err == nil && !matches {
			err = fmt.Errorf("it has %v", ips)
		}
		return err
	})
}

func vmPath(machine *machinev1beta1.Machine) string { return vcenter.Folder + "/" + machine.Name }
