package main

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/hashicorp/terraform-plugin-sdk/helper/schema"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// asked is what a virtual machine is made with that the provider knows nothing of.
type asked struct {
	// snapshot is the one of the template that it is a linked clone of.
	snapshot string
	// group is one of virtual machines, which it is in before it is powered on for the first time.
	group string
	// config is what the clone has from its first moment, so that it never exists without its owner.
	config types.VirtualMachineConfigSpec
}

// seen is what the provider has last read of a virtual machine.
type seen struct {
	name  string
	power types.VirtualMachinePowerState
}

const powerField = "power_state"

// extend gives the provider's resource what is asked for beyond its own attributes.
func (v *vcenter) extend(machines *schema.Resource) {
	machines.Schema[groupField] = &schema.Schema{
		Type: schema.TypeString, Optional: true, Description: "The group of virtual machines of its compute cluster that it is a member of.",
	}
	machines.Schema[powerField] = &schema.Schema{
		Type: schema.TypeString, Computed: true, Description: "poweredOn, poweredOff or suspended.",
	}
	clone := machines.Schema["clone"].Elem.(*schema.Resource)
	clone.Schema["snapshot"] = &schema.Schema{
		Type: schema.TypeString, Optional: true, Description: "The managed object ID of the snapshot of the template that it becomes a linked clone of.",
	}
	machines.Create = v.readPowerState(v.makeAsAsked(machines.Create)) // the provider's own create ends with its own read
	machines.Read = v.readPowerState(v.readGroup(machines.Read))
	machines.Update = v.leaveOff(v.moveToGroup(machines.Update))
	machines.Delete = v.keepDisksOfOthers(v.leaveGroup(machines.Delete))
}

// makeAsAsked returns a create of a virtual machine during which calls adds what is asked for.
func (v *vcenter) makeAsAsked(create schema.CreateFunc) schema.CreateFunc {
	return func(d *schema.ResourceData, meta any) error {
		wanted := &asked{group: d.Get(groupField).(string)}
		wanted.snapshot, _ = d.Get("clone.0.snapshot").(string)
		wanted.config.Annotation = d.Get("annotation").(string)
		wanted.config.Flags = &types.VirtualMachineFlagInfo{DiskUuidEnabled: types.NewBool(d.Get("enable_disk_uuid").(bool))}
		if wanted.group != "" {
			if err := v.findGroupOf(d.Get("resource_pool_id").(string), wanted.group); err != nil {
				return err // before anything is made
			}
		}
		name := d.Get("name").(string)
		v.asked.Store(name, wanted)
		defer v.asked.Delete(name)
		return create(d, meta)
	}
}

func (v *vcenter) findGroupOf(pool, group string) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	client, err := v.vim()
	if err != nil {
		return err
	}
	cluster, err := clusterOfPool(ctx, client, types.ManagedObjectReference{Type: "ResourcePool", Value: pool})
	if err != nil {
		return err
	}
	_, err = findGroup(ctx, client, cluster, group)
	return err
}

// calls is between the provider and vCenter. The provider clones, configures and powers on in one go: there is no other place for what belongs between.
type calls struct {
	soap.RoundTripper
	v     *vcenter
	reads *reads
}

func (c calls) RoundTrip(ctx context.Context, request, response soap.HasFault) error {
	switch body := request.(type) {
	case *methods.RetrievePropertiesBody:
		err := c.next(ctx, request, response)
		c.v.note(response.(*methods.RetrievePropertiesBody).Res)
		return err
	case *methods.CloneVM_TaskBody:
		wanted, ok := c.v.asked.Load(body.Req.Name)
		if !ok {
			break
		}
		cloneOf(wanted.(*asked).snapshot, &body.Req.Spec)
		body.Req.Spec.Config = &wanted.(*asked).config
		err := c.next(ctx, request, response)
		if soap.IsSoapFault(err) {
			return fmt.Errorf("vCenter refuses it: %w", err) // unlike a task that fails, or a response that is lost
		}
		return err
	case *methods.PowerOnVM_TaskBody:
		if _, ok := c.v.off.Load(body.Req.This.Value); ok {
			return c.changeNothing(ctx, body.Req.This, response.(*methods.PowerOnVM_TaskBody))
		}
		if group := c.v.groupOf(body.Req.This); group != "" {
			if err := c.v.join(ctx, group, body.Req.This); err != nil {
				return fmt.Errorf("the virtual machine is not powered on before it is in its group: %w", err)
			}
		}
	}
	return c.next(ctx, request, response)
}

func (c calls) next(ctx context.Context, request, response soap.HasFault) error {
	return c.reads.repeat(ctx, c.RoundTripper, request, response)
}

// groupOf returns the group that is asked for a virtual machine that is being made, or "". The provider has read it since it was cloned.
func (v *vcenter) groupOf(vm types.ManagedObjectReference) string {
	read, ok := v.seen.Load(vm.Value)
	if !ok {
		return ""
	}
	wanted, ok := v.asked.Load(read.(seen).name)
	if !ok {
		return ""
	}
	return wanted.(*asked).group
}

// changeNothing returns a task that changes nothing in place of one that powers a virtual machine on.
func (c calls) changeNothing(ctx context.Context, vm types.ManagedObjectReference, response *methods.PowerOnVM_TaskBody) error {
	var done methods.ReconfigVM_TaskBody
	if err := c.next(ctx, &methods.ReconfigVM_TaskBody{Req: &types.ReconfigVM_Task{This: vm}}, &done); err != nil {
		return err
	}
	response.Res = &types.PowerOnVM_TaskResponse{Returnval: done.Res.Returnval}
	return nil
}

// guestWaits are how many minutes an update waits for the addresses of a guest that it has powered on.
var guestWaits = []string{"wait_for_guest_net_timeout", "wait_for_guest_ip_timeout"}

// leaveOff returns an update that leaves a virtual machine off, and waits for no address of it. The provider's powers it on, even where an
// interrupted create has not configured it.
func (v *vcenter) leaveOff(update schema.UpdateFunc) schema.UpdateFunc {
	return func(d *schema.ResourceData, meta any) (err error) {
		if d.Get(powerField) != string(types.VirtualMachinePowerStatePoweredOff) {
			return update(d, meta)
		}
		moid := d.Get("moid")
		v.off.Store(moid, nil)
		defer v.off.Delete(moid)
		for _, wait := range guestWaits {
			minutes := d.Get(wait)
			defer func() { err = errors.Join(err, d.Set(wait, minutes)) }()
			if err := d.Set(wait, 0); err != nil {
				return err
			}
		}
		return update(d, meta)
	}
}

// cloneOf makes a linked clone of a snapshot, or else a full one, whose disks have no parents, so that they can grow.
func cloneOf(snapshot string, spec *types.VirtualMachineCloneSpec) {
	switch {
	case snapshot != "":
		spec.Snapshot = &types.ManagedObjectReference{Type: "VirtualMachineSnapshot", Value: snapshot}
		spec.Location.DiskMoveType = string(types.VirtualMachineRelocateDiskMoveOptionsCreateNewChildDiskBacking)
	case spec.Location.DiskMoveType == "":
		spec.Location.DiskMoveType = string(types.VirtualMachineRelocateDiskMoveOptionsMoveAllDiskBackingsAndConsolidate)
	}
}

// readPowerState returns a create or read of a virtual machine that also sets whether it is on, as the provider has just read.
func (v *vcenter) readPowerState(read func(*schema.ResourceData, any) error) func(*schema.ResourceData, any) error {
	return func(d *schema.ResourceData, meta any) error {
		if err := read(d, meta); err != nil || d.Id() == "" {
			return err
		}
		read, ok := v.seen.Load(d.Get("moid"))
		if !ok {
			return fmt.Errorf("vCenter does not say whether the virtual machine %s is on", d.Id())
		}
		return d.Set(powerField, string(read.(seen).power))
	}
}

// note keeps what is needed of virtual machines that were read as a whole.
func (v *vcenter) note(read *types.RetrievePropertiesResponse) {
	if read == nil {
		return
	}
	for _, object := range read.Returnval {
		var vm seen
		for _, property := range object.PropSet {
			switch value := property.Val.(type) {
			case string:
				if property.Name == "name" {
					vm.name = value
				}
			case types.VirtualMachineRuntimeInfo:
				vm.power = value.PowerState
			}
		}
		if vm.power != "" {
			v.seen.Store(object.Obj.Value, vm)
		}
	}
}

func (v *vcenter) join(ctx context.Context, group string, vm types.ManagedObjectReference) error {
	client, err := v.vim()
	if err != nil {
		return err
	}
	cluster, err := clusterOfMachine(ctx, client, vm)
	if err != nil {
		return err
	}
	return joinGroup(ctx, client, cluster, group, vm)
}

// snapshot finds the snapshot of a template that linked clones are made of: that of a name, or the current one. There may be none.
func snapshot(v *vcenter) *schema.Resource {
	text := func(required, computed bool) *schema.Schema {
		return &schema.Schema{Type: schema.TypeString, Required: required, Optional: !required && !computed, Computed: computed}
	}
	return &schema.Resource{
		Schema: map[string]*schema.Schema{
			"virtual_machine_uuid": text(true, false),
			// a name, or names with slashes between
			"name": text(false, false),
			// empty where there is none, or several
			"snapshot_id": text(false, true),
		},
		Read: func(d *schema.ResourceData, _ any) error {
			ctx, cancel := context.WithTimeout(context.Background(), timeout)
			defer cancel()
			client, err := v.vim()
			if err != nil {
				return err
			}
			uuid := d.Get("virtual_machine_uuid").(string)
			found, err := object.NewSearchIndex(client).FindByUuid(ctx, nil, uuid, true, nil)
			if err == nil && found == nil {
				err = errors.New("it is not there")
			}
			if err != nil {
				return fmt.Errorf("looking for the template with the UUID %s: %w", uuid, err)
			}
			id, err := snapshotOf(ctx, object.NewVirtualMachine(client, found.Reference()), d.Get("name").(string))
			if err != nil {
				return err
			}
			d.SetId(uuid)
			return d.Set("snapshot_id", id)
		},
	}
}

func snapshotOf(ctx context.Context, template *object.VirtualMachine, name string) (string, error) {
	var read mo.VirtualMachine
	if err := template.Properties(ctx, template.Reference(), []string{"snapshot"}, &read); err != nil {
		return "", fmt.Errorf("reading the snapshots of the template: %w", err)
	}
	if read.Snapshot == nil {
		return "", nil
	}
	if name == "" {
		if read.Snapshot.CurrentSnapshot == nil {
			return "", nil
		}
		return read.Snapshot.CurrentSnapshot.Value, nil
	}
	found, err := template.FindSnapshot(ctx, name)
	if err != nil {
		log.Printf("[WARN] %v", err)
		return "", nil
	}
	return found.Value, nil
}
