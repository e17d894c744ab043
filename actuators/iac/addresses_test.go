package iac

import (
	"slices"
	"strings"
	"testing"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-iac/machine-iac-operator/actuators"
	claims "github.com/machine-iac/machine-iac-operator/actuators/addresses"
	"github.com/machine-iac/machine-iac-operator/internal/render"
	"github.com/machine-iac/machine-iac-operator/test/builder"
	"github.com/machine-iac/machine-iac-operator/test/controlplane"
	simulation "github.com/machine-iac/machine-iac-operator/test/vcenter"
)

// pooled is a Machine with a device that takes its addresses from two pools.
func (v *vcenter) pooled() *machinev1beta1.Machine {
	machine := builder.In(v.namespace, builder.Machine())
	machine.Spec.ProviderSpec.Value = builder.ProviderSpec(v.spec(func(spec map[string]any) {
		spec["network"] = map[string]any{"devices": []any{map[string]any{
			"networkName": "VM Network", "nameservers": []any{"10.0.0.53"},
			"addressesFromPools": []any{
				map[string]any{"group": "ipam.example.com", "resource": "IPPool", "name": "v4"},
				map[string]any{"group": "ipam.example.com", "resource": "IPPool", "name": "v6"},
			},
		}}}
	}))
	return v.apply(machine)
}

// claim returns a claim of a Machine.
func (v *vcenter) claim(machine *machinev1beta1.Machine, suffix string) *unstructured.Unstructured {
	v.t.Helper()
	claim := ipam("IPAddressClaim", v.namespace, machine.Name+suffix)
	if err := v.client.Get(v.t.Context(), types.NamespacedName{Namespace: v.namespace, Name: claim.GetName()}, claim); err != nil {
		v.t.Fatal(err)
	}
	return claim
}

// bind does what a provider of addresses does for a claim.
func (v *vcenter) bind(machine *machinev1beta1.Machine, suffix, address, gateway string, prefix int64) {
	v.t.Helper()
	claim := v.claim(machine, suffix)
	bound := ipam("IPAddress", v.namespace, "")
	bound.SetGenerateName(claim.GetName() + "-")
	bound.Object["spec"] = map[string]any{"address": address, "gateway": gateway, "prefix": prefix, "claimRef": map[string]any{"name": claim.GetName()}, "poolRef": claim.Object["spec"].(map[string]any)["poolRef"]}
	if err := v.client.Create(v.t.Context(), bound); err != nil {
		v.t.Fatal(err)
	}
	claim.Object["status"] = map[string]any{"addressRef": map[string]any{"name": bound.GetName()}}
	if err := v.client.Status().Update(v.t.Context(), claim); err != nil {
		v.t.Fatal(err)
	}
}

func ipam(kind, namespace, name string) *unstructured.Unstructured {
	made := &unstructured.Unstructured{Object: map[string]any{}}
	made.SetAPIVersion("ipam.cluster.x-k8s.io/v1beta1")
	made.SetKind(kind)
	made.SetNamespace(namespace)
	made.SetName(name)
	return made
}

// claimed checks what the provider status says of the claims.
func claimed(t *testing.T, machine *machinev1beta1.Machine, want metav1.ConditionStatus, reason, message string) {
	t.Helper()
	status := readProviderStatus(machine)
	found := meta.FindStatusCondition(status.Conditions, "IPAddressClaimed")
	if found == nil || found.Status != want || found.Reason != reason || found.Message != message {
		t.Errorf("condition %+v; want %s, %s: %s", found, want, reason, message)
	}
}

func TestAVirtualMachineTakesAddressesFromPools(t *testing.T) {
	if err := controlplane.InstallIPAM(plane.Config); err != nil {
		t.Fatal(err)
	}
	v := newVCenter(t)
	machine := v.pooled()
	for range 2 {
		if waiting, ok := actuators.AsRequeueAfter(v.Create(t.Context(), machine)); !ok || waiting.After != claims.Retry {
			t.Fatalf("Create returns %v, want that addresses are waited for", waiting)
		}
	}
	claimed(t, machine, metav1.ConditionFalse, "WaitingForIPAddress", "Waiting on 2 IP address claims to be bound")
	first := v.claim(machine, "-claim-0-0")
	if !metav1.IsControlledBy(first, machine) || !slices.Equal(first.GetFinalizers(), []string{"machine.openshift.io/ip-claim-protection"}) {
		t.Errorf("the claim has the owners %v and the finalizers %v", first.GetOwnerReferences(), first.GetFinalizers())
	}
	v.bind(machine, "-claim-0-0", "10.0.0.10", "10.0.0.1", 24)
	_ = v.Create(t.Context(), machine)
	claimed(t, machine, metav1.ConditionFalse, "WaitingForIPAddress", "Waiting on 1 IP address claims to be bound")
	if made := v.vm(machine); made != nil {
		t.Fatal("a virtual machine is made while an address is missing")
	}
	v.bind(machine, "-claim-0-1", "fd00::10", "", 64)
	v.bring(machine)
	claimed(t, machine, metav1.ConditionTrue, "IPAddressesClaimed", "All IP address claims are bound")
	made := v.vm(machine)
	want := "ip=10.0.0.10::10.0.0.1:255.255.255.0:::none ip=[fd00::10]:::64:::none nameserver=10.0.0.53"
	if made == nil || made.ExtraConfig["guestinfo.afterburn.initrd.network-kargs"] != want {
		t.Fatalf("the virtual machine is %+v, want it with %q", made, want)
	}
	v.keepsItsAddresses(machine, made)

	if err := v.drive(v.Delete, machine); err != nil {
		t.Fatal(err)
	}
	for _, suffix := range []string{"-claim-0-0", "-claim-0-1"} {
		if left := v.claim(machine, suffix).GetFinalizers(); len(left) > 0 {
			t.Errorf("the claim %s keeps %v after the destroy", suffix, left)
		}
	}
}

// keepsItsAddresses deletes a claim behind the Machine's back. It is made again, and the instance
// stays as it is.
func (v *vcenter) keepsItsAddresses(machine *machinev1beta1.Machine, made *simulation.VM) {
	v.t.Helper()
	lost := v.claim(machine, "-claim-0-0")
	lost.SetFinalizers(nil)
	if err := v.client.Update(v.t.Context(), lost); err != nil {
		v.t.Fatal(err)
	}
	if err := v.client.Delete(v.t.Context(), lost); err != nil {
		v.t.Fatal(err)
	}
	orphan := v.claim(machine, "-claim-0-1")
	orphan.SetOwnerReferences(nil)
	if err := v.client.Update(v.t.Context(), orphan); err != nil {
		v.t.Fatal(err)
	}
	if err := v.drive(v.Update, machine); err != nil {
		v.t.Errorf("Update after a claim was lost: %v, want that the instance is as it was made", err)
	}
	claimed(v.t, machine, metav1.ConditionFalse, "WaitingForIPAddress", "Waiting on 1 IP address claims to be bound")
	if after := v.RecheckAfter(machine); after != claims.Retry {
		v.t.Errorf("the Machine is looked at again after %s, want %s", after, claims.Retry)
	}
	if again := v.claim(machine, "-claim-0-0"); again.GetUID() == lost.GetUID() || !metav1.IsControlledBy(v.claim(machine, "-claim-0-1"), machine) {
		v.t.Error("the claim is not made again, or the other one is not the Machine's again")
	}
	delete(machine.Annotations, render.AddressesAnnotation)
	v.bind(machine, "-claim-0-0", "10.0.0.11", "10.0.0.1", 24)
	err := v.drive(v.Update, machine)
	if !isReason(err, machinev1beta1.UnsupportedChangeMachineError) || !strings.Contains(err.Error(), "Only tagIDs can be changed") {
		v.t.Errorf("Update with another address: %v, want that it is refused", err)
	}
	if now := v.vm(machine); now.UUID != made.UUID {
		v.t.Errorf("it is %s, want %s", now.UUID, made.UUID)
	}
}
