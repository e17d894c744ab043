package main

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

// history is what was asked for, where the simulator does not keep it.
type history struct {
	mu sync.Mutex
	// clones are how virtual machines were cloned last, by their names.
	clones map[string]cloned
	// groups are those that virtual machines were in when they were powered on last.
	groups map[types.ManagedObjectReference][]string
	// denied are the names of methods that nobody may call.
	denied []string
}

// cloned is how a virtual machine was made of another one: of which snapshot, what became of the disks, and what else was asked for.
type cloned struct {
	snapshot, diskMoveType string
	config                 *types.VirtualMachineConfigSpec
}

// keep begins the history of what clients ask for.
func (h *history) keep(ctx *simulator.Context) {
	h.clones, h.groups = map[string]cloned{}, map[types.ManagedObjectReference][]string{}
	ctx.Map.Handler = func(ctx *simulator.Context, called *simulator.Method) (mo.Reference, types.BaseMethodFault) {
		var keep func()
		switch asked := called.Body.(type) { // take objects' locks before h.mu
		case *types.CloneVM_Task:
			made := cloned{snapshotOf(ctx, asked), asked.Spec.Location.DiskMoveType, asked.Spec.Config}
			keep = func() { h.clones[asked.Name] = made }
		case *types.PowerOnVM_Task:
			in := groupsOf(ctx, asked.This)
			keep = func() { h.groups[asked.This] = in }
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		if slices.Contains(h.denied, called.Name) {
			return nil, &types.NoPermission{Object: &called.This}
		}
		if keep != nil {
			keep()
		}
		return nil, nil
	}
	ctx.Map.AddHandler(h)
}

// deny refuses methods, and no others, from now on.
func (h *history) deny(methods []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.denied = methods
}

// Reference implements simulator.RegisterObject, as the other methods of objects do.
func (h *history) Reference() types.ManagedObjectReference {
	return types.ManagedObjectReference{Type: "History", Value: "history"}
}

// PutObject does nothing.
func (h *history) PutObject(*simulator.Context, mo.Reference) {}

// UpdateObject gives a clone, once it has its name, the notes and flags that were asked for. A vCenter does so too; the simulator leaves them out.
func (h *history) UpdateObject(_ *simulator.Context, object mo.Reference, _ []types.PropertyChange) {
	vm, ok := object.(*mo.VirtualMachine)
	if !ok {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	made := h.clones[vm.Name]
	if made.config == nil {
		return
	}
	vm.Config.Annotation = made.config.Annotation
	if made.config.Flags != nil {
		vm.Config.Flags = *made.config.Flags
	}
	made.config = nil
	h.clones[vm.Name] = made
}

// RemoveObject does nothing.
func (h *history) RemoveObject(*simulator.Context, types.ManagedObjectReference) {}

func snapshotOf(ctx *simulator.Context, asked *types.CloneVM_Task) (name string) {
	template, ok := ctx.Map.Get(asked.This).(*simulator.VirtualMachine)
	if !ok || asked.Spec.Snapshot == nil {
		return ""
	}
	ctx.WithLock(template, func() {
		if template.Snapshot != nil {
			name = nameOf(template.Snapshot.RootSnapshotList, *asked.Spec.Snapshot)
		}
	})
	return name
}

func groupsOf(ctx *simulator.Context, vm types.ManagedObjectReference) []string {
	var in []string
	for _, found := range ctx.Map.AllReference("ClusterComputeResource") {
		ctx.WithLock(found, func() {
			for _, one := range found.(*simulator.ClusterComputeResource).ConfigurationEx.(*types.ClusterConfigInfoEx).Group {
				if group, ok := one.(*types.ClusterVmGroup); ok && slices.Contains(group.Vm, vm) {
					in = append(in, group.Name)
				}
			}
		})
	}
	return in
}

// describe adds to a virtual machine what the history has of it.
func (h *history) describe(vm types.ManagedObjectReference, name string, described *virtualMachine) {
	h.mu.Lock()
	defer h.mu.Unlock()
	described.GroupsAtPowerOn = h.groups[vm]
	described.Snapshot, described.DiskMoveType = h.clones[name].snapshot, h.clones[name].diskMoveType
}

// snapshot makes one of a virtual machine, which becomes its current one.
func (i *inventory) snapshot(ctx context.Context, path, name string) error {
	vm, err := i.finder.VirtualMachine(ctx, path)
	if err != nil {
		return err
	}
	task, err := vm.CreateSnapshot(ctx, name, "", false, false)
	if err != nil {
		return err
	}
	return task.Wait(ctx)
}

// nameOf returns what a snapshot is called.
func nameOf(snapshots []types.VirtualMachineSnapshotTree, id types.ManagedObjectReference) string {
	for _, one := range snapshots {
		if one.Snapshot == id {
			return one.Name
		}
		if name := nameOf(one.ChildSnapshotList, id); name != "" {
			return name
		}
	}
	return ""
}

// makeGroup makes a group of virtual machines.
func (i *inventory) makeGroup(ctx context.Context, cluster, name string) error {
	return i.changeGroup(ctx, cluster, types.ClusterGroupSpec{
		ArrayUpdateSpec: types.ArrayUpdateSpec{Operation: types.ArrayUpdateOperationAdd},
		Info:            &types.ClusterVmGroup{ClusterGroupInfo: types.ClusterGroupInfo{Name: name}},
	})
}

// emptyGroup takes all virtual machines out of a group.
func (i *inventory) emptyGroup(ctx context.Context, cluster, name string) error {
	return i.changeGroup(ctx, cluster, types.ClusterGroupSpec{
		ArrayUpdateSpec: types.ArrayUpdateSpec{Operation: types.ArrayUpdateOperationEdit},
		Info:            &types.ClusterVmGroup{ClusterGroupInfo: types.ClusterGroupInfo{Name: name}},
	})
}

func (i *inventory) changeGroup(ctx context.Context, cluster string, spec types.ClusterGroupSpec) error {
	found, err := i.finder.ClusterComputeResource(ctx, cluster)
	if err != nil {
		return err
	}
	task, err := found.Reconfigure(ctx, &types.ClusterConfigSpecEx{GroupSpec: []types.ClusterGroupSpec{spec}}, true)
	if err != nil {
		return err
	}
	return task.Wait(ctx)
}

// members returns the names of the virtual machines in a group, of which there may be some no more.
func (i *inventory) members(ctx context.Context, cluster, name string) ([]string, error) {
	found, err := i.finder.ClusterComputeResource(ctx, cluster)
	if err != nil {
		return nil, err
	}
	config, err := found.Configuration(ctx)
	if err != nil {
		return nil, err
	}
	for _, one := range config.Group {
		group, ok := one.(*types.ClusterVmGroup)
		if !ok || group.Name != name {
			continue
		}
		names := []string{}
		for _, member := range group.Vm {
			known, err := object.NewVirtualMachine(i.client.Client, member).ObjectName(ctx)
			if err != nil {
				return nil, fmt.Errorf("the member %s: %w", member.Value, err)
			}
			names = append(names, known)
		}
		slices.Sort(names)
		return names, nil
	}
	return nil, &find.NotFoundError{}
}
