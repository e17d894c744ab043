package iac

import (
	"context"
	"fmt"
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// instanceOwners maps provider IDs to the Machines and states of a namespace.
type instanceOwners struct {
	// machines are the names of Machines by provider ID and UID.
	machines map[string]map[types.UID]string
	// states are the names of deleted Machines whose state has the instance, by provider ID.
	states map[string]string
}

// checkOtherOwners refuses to adopt an instance that another Machine, or a deleted Machine's state,
// refers to. A Machine created after the list was read refuses on its own.
func (t *task) checkOtherOwners(ctx context.Context, providerID string) error {
	if providerID == "" {
		return nil
	}
	list, err := t.actuator.ownersIn(ctx, t.key.Namespace)
	if err != nil {
		return err
	}
	for uid, name := range list.machines[providerID] {
		if uid != t.uid {
			return &refusedAdoption{why: fmt.Sprintf("Machines %s and %s both refer to instance %s; remove the providerID of "+
				"the one that does not own it, or delete that one "+
				"after removing its finalizer", t.key.Name, name, providerID)}
		}
	}
	if name, known := list.states[providerID]; known {
		return &refusedAdoption{why: fmt.Sprintf("the state of the deleted Machine %s has instance %s; see kubectl "+
			"machine orphans", name, providerID)}
	}
	return nil
}

func (a *Actuator) ownersIn(ctx context.Context, namespace string) (instanceOwners, error) {
	list := instanceOwners{machines: map[string]map[types.UID]string{}, states: map[string]string{}}
	heads, err := a.store.List(ctx, namespace)
	if err != nil {
		return instanceOwners{}, err
	}
	machines := &machinev1beta1.MachineList{}
	if err := a.client.List(ctx, machines, client.InNamespace(namespace)); err != nil {
		return instanceOwners{}, fmt.Errorf("listing Machines: %w", err)
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
			return instanceOwners{}, err
		}
	}
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
