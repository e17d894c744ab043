package iac

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// ownersLifetime is how long the owners of instances are remembered: every Machine of a namespace that is adopted asks for them.
const ownersLifetime = 30 * time.Second

// instanceOwners are the Machines and states of a namespace by the provider ID of their instance.
type instanceOwners struct {
	mu     sync.Mutex
	listed map[string]ownersList
}

type ownersList struct {
	at time.Time
	// machines are the names of Machines, by provider ID and UID.
	machines map[string]map[types.UID]string
	// states are the names of Machines that are gone, whose state has the instance, by provider ID.
	states map[string]string
}

// checkOtherOwners refuses to adopt an instance that another Machine names, or the state of a Machine that is gone. A Machine that is created
// after the list was read refuses for its part.
func (t *task) checkOtherOwners(ctx context.Context, providerID string) error {
	if providerID == "" {
		return nil
	}
	list, err := t.actuator.ownersIn(ctx, t.key.Namespace, t.machine.CreationTimestamp.Time)
	if err != nil {
		return err
	}
	for uid, name := range list.machines[providerID] {
		if uid != t.uid {
			return &refusedAdoption{why: fmt.Sprintf("the Machines %s and %s both name the instance %s; remove the providerID of the one that it does not belong to, or delete that one "+
				"after removing its finalizer", t.key.Name, name, providerID)}
		}
	}
	if name, known := list.states[providerID]; known {
		return &refusedAdoption{why: fmt.Sprintf("the state of the Machine %s, which is gone, has the instance %s; see kubectl machine orphans", name, providerID)}
	}
	return nil
}

// ownersIn returns the owners of instances in a namespace, as they were read after a time.
func (a *Actuator) ownersIn(ctx context.Context, namespace string, after time.Time) (ownersList, error) {
	a.owners.mu.Lock()
	defer a.owners.mu.Unlock()
	now := a.clock.Now()
	if list, known := a.owners.listed[namespace]; known && now.Sub(list.at) < ownersLifetime && list.at.After(after.Add(time.Second)) {
		return list, nil
	}
	list := ownersList{at: now, machines: map[string]map[types.UID]string{}, states: map[string]string{}}
	heads, err := a.store.List(ctx, namespace)
	if err != nil {
		return ownersList{}, err
	}
	machines := &machinev1beta1.MachineList{}
	if err := a.client.List(ctx, machines, client.InNamespace(namespace)); err != nil {
		return ownersList{}, fmt.Errorf("listing Machines: %w", err)
	}
	known := map[state.Key]bool{}
	for i := range machines.Items {
		machine := &machines.Items[i]
		known[state.KeyFor(namespace, machine.UID)] = true
		if id := machine.Spec.ProviderID; id != nil && *id != "" {
			if list.machines[*id] == nil {
				list.machines[*id] = map[types.UID]string{}
			}
			list.machines[*id][machine.UID] = machine.Name
		}
	}
	for _, head := range heads {
		if known[head.Key] || head.Managed == 0 {
			continue
		}
		if err := a.addStateOwner(ctx, head, list.states); err != nil {
			return ownersList{}, err
		}
	}
	if a.owners.listed == nil {
		a.owners.listed = map[string]ownersList{}
	}
	a.owners.listed[namespace] = list
	return list, nil
}

// addStateOwner adds the instance of a state without a Machine.
func (a *Actuator) addStateOwner(ctx context.Context, head state.Head, states map[string]string) error {
	snapshot, err := a.store.Get(ctx, head.Key)
	if err != nil {
		return err
	}
	parsed, err := snapshot.State()
	if err != nil {
		return err
	}
	if out, err := (&lifecycle.Facts{State: parsed}).Outputs(); err == nil && out.ProviderID != "" {
		states[out.ProviderID] = head.Meta[strings.TrimPrefix(state.AnnotationMachine, state.Prefix)]
	}
	return nil
}
