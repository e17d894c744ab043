package iac

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/actuators/reporting"
	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// checkState refuses a run with another Machine's state: a destroy would remove that Machine's
// instance.
func (t *task) checkState() error {
	if t.wanted == nil {
		return nil
	}
	why, err := t.facts.OfAnother(t.wanted.Module.Identities(), t.uid)
	if err != nil || why == "" {
		return err
	}
	return reporting.StateOfAnother(why)
}

// instanceToAdopt describes the instance to adopt, for people.
func (t *task) instanceToAdopt() string {
	providerID, id := t.adoptee()
	switch {
	case id != "":
		return "with the ID " + id
	case providerID != "":
		return "with the provider ID " + providerID
	}
	return "with the name " + t.key.Name
}

// checkBearer refuses an instance that carries another Machine's UID, unless this installation
// created it for a deleted Machine.
func (t *task) checkBearer(planned *engine.PlannedObjects) error {
	for address, object := range planned.Imported {
		owner, _ := t.wanted.Module.Identities().OwnerOf(address, object)
		own := owner.MachineUID == "" || owner.MachineUID == string(t.identityUID()) || owner.MachineUID == string(t.uid)
		if !own && (owner.Installation == "" || owner.Installation != string(t.actuator.installation.UID())) {
			return &refusedAdoption{why: (&module.ForeignError{Address: address, Owner: owner.MachineUID}).Error()}
		}
	}
	return nil
}

// proveIdentity returns the provider ID of the found instance, which must match the Machine's.
func (t *task) proveIdentity(planned *engine.PlannedObjects) (string, error) {
	if err := t.checkBearer(planned); err != nil {
		return "", err
	}
	var found string
	if raw, known := planned.Outputs[outputProviderID]; known && json.Unmarshal(raw, &found) != nil {
		return "", &refusedAdoption{why: "the module's output " + outputProviderID + " is not a string"}
	}
	wanted, instanceID := t.adoptee()
	switch {
	case found != "" && (wanted == "" || wanted == found):
		return found, nil
	case found != "":
		return "", &refusedAdoption{why: fmt.Sprintf("the instance found has the provider ID %s, but the Machine has %s",
			found, wanted)}
	}
	id := cmp.Or(wanted[strings.LastIndex(wanted, "/")+1:], instanceID)
	shows := func(address string) bool {
		return t.wanted.Module.MayBeInstance(address) && module.Names(planned.Imported[address], id)
	}
	if id == "" || !slices.ContainsFunc(slices.Collect(maps.Keys(planned.Imported)), shows) {
		return "", &refusedAdoption{why: "nothing proves that the object found is the instance " + t.instanceToAdopt()}
	}
	return wanted, nil
}

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
