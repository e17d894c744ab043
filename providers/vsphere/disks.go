package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/hashicorp/terraform-plugin-sdk/helper/schema"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

// maxDetaches is how often disks are detached that were attached meanwhile.
const maxDetaches = 3

// keepDisksOfOthers returns a delete of a virtual machine that begins with detaching the disks that its state does not know. The provider itself
// detaches those that it has found, which are on the controllers that it counts, and were there when it read the virtual machine; vCenter deletes the
// others with it.
func (v *vcenter) keepDisksOfOthers(remove schema.DeleteFunc) schema.DeleteFunc {
	return func(d *schema.ResourceData, meta any) error {
		defer v.seen.Delete(d.Get("moid"))
		patience := time.Duration(d.Get("shutdown_wait_timeout").(int)) * time.Minute
		ctx, cancel := context.WithTimeout(context.Background(), patience+timeout)
		defer cancel()
		if err := v.detachUnknown(ctx, d.Id(), knownDisks(d), patience); err != nil {
			return fmt.Errorf("detaching the disks that others have attached to the virtual machine, which is not deleted: %w", err)
		}
		return remove(d, meta)
	}
}

// knownDisks returns the UUIDs of the disks in a virtual machine's state: its own, and those that the provider detaches.
func knownDisks(d *schema.ResourceData) map[string]bool {
	known := map[string]bool{}
	for _, one := range d.Get("disk").([]any) {
		if uuid, _ := one.(map[string]any)["uuid"].(string); uuid != "" {
			known[uuid] = true
		}
	}
	return known
}

// detachUnknown stops a virtual machine, so that nothing writes any more, and detaches the disks that are not known. Their files stay.
func (v *vcenter) detachUnknown(ctx context.Context, uuid string, known map[string]bool, patience time.Duration) error {
	client, err := v.vim()
	if err != nil {
		return err
	}
	found, err := object.NewSearchIndex(client).FindByUuid(ctx, nil, uuid, true, nil)
	if err != nil {
		return fmt.Errorf("looking for the virtual machine with the UUID %s: %w", uuid, err)
	}
	if found == nil {
		return nil // the provider says so
	}
	vm := object.NewVirtualMachine(client, found.Reference())
	if err := stop(ctx, vm, patience); err != nil {
		return fmt.Errorf("stopping it: %w", err)
	}
	for range maxDetaches {
		devices, err := vm.Device(ctx)
		if err != nil {
			return fmt.Errorf("reading its disks: %w", err)
		}
		foreign := unknown(devices, known)
		if len(foreign) == 0 {
			return nil
		}
		for _, disk := range foreign {
			log.Printf("[WARN] The disk %s of the virtual machine %s is not in its state: it is detached, and its file stays", devices.Name(disk), uuid)
		}
		if err := vm.RemoveDevice(ctx, true, foreign...); err != nil {
			return err
		}
	}
	return errors.New("others attach disks again and again")
}

// unknown returns the disks that are not known. One without a UUID cannot be.
func unknown(devices object.VirtualDeviceList, known map[string]bool) []types.BaseVirtualDevice {
	var foreign []types.BaseVirtualDevice
	for _, device := range devices.SelectByType((*types.VirtualDisk)(nil)) {
		// The provider makes disks of this kind only.
		backing, ok := device.GetVirtualDevice().Backing.(*types.VirtualDiskFlatVer2BackingInfo)
		if !ok || !known[backing.Uuid] {
			foreign = append(foreign, device)
		}
	}
	return foreign
}

// stop shuts a guest down, and turns the virtual machine off where that takes longer than patience or cannot be asked of it.
func stop(ctx context.Context, vm *object.VirtualMachine, patience time.Duration) error {
	var read mo.VirtualMachine
	if err := vm.Properties(ctx, vm.Reference(), []string{"runtime.powerState", "guest.toolsRunningStatus"}, &read); err != nil {
		return err
	}
	if read.Runtime.PowerState == types.VirtualMachinePowerStatePoweredOff {
		return nil
	}
	runs := read.Guest != nil && read.Guest.ToolsRunningStatus == string(types.VirtualMachineToolsRunningStatusGuestToolsRunning)
	if runs && read.Runtime.PowerState == types.VirtualMachinePowerStatePoweredOn && vm.ShutdownGuest(ctx) == nil {
		waiting, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		if vm.WaitForPowerState(waiting, types.VirtualMachinePowerStatePoweredOff) == nil {
			return nil
		}
	}
	off, err := vm.PowerOff(ctx)
	if err != nil {
		return err
	}
	if err := off.Wait(ctx); err != nil {
		if state, again := vm.PowerState(ctx); again == nil && state == types.VirtualMachinePowerStatePoweredOff {
			return nil // it went down by itself meanwhile
		}
		return err
	}
	return nil
}
