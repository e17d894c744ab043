package main

import (
	"context"

	"github.com/vmware/govmomi/vim25/types"
)

// configure gives a virtual machine settings that are not the defaults.
func (i *inventory) configure(ctx context.Context, path string) error {
	vm, err := i.finder.VirtualMachine(ctx, path)
	if err != nil {
		return err
	}
	yes, no := types.NewBool(true), types.NewBool(false)
	task, err := vm.Reconfigure(ctx, types.VirtualMachineConfigSpec{
		Firmware: string(types.GuestOsDescriptorFirmwareTypeEfi), NestedHVEnabled: yes, CpuHotAddEnabled: yes, CpuHotRemoveEnabled: yes,
		MemoryHotAddEnabled: yes,
		BootOptions:         &types.VirtualMachineBootOptions{EfiSecureBootEnabled: yes, BootDelay: 500, BootRetryDelay: 20000},
		Flags: &types.VirtualMachineFlagInfo{
			DiskUuidEnabled: yes, EnableLogging: yes, VirtualExecUsage: string(types.VirtualMachineFlagInfoVirtualExecUsageHvOn),
			VirtualMmuUsage: string(types.VirtualMachineFlagInfoVirtualMmuUsageOn),
		},
		Tools:              &types.ToolsConfigInfo{SyncTimeWithHost: yes, AfterPowerOn: no, AfterResume: yes, BeforeGuestStandby: yes, BeforeGuestShutdown: no},
		LatencySensitivity: &types.LatencySensitivity{Level: types.LatencySensitivitySensitivityLevelHigh},
		CpuAllocation: &types.ResourceAllocationInfo{
			Reservation: types.NewInt64(1000), Limit: types.NewInt64(8000), Shares: &types.SharesInfo{Level: types.SharesLevelCustom, Shares: 3000},
		},
		MemoryAllocation: &types.ResourceAllocationInfo{
			Reservation: types.NewInt64(16), Limit: types.NewInt64(4096), Shares: &types.SharesInfo{Level: types.SharesLevelHigh},
		},
	})
	if err != nil {
		return err
	}
	return task.Wait(ctx)
}

func settingsOf(config *types.VirtualMachineConfigInfo) settings {
	on := func(value *bool) bool { return value != nil && *value }
	found := settings{
		NestedVirtualization: on(config.NestedHVEnabled), CPUHotAdd: on(config.CpuHotAddEnabled), CPUHotRemove: on(config.CpuHotRemoveEnabled),
		MemoryHotAdd: on(config.MemoryHotAddEnabled), Logging: on(config.Flags.EnableLogging), Virtualization: config.Flags.VirtualExecUsage,
	}
	if config.BootOptions != nil {
		found.SecureBoot, found.BootDelay = on(config.BootOptions.EfiSecureBootEnabled), config.BootOptions.BootDelay
	}
	if config.Tools != nil {
		found.TimeSync = on(config.Tools.SyncTimeWithHost)
	}
	if config.LatencySensitivity != nil {
		found.LatencySensitivity = string(config.LatencySensitivity.Level)
	}
	if cpu := config.CpuAllocation; cpu != nil && cpu.Reservation != nil && cpu.Limit != nil && cpu.Shares != nil {
		found.CPUReservation, found.CPULimit, found.CPUShares = *cpu.Reservation, *cpu.Limit, cpu.Shares.Shares
	}
	if memory := config.MemoryAllocation; memory != nil && memory.Reservation != nil && memory.Limit != nil && memory.Shares != nil {
		found.MemoryReservation, found.MemoryLimit, found.MemoryShareLevel = *memory.Reservation, *memory.Limit, string(memory.Shares.Level)
	}
	return found
}
