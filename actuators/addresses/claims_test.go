package addresses

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-iac/machine-iac-operator/internal/render"
	"github.com/machine-iac/machine-iac-operator/test/builder"
	"github.com/machine-iac/machine-iac-operator/test/controlplane"
)

// plane is shared by the tests of this package. It has no IPAddressClaims at first.
var plane *controlplane.ControlPlane

func TestMain(m *testing.M) {
	started, err := controlplane.Start(controlplane.Default)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	plane = started
	code := m.Run()
	if err := plane.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

var pool = render.AddressPool{Device: 1, Index: 2, Group: "ipam.example.com", Resource: "IPPool", Name: "workers"}

// world is a namespace with a Machine.
type world struct {
	*testing.T
	claims    *Claims
	namespace string
	machine   *machinev1beta1.Machine
}

func newWorld(t *testing.T) *world {
	t.Helper()
	namespace, err := plane.Namespace(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, claims: New(plane.Client), namespace: namespace, machine: builder.In(namespace, builder.Machine())}
	w.must(plane.Client.Create(t.Context(), w.machine))
	return w
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) claim() *unstructured.Unstructured {
	w.Helper()
	found := object(claimKind)
	w.must(plane.Client.Get(w.Context(), types.NamespacedName{Namespace: w.namespace, Name: w.machine.Name + "-claim-1-2"}, found))
	return found
}

// bind gives a claim an address, as a provider of addresses does.
func (w *world) bind(spec map[string]any) {
	w.Helper()
	claim := w.claim()
	bound := object(addressKind)
	bound.SetNamespace(w.namespace)
	bound.SetName(claim.GetName())
	spec["claimRef"], spec["poolRef"] = map[string]any{"name": claim.GetName()}, claim.Object["spec"].(map[string]any)["poolRef"]
	bound.Object["spec"] = spec
	w.must(plane.Client.Create(w.Context(), bound))
	claim.Object["status"] = map[string]any{"addressRef": map[string]any{"name": bound.GetName()}}
	w.must(plane.Client.Status().Update(w.Context(), claim))
}

func (w *world) ensure() ([]render.PoolAddress, error) {
	return w.claims.Ensure(w.Context(), w.machine, []render.AddressPool{pool})
}

// TestAClusterWithoutClaims is first: later tests install them.
func TestAClusterWithoutClaims(t *testing.T) {
	w := newWorld(t)
	if _, err := w.ensure(); !errors.Is(err, ErrNoAPI) {
		t.Errorf("error %v, want that the cluster has no IPAddressClaims", err)
	}
	if err := w.claims.Release(t.Context(), w.machine); err != nil {
		t.Errorf("Release: %v, want nothing to do", err)
	}
	w.must(controlplane.InstallIPAM(plane.Config))
}

func TestAClaimIsMadeOnceAndGivesItsAddress(t *testing.T) {
	w := newWorld(t)
	for range 2 {
		if given, err := w.ensure(); err != nil || len(given) > 0 {
			t.Fatalf("%v, %v; want no address yet", given, err)
		}
	}
	claim := w.claim()
	want := map[string]any{"apiGroup": "ipam.example.com", "kind": "IPPool", "name": "workers"}
	if diff := cmp.Diff(want, claim.Object["spec"].(map[string]any)["poolRef"]); diff != "" {
		t.Errorf("poolRef (-want +got):\n%s", diff)
	}
	owner := metav1.GetControllerOf(claim)
	if owner == nil || owner.Kind != "Machine" || owner.APIVersion != "machine.openshift.io/v1beta1" || owner.UID != w.machine.UID {
		t.Errorf("its owner is %+v, want the Machine", owner)
	}
	w.bind(map[string]any{"address": "10.0.0.10", "prefix": int64(24), "gateway": "10.0.0.1"})
	given, err := w.ensure()
	w.must(err)
	if diff := cmp.Diff([]render.PoolAddress{{AddressPool: pool, Address: "10.0.0.10/24", Gateway: "10.0.0.1"}}, given); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestAnAddressThatItsProviderHasReleasedIsNone deletes a claim, which its finalizer keeps.
func TestAnAddressThatItsProviderHasReleasedIsNone(t *testing.T) {
	w := newWorld(t)
	_, err := w.ensure()
	w.must(err)
	w.bind(map[string]any{"address": "10.0.0.10", "prefix": int64(24)})
	w.must(plane.Client.Delete(t.Context(), w.claim()))
	if given, err := w.ensure(); err != nil || len(given) != 1 {
		t.Errorf("of a claim that is being deleted there is %v, %v; want its address still", given, err)
	}
	bound := object(addressKind)
	bound.SetNamespace(w.namespace)
	bound.SetName(w.claim().GetName())
	w.must(plane.Client.Delete(t.Context(), bound))
	if given, err := w.ensure(); err != nil || len(given) > 0 {
		t.Errorf("%v, %v; want no address", given, err)
	}
}

func TestAnAddressThatCannotBeUsedIsNamed(t *testing.T) {
	w := newWorld(t)
	_, err := w.ensure()
	w.must(err)
	w.bind(map[string]any{"address": "ten", "prefix": int64(24)})
	if _, err := w.ensure(); err == nil || !strings.Contains(err.Error(), `invalid address "ten/24"`) {
		t.Errorf("error %v, want one that names the address", err)
	}
}

func TestAClaimWithoutAnOwnerIsTaken(t *testing.T) {
	w := newWorld(t)
	_, err := w.ensure()
	w.must(err)
	claim := w.claim()
	claim.SetOwnerReferences(nil)
	w.must(plane.Client.Update(t.Context(), claim))
	_, err = w.ensure()
	w.must(err)
	if !metav1.IsControlledBy(w.claim(), w.machine) {
		t.Error("the claim is not the Machine's again")
	}
}

func TestAClaimOfAnotherIsNotTaken(t *testing.T) {
	for name, one := range map[string]struct {
		change func(claim *unstructured.Unstructured)
		want   string
	}{
		"another owner": {func(claim *unstructured.Unstructured) {
			owners := claim.GetOwnerReferences()
			owners[0].UID = "another"
			claim.SetOwnerReferences(owners)
		}, "belongs to Machine"},
		"another pool": {func(claim *unstructured.Unstructured) {
			claim.Object["spec"].(map[string]any)["poolRef"].(map[string]any)["name"] = "masters"
		}, "uses IPPool masters of ipam.example.com"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			_, err := w.ensure()
			w.must(err)
			claim := w.claim()
			one.change(claim)
			w.must(plane.Client.Update(t.Context(), claim))
			if _, err := w.ensure(); err == nil || !strings.Contains(err.Error(), one.want) {
				t.Errorf("error %v, want %q", err, one.want)
			}
		})
	}
}

func TestReleasedClaimsGoWithTheirMachine(t *testing.T) {
	w, other := newWorld(t), newWorld(t)
	other.namespace = w.namespace
	_, err := w.ensure()
	w.must(err)
	foreign := object(claimKind)
	foreign.SetNamespace(w.namespace)
	foreign.SetName("somebody-else")
	foreign.SetFinalizers([]string{machinev1beta1.IPClaimProtectionFinalizer})
	foreign.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(other.machine, machineKind)})
	foreign.Object["spec"] = map[string]any{"poolRef": map[string]any{"apiGroup": pool.Group, "kind": pool.Resource, "name": pool.Name}}
	w.must(plane.Client.Create(t.Context(), foreign))
	claim := w.claim()
	claim.SetFinalizers(append(claim.GetFinalizers(), "ipam.example.com/bound"))
	w.must(plane.Client.Update(t.Context(), claim))
	for range 2 {
		w.must(w.claims.Release(t.Context(), w.machine))
	}
	if diff := cmp.Diff([]string{"ipam.example.com/bound"}, w.claim().GetFinalizers()); diff != "" {
		t.Errorf("the Machine's claim (-want +got):\n%s", diff)
	}
	w.must(plane.Client.Get(t.Context(), types.NamespacedName{Namespace: w.namespace, Name: foreign.GetName()}, foreign))
	if len(foreign.GetFinalizers()) != 1 {
		t.Error("the claim of another Machine is released too")
	}
}
