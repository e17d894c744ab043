package addresses

import (
	"context"
	"errors"
	"fmt"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/machine-iac/machine-iac-operator/internal/render"
)

// The API of claims, which may be missing from a cluster.
var (
	groupVersion = schema.GroupVersion{Group: "ipam.cluster.x-k8s.io", Version: "v1beta1"}
	claimKind    = groupVersion.WithKind("IPAddressClaim")
	addressKind  = groupVersion.WithKind("IPAddress")
	machineKind  = machinev1beta1.GroupVersion.WithKind("Machine")
)

// ErrNoAPI means that the cluster has no IPAddressClaims.
var ErrNoAPI = errors.New("the cluster has no IPAddressClaims (" + groupVersion.String() +
	"), which address pools need; install an IPAM provider, or use fixed addresses")

// Claims creates, reads and releases claims.
type Claims struct {
	client client.Client
}

// New returns Claims. The client reads and writes the API server directly, not a cache.
func New(c client.Client) *Claims { return &Claims{client: c} }

// nameOf returns the name of a Machine's claim on a pool.
func nameOf(machine *machinev1beta1.Machine, pool render.AddressPool) string {
	return fmt.Sprintf("%s-claim-%d-%d", machine.Name, pool.Device, pool.Index)
}

// Ensure creates a Machine's missing claims, takes ownership of claims without an owner, and
// returns the addresses bound so far.
func (c *Claims) Ensure(ctx context.Context, machine *machinev1beta1.Machine,
	pools []render.AddressPool) ([]render.PoolAddress, error) {
	var given []render.PoolAddress
	for _, pool := range pools {
		claim, err := c.ensure(ctx, machine, pool)
		if err != nil {
			return nil, fmt.Errorf("claiming an address for network device %d: %w", pool.Device, known(err))
		}
		one, err := c.given(ctx, claim, pool)
		if err != nil {
			return nil, fmt.Errorf("reading the address of IPAddressClaim %s: %w", claim.GetName(), known(err))
		}
		if one != nil {
			given = append(given, *one)
		}
	}
	return given, nil
}

// ensure returns the claim on a pool and creates it if missing.
func (c *Claims) ensure(ctx context.Context, machine *machinev1beta1.Machine,
	pool render.AddressPool) (*unstructured.Unstructured, error) {
	claim := object(claimKind)
	err := c.client.Get(ctx, types.NamespacedName{Namespace: machine.Namespace, Name: nameOf(machine, pool)}, claim)
	if apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) {
		return c.create(ctx, machine, pool)
	}
	if err != nil {
		return nil, err
	}
	return claim, c.own(ctx, machine, claim, pool)
}

// create creates the claim on a pool. Its finalizer keeps it until the instance is gone.
func (c *Claims) create(ctx context.Context, machine *machinev1beta1.Machine,
	pool render.AddressPool) (*unstructured.Unstructured, error) {
	claim := object(claimKind)
	claim.SetNamespace(machine.Namespace)
	claim.SetName(nameOf(machine, pool))
	claim.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(machine, machineKind)})
	claim.SetFinalizers([]string{machinev1beta1.IPClaimProtectionFinalizer})
	claim.Object["spec"] = map[string]any{"poolRef": map[string]any{"apiGroup": pool.Group, "kind": pool.Resource,
		"name": pool.Name}}
	return claim, c.client.Create(ctx, claim)
}

// own makes the Machine the owner of an ownerless claim: a Machine restored with another UID finds
// its claims by name. It rejects a claim with another owner or pool.
func (c *Claims) own(ctx context.Context, machine *machinev1beta1.Machine, claim *unstructured.Unstructured,
	pool render.AddressPool) error {
	if owner := metav1.GetControllerOf(claim); owner != nil && owner.UID != machine.UID {
		return fmt.Errorf("IPAddressClaim %s belongs to %s %s (UID %s), not to this Machine; delete it when it is no "+
			"longer needed", claim.GetName(), owner.Kind, owner.Name, owner.UID)
	}
	if on := poolOf(claim, pool); on != pool {
		return fmt.Errorf("IPAddressClaim %s uses %s, but the providerSpec names %s; restore the pool, or delete the claim",
			claim.GetName(), on, pool)
	}
	if len(claim.GetOwnerReferences()) > 0 {
		return nil
	}
	claim.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(machine, machineKind)})
	return c.client.Update(ctx, claim)
}

// poolOf returns the pool of a claim, with the network device of place.
func poolOf(claim *unstructured.Unstructured, place render.AddressPool) render.AddressPool {
	ref, _, _ := unstructured.NestedStringMap(claim.Object, "spec", "poolRef")
	place.Group, place.Resource, place.Name = ref["apiGroup"], ref["kind"], ref["name"]
	return place
}

// given returns the address bound to a claim, or nil.
func (c *Claims) given(ctx context.Context, claim *unstructured.Unstructured,
	pool render.AddressPool) (*render.PoolAddress, error) {
	name, _, _ := unstructured.NestedString(claim.Object, "status", "addressRef", "name")
	if name == "" {
		return nil, nil
	}
	bound := object(addressKind)
	err := c.client.Get(ctx, types.NamespacedName{Namespace: claim.GetNamespace(), Name: name}, bound)
	if apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) {
		return nil, nil // the provider releases the address of a claim being deleted, despite finalizers
	}
	if err != nil {
		return nil, err
	}
	address, _, _ := unstructured.NestedString(bound.Object, "spec", "address")
	prefix, _, _ := unstructured.NestedInt64(bound.Object, "spec", "prefix")
	gateway, _, _ := unstructured.NestedString(bound.Object, "spec", "gateway")
	one, err := render.NewPoolAddress(pool, address, prefix, gateway)
	if err != nil {
		return nil, fmt.Errorf("invalid IPAddress %s: %w", name, err)
	}
	return &one, nil
}

// Release releases the claims of a Machine without an instance. They are deleted with their owner,
// the Machine.
func (c *Claims) Release(ctx context.Context, machine *machinev1beta1.Machine) error {
	claims := &unstructured.UnstructuredList{}
	claims.SetGroupVersionKind(groupVersion.WithKind(claimKind.Kind + "List"))
	err := c.client.List(ctx, claims, client.InNamespace(machine.Namespace))
	if errors.Is(known(err), ErrNoAPI) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("listing IPAddressClaims: %w", err)
	}
	for i := range claims.Items {
		claim := &claims.Items[i]
		before := claim.DeepCopy()
		if !metav1.IsControlledBy(claim, machine) || !controllerutil.RemoveFinalizer(claim,
			machinev1beta1.IPClaimProtectionFinalizer) {
			continue
		}
		// Optimistic lock: the patch replaces the whole list of finalizers.
		patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		if err := client.IgnoreNotFound(c.client.Patch(ctx, claim, patch)); err != nil {
			return fmt.Errorf("releasing IPAddressClaim %s: %w", claim.GetName(), err)
		}
	}
	return nil
}

// known returns ErrNoAPI if the error means that the API is missing.
func known(err error) error {
	if meta.IsNoMatchError(err) {
		return ErrNoAPI
	}
	return err
}

func object(kind schema.GroupVersionKind) *unstructured.Unstructured {
	made := &unstructured.Unstructured{Object: map[string]any{}}
	made.SetGroupVersionKind(kind)
	return made
}
