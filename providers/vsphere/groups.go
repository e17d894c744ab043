package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/hashicorp/terraform-plugin-sdk/helper/schema"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

const (
	// maxGroupEdits is how often a group is written again that somebody else has written meanwhile.
	maxGroupEdits = 5
	// groupPause is between two of these, and between two attempts to get the lock.
	groupPause = 500 * time.Millisecond

	groupField = "vm_group"
)

// leaveGroup returns a delete of a virtual machine that takes it out of its group first. It is called when the virtual machine has stopped.
func (v *vcenter) leaveGroup(remove schema.DeleteFunc) schema.DeleteFunc {
	return func(d *schema.ResourceData, meta any) error {
		if group := d.Get(groupField).(string); group != "" {
			if err := v.changeGroups(d.Id(), group, ""); err != nil {
				return fmt.Errorf("taking the virtual machine, which is not deleted, out of its group: %w", err)
			}
		}
		return remove(d, meta)
	}
}

// moveToGroup returns an update of a virtual machine that begins with its group.
func (v *vcenter) moveToGroup(update schema.UpdateFunc) schema.UpdateFunc {
	return func(d *schema.ResourceData, meta any) error {
		if d.HasChange(groupField) {
			before, after := d.GetChange(groupField)
			if err := v.changeGroups(d.Id(), before.(string), after.(string)); err != nil {
				d.Partial(true) // or the state would have what was not done
				return err
			}
		}
		return update(d, meta)
	}
}

// readGroup returns a read of a virtual machine that also looks whether it is in the group that its state names.
func (v *vcenter) readGroup(read schema.ReadFunc) schema.ReadFunc {
	return func(d *schema.ResourceData, meta any) error {
		group := d.Get(groupField).(string)
		if err := read(d, meta); err != nil || d.Id() == "" || group == "" {
			return err
		}
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		client, vm, cluster, err := v.clusterOf(ctx, d.Id())
		if err != nil || vm == nil {
			return err
		}
		found, err := findGroup(ctx, client, cluster, group)
		if missing := (*noGroupError)(nil); err != nil && !errors.As(err, &missing) {
			return err
		}
		if found == nil || !slices.Contains(found.Vm, *vm) {
			group = ""
		}
		return d.Set(groupField, group)
	}
}

// changeGroups takes a virtual machine out of one group and puts it into another, of the compute cluster that it is in. An empty name is none.
func (v *vcenter) changeGroups(uuid, before, after string) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	client, vm, cluster, err := v.clusterOf(ctx, uuid)
	if err != nil || vm == nil {
		return err
	}
	if after != "" {
		if err := joinGroup(ctx, client, cluster, after, *vm); err != nil {
			return err
		}
	}
	if before == "" {
		return nil
	}
	err = editGroup(ctx, client, cluster, before, func(members []types.ManagedObjectReference) []types.ManagedObjectReference {
		return slices.DeleteFunc(members, func(member types.ManagedObjectReference) bool { return member == *vm })
	})
	if missing := (*noGroupError)(nil); errors.As(err, &missing) {
		return nil // with all that was in it
	}
	return err
}

// clusterOf returns a virtual machine by its UUID, nil where there is none, and its compute cluster.
func (v *vcenter) clusterOf(ctx context.Context, uuid string) (*vim25.Client, *types.ManagedObjectReference, types.ManagedObjectReference, error) {
	var none types.ManagedObjectReference
	client, err := v.vim()
	if err != nil {
		return nil, nil, none, err
	}
	found, err := object.NewSearchIndex(client).FindByUuid(ctx, nil, uuid, true, nil)
	if err != nil {
		return nil, nil, none, fmt.Errorf("looking for the virtual machine with the UUID %s: %w", uuid, err)
	}
	if found == nil {
		return client, nil, none, nil
	}
	vm := found.Reference()
	cluster, err := clusterOfMachine(ctx, client, vm)
	return client, &vm, cluster, err
}

func clusterOfMachine(ctx context.Context, client *vim25.Client, vm types.ManagedObjectReference) (types.ManagedObjectReference, error) {
	var read mo.VirtualMachine
	if err := object.NewCommon(client, vm).Properties(ctx, vm, []string{"resourcePool"}, &read); err != nil {
		return types.ManagedObjectReference{}, fmt.Errorf("looking for the resource pool of the virtual machine %s: %w", vm.Value, err)
	}
	if read.ResourcePool == nil {
		return types.ManagedObjectReference{}, fmt.Errorf("the virtual machine %s is in no resource pool", vm.Value)
	}
	return clusterOfPool(ctx, client, *read.ResourcePool)
}

func clusterOfPool(ctx context.Context, client *vim25.Client, pool types.ManagedObjectReference) (types.ManagedObjectReference, error) {
	var read mo.ResourcePool
	if err := object.NewCommon(client, pool).Properties(ctx, pool, []string{"owner"}, &read); err != nil {
		return types.ManagedObjectReference{}, fmt.Errorf("looking for the compute cluster of the resource pool %s: %w", pool.Value, err)
	}
	if read.Owner.Type != "ClusterComputeResource" {
		return types.ManagedObjectReference{}, fmt.Errorf("the resource pool %s is in no compute cluster, and only those have groups of virtual machines: name a pool of a cluster, or no vmGroup", pool.Value)
	}
	return read.Owner, nil
}

// joinGroup puts a virtual machine into a group.
func joinGroup(ctx context.Context, client *vim25.Client, cluster types.ManagedObjectReference, group string, vm types.ManagedObjectReference) error {
	return editGroup(ctx, client, cluster, group, func(members []types.ManagedObjectReference) []types.ManagedObjectReference {
		if slices.Contains(members, vm) {
			return members
		}
		return append(members, vm)
	})
}

// editGroup writes a group until it is as edit returns it. vCenter takes a group whole, and whoever writes it at the same time writes over this: runs on
// one host take turns, and what was written is read again.
func editGroup(ctx context.Context, client *vim25.Client, cluster types.ManagedObjectReference, group string,
	edit func([]types.ManagedObjectReference) []types.ManagedObjectReference,
) error {
	unlock, err := takeTurn(ctx)
	if err != nil {
		return fmt.Errorf("waiting for other runs to write groups of virtual machines: %w", err)
	}
	defer unlock()
	for range maxGroupEdits {
		found, readErr := findGroup(ctx, client, cluster, group)
		if readErr != nil {
			return readErr
		}
		want := edit(slices.Clone(found.Vm))
		if slices.Equal(want, found.Vm) {
			return nil
		}
		if err = writeGroup(ctx, client, cluster, found, want); err == nil {
			continue
		}
		if paused := pause(ctx); paused != nil {
			return errors.Join(err, paused)
		}
	}
	if err == nil {
		err = errors.New("others write it again and again")
	}
	return fmt.Errorf("writing the group of virtual machines %s: %w", group, err)
}

func writeGroup(ctx context.Context, client *vim25.Client, cluster types.ManagedObjectReference, group *types.ClusterVmGroup, members []types.ManagedObjectReference) error {
	spec := &types.ClusterConfigSpecEx{GroupSpec: []types.ClusterGroupSpec{{
		ArrayUpdateSpec: types.ArrayUpdateSpec{Operation: types.ArrayUpdateOperationEdit},
		Info: &types.ClusterVmGroup{
			ClusterGroupInfo: types.ClusterGroupInfo{Name: group.Name, UserCreated: group.UserCreated}, Vm: members,
		},
	}}}
	task, err := object.NewClusterComputeResource(client, cluster).Reconfigure(ctx, spec, true)
	if err != nil {
		return err
	}
	return task.Wait(ctx)
}

// noGroupError says that a compute cluster has no group of virtual machines of a name.
type noGroupError struct{ cluster, group string }

func (e *noGroupError) Error() string {
	return fmt.Sprintf("the compute cluster %s has no group of virtual machines %q: make it, or write the name of one that is there", e.cluster, e.group)
}

func findGroup(ctx context.Context, client *vim25.Client, cluster types.ManagedObjectReference, name string) (*types.ClusterVmGroup, error) {
	var read mo.ClusterComputeResource
	if err := object.NewCommon(client, cluster).Properties(ctx, cluster, []string{"name", "configurationEx"}, &read); err != nil {
		return nil, fmt.Errorf("reading the groups of the compute cluster %s: %w", cluster.Value, err)
	}
	config, ok := read.ConfigurationEx.(*types.ClusterConfigInfoEx)
	if !ok {
		return nil, fmt.Errorf("reading the groups of the compute cluster %s: vCenter returns none", read.Name)
	}
	for _, one := range config.Group {
		if group, ok := one.(*types.ClusterVmGroup); ok && group.Name == name {
			return group, nil
		}
	}
	return nil, &noGroupError{cluster: read.Name, group: name}
}

// takeTurn locks this program's own file, as each run is a process of it. The lock ends with its process.
func takeTurn(ctx context.Context) (unlock func(), err error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	file, err := os.Open(program)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = file.Close() }, nil
		}
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = pause(ctx)
		}
		if err != nil {
			return nil, errors.Join(err, file.Close())
		}
	}
}

func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(groupPause):
		return nil
	}
}
