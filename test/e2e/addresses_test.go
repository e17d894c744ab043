//go:build e2e

package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/hack/lab"
	"github.com/machine-iac/machine-iac-operator/test/controlplane"
)

const (
	kernelArguments = "guestinfo.afterburn.initrd.network-kargs"
	// releases is the address provider's finalizer.
	releases   = "ipam.example.com/release-address"
	prefixSize = 24
	gateway    = "192.0.2.1"
)

// pool is the pool that the chapter's claims refer to.
var pool = map[string]any{"apiGroup": "ipam.example.com", "kind": "IPPool", "name": "workers"}

func aMachineSetWithPools() {
	var v *vsphere
	var provider *addressProvider

	BeforeAll(func(ctx SpecContext) {
		v = w.openVSphere(ctx)
		w.reachedAs(ctx, v.Environment())
		config, err := w.cluster.AdminConfig()
		Expect(err).NotTo(HaveOccurred())
		Expect(controlplane.InstallIPAM(config)).To(Succeed())
		provider = w.provideAddresses()
		w.pod.restart(ctx) // the first runs must not use cached configuration
		renamed(v.set, "pooled")
		changeSpec(&v.set.Spec.Template.Spec, with("network", map[string]any{"devices": []any{map[string]any{
			"networkName": "VM Network", "nameservers": []any{"192.0.2.53"},
			"addressesFromPools": []any{map[string]any{
				"group": pool["apiGroup"], "resource": pool["kind"], "name": pool["name"],
			}},
		}}}))
		w.create(ctx, v.set)
	})

	It("makes claims, and no instance before they are fulfilled", func(ctx SpecContext) {
		machines := v.reach(ctx, 2, machinev1beta1.PhaseProvisioning)
		for _, machine := range machines {
			w.claimedIs(ctx, machine.Name, metav1.ConditionFalse, "Waiting on 1 IP address claims to be bound")
			claim := w.claimOf(ctx, machine.Name)
			Expect(metav1.IsControlledBy(claim, &machine)).To(BeTrue())
			Expect(claim.Object["spec"]).To(HaveKeyWithValue("poolRef", Equal(pool)))
			Expect(claim.GetFinalizers()).To(ContainElement(machinev1beta1.IPClaimProtectionFinalizer))
		}
		Consistently(func(g Gomega) {
			for _, machine := range machines {
				g.Expect(v.VM(ctx, vmPath(&machine))).To(BeNil())
			}
		}).WithTimeout(aWhile).Should(Succeed(), "it was made without its address")
		Expect(v.reach(ctx, 2, machinev1beta1.PhaseProvisioning)).To(HaveEach(HaveField("Status.ErrorReason", BeNil())))
	})

	It("has Machines that run with the addresses of a provider that was late", func(ctx SpecContext) {
		provider.serves.Store(true)
		var given []string
		for _, machine := range v.reach(ctx, 2, machinev1beta1.PhaseProvisioned) {
			address := w.addressOf(ctx, machine.Name)
			given = append(given, address)
			v.hasAddress(ctx, &machine, address)
			w.claimedIs(ctx, machine.Name, metav1.ConditionTrue, "All IP address claims are bound")
			v.join(ctx, &machine)
		}
		Expect(given).To(ConsistOf("192.0.2.10", "192.0.2.11"))
		v.reach(ctx, 2, machinev1beta1.PhaseRunning)
	})

	It("keeps a virtual machine as it is whose claim is deleted, and claims an address again", func(ctx SpecContext) {
		machine := &v.reach(ctx, 2, machinev1beta1.PhaseRunning)[0]
		made, err := v.VM(ctx, vmPath(machine))
		Expect(err).NotTo(HaveOccurred())
		claim, address := w.claimOf(ctx, machine.Name), w.addressOf(ctx, machine.Name)
		w.kubectl(ctx, "delete", "ipaddressclaim", claim.GetName(), "--wait=false")
		until(ctx, patience, "the provider has released the address", func(ctx context.Context) error {
			left := w.listIPAM(ctx, "IPAddress")
			if slices.ContainsFunc(left, func(one unstructured.Unstructured) bool {
				return one.GetName() == claim.GetName()
			}) {
				return errors.New("it is there still")
			}
			return nil
		})
		w.kubectl(ctx, "annotate", "machine", machine.Name, "example.com/looked-at=now")
		w.claimedIs(ctx, machine.Name, metav1.ConditionFalse, "Waiting on 1 IP address claims to be bound")

		w.kubectl(ctx, "patch", "ipaddressclaim", claim.GetName(), "--type=merge",
			"--patch", `{"metadata":{"finalizers":[]}}`)
		w.claimedIs(ctx, machine.Name, metav1.ConditionTrue, "All IP address claims are bound")
		Expect(w.claimOf(ctx, machine.Name).GetUID()).NotTo(Equal(claim.GetUID()))
		Expect(w.addressOf(ctx, machine.Name)).NotTo(Equal(address))

		v.hasAddress(ctx, machine, address)
		Expect(v.VM(ctx, vmPath(machine))).To(HaveValue(HaveField("UUID", made.UUID)))
		Expect(phaseOf(w.get(ctx, machine.Name))).To(Equal(machinev1beta1.PhaseRunning))
	})

	It("releases its claims when its virtual machines are gone", func(ctx SpecContext) {
		machines := v.machines(ctx)
		w.kubectl(ctx, "delete", "machineset", v.set.Name)
		v.leaves(ctx, machines, func(machine *machinev1beta1.Machine) error {
			vm, err := v.VM(ctx, vmPath(machine))
			if err == nil && vm != nil {
				err = fmt.Errorf("the virtual machine of %s is there still: %v", machine.Name, vm)
			}
			return err
		})
		until(ctx, patience, "claims and addresses are gone", func(ctx context.Context) error {
			if claims, addresses := len(w.listIPAM(ctx, "IPAddressClaim")),
				len(w.listIPAM(ctx, "IPAddress")); claims+addresses > 0 {
				return fmt.Errorf("there are %d claims and %d addresses", claims, addresses)
			}
			return nil
		})
	})
}

// hasAddress checks the address in a Machine's guest configuration.
func (v *vsphere) hasAddress(ctx context.Context, machine *machinev1beta1.Machine, address string) {
	GinkgoHelper()
	want := fmt.Sprintf("ip=%s::%s:255.255.255.0:::none nameserver=192.0.2.53", address, gateway)
	Expect(v.VM(ctx, vmPath(machine))).To(HaveValue(HaveField("ExtraConfig", HaveKeyWithValue(kernelArguments, want))))
}

// claimedIs waits until a Machine's provider status has this condition of its claims.
func (w *world) claimedIs(ctx context.Context, name string, status metav1.ConditionStatus, message string) {
	GinkgoHelper()
	until(ctx, patience, fmt.Sprintf("Machine %s says %q", name, message), func(ctx context.Context) error {
		var said v1alpha1.TerraformMachineProviderStatus
		if raw := w.get(ctx, name).Status.ProviderStatus; raw != nil {
			if err := json.Unmarshal(raw.Raw, &said); err != nil {
				return err
			}
		}
		found := meta.FindStatusCondition(said.Conditions, string(machinev1beta1.IPAddressClaimedCondition))
		if found == nil || found.Status != status || found.Message != message {
			return fmt.Errorf("the condition is %+v", found)
		}
		return nil
	})
}

// claimOf returns a Machine's claim for its first device.
func (w *world) claimOf(ctx context.Context, machine string) *unstructured.Unstructured {
	GinkgoHelper()
	claim := ofIPAM("IPAddressClaim")
	Expect(w.client.Get(ctx, client.ObjectKey{Namespace: lab.Namespace, Name: machine + "-claim-0-0"}, claim)).To(
		Succeed())
	return claim
}

// addressOf returns the address of a Machine's claim.
func (w *world) addressOf(ctx context.Context, machine string) string {
	GinkgoHelper()
	given := ofIPAM("IPAddress")
	Expect(w.client.Get(ctx, client.ObjectKey{Namespace: lab.Namespace, Name: machine + "-claim-0-0"}, given)).To(
		Succeed())
	address, _, err := unstructured.NestedString(given.Object, "spec", "address")
	Expect(err).NotTo(HaveOccurred())
	return address
}

func (w *world) listIPAM(ctx context.Context, kind string) []unstructured.Unstructured {
	GinkgoHelper()
	listed, err := w.tryListIPAM(ctx, kind)
	Expect(err).NotTo(HaveOccurred())
	return listed
}

func (w *world) tryListIPAM(ctx context.Context, kind string) ([]unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(ofIPAM(kind + "List").GroupVersionKind())
	err := w.client.List(ctx, list, client.InNamespace(lab.Namespace))
	return list.Items, err
}

func ofIPAM(kind string) *unstructured.Unstructured {
	made := &unstructured.Unstructured{Object: map[string]any{}}
	made.SetGroupVersionKind(schema.GroupVersionKind{Group: "ipam.cluster.x-k8s.io", Version: "v1beta1", Kind: kind})
	return made
}

// addressProvider fulfils claims, and releases the addresses of deleted ones, as IPAM providers do.
type addressProvider struct {
	serves atomic.Bool
	next   int
}

// provideAddresses starts a provider, which fulfils nothing until told to.
func (w *world) provideAddresses() *addressProvider {
	GinkgoHelper()
	p := &addressProvider{next: 10}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			if err := p.provide(ctx); err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) &&
				!apierrors.IsNotFound(err) {
				say("    the provider of addresses: %s", firstLine(err.Error()))
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(poll):
			}
		}
	}()
	DeferCleanup(func() { stop(); <-ended })
	return p
}

func (p *addressProvider) provide(ctx context.Context) error {
	claims, err := w.tryListIPAM(ctx, "IPAddressClaim")
	if err != nil {
		return err
	}
	for i := range claims {
		claim := &claims[i]
		bound, _, _ := unstructured.NestedString(claim.Object, "status", "addressRef", "name")
		switch {
		case !claim.GetDeletionTimestamp().IsZero():
			err = p.release(ctx, claim)
		case bound == "" && p.serves.Load():
			err = p.fulfil(ctx, claim)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// fulfil assigns the next address to a claim.
func (p *addressProvider) fulfil(ctx context.Context, claim *unstructured.Unstructured) error {
	if controllerutil.AddFinalizer(claim, releases) {
		if err := w.client.Update(ctx, claim); err != nil {
			return err
		}
	}
	given := ofIPAM("IPAddress")
	given.SetNamespace(claim.GetNamespace())
	given.SetName(claim.GetName())
	given.Object["spec"] = map[string]any{
		"address": fmt.Sprintf("192.0.2.%d", p.next), "gateway": gateway, "prefix": int64(prefixSize), "poolRef": pool,
		"claimRef": map[string]any{"name": claim.GetName()},
	}
	if err := w.client.Create(ctx, given); client.IgnoreAlreadyExists(err) != nil {
		return err
	} else if err == nil {
		p.next++
	}
	claim.Object["status"] = map[string]any{"addressRef": map[string]any{"name": given.GetName()}}
	return w.client.Status().Update(ctx, claim)
}

// release releases a claim's address, whatever other finalizers it has.
func (p *addressProvider) release(ctx context.Context, claim *unstructured.Unstructured) error {
	given := ofIPAM("IPAddress")
	given.SetNamespace(claim.GetNamespace())
	given.SetName(claim.GetName())
	if err := client.IgnoreNotFound(w.client.Delete(ctx, given)); err != nil {
		return err
	}
	if !controllerutil.RemoveFinalizer(claim, releases) {
		return nil
	}
	return w.client.Update(ctx, claim)
}
