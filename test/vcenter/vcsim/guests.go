package main

import (
	"fmt"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"
)

// playGuests plays the tools of guests: a virtual machine that is powered on reports an address soon after, and one that is not reports
// nothing.
func playGuests(ctx *simulator.Context, stop <-chan struct{}) {
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	last := 1
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
		}
		for _, entity := range ctx.Map.All("VirtualMachine") {
			vm, ok := entity.(*simulator.VirtualMachine)
			if !ok {
				continue
			}
			ctx.WithLock(vm, func() {
				switch {
				case vm.Guest == nil:
				case vm.Runtime.PowerState != types.VirtualMachinePowerStatePoweredOn && vm.Guest.IpAddress != "":
					ctx.Update(vm, silence())
				case vm.Runtime.PowerState == types.VirtualMachinePowerStatePoweredOn:
					// Reported again and again, so that no client misses a change that came before it listened.
					address := vm.Guest.IpAddress
					if address == "" {
						last++
						address = fmt.Sprintf("10.%d.%d.%d", last>>16&255, last>>8&255, last&255)
					}
					ctx.Update(vm, report(address))
				}
			})
		}
	}
}

// report returns what the tools of a guest report of its network.
func report(ip string) []types.PropertyChange {
	address := []types.NetIpConfigInfoIpAddress{{IpAddress: ip, PrefixLength: 8, State: "preferred"}}
	route := types.NetIpRouteConfigInfoIpRoute{Network: "0.0.0.0", Gateway: types.NetIpRouteConfigInfoGateway{IpAddress: "10.0.0.1", Device: "0"}}
	return []types.PropertyChange{
		{Name: "guest.toolsRunningStatus", Val: string(types.VirtualMachineToolsRunningStatusGuestToolsRunning)},
		{Name: "guest.ipAddress", Val: ip},
		{Name: "summary.guest.ipAddress", Val: ip},
		{Name: "guest.ipStack", Val: types.ArrayOfGuestStackInfo{GuestStackInfo: []types.GuestStackInfo{{
			IpRouteConfig: &types.NetIpRouteConfigInfo{IpRoute: []types.NetIpRouteConfigInfoIpRoute{route}},
		}}}},
		{Name: "guest.net", Val: types.ArrayOfGuestNicInfo{GuestNicInfo: []types.GuestNicInfo{{
			Network: "VM Network", IpAddress: []string{ip}, Connected: true, DeviceConfigId: 4000,
			IpConfig: &types.NetIpConfigInfo{IpAddress: address},
		}}}},
	}
}

// silence is the report of a guest that does not run.
func silence() []types.PropertyChange {
	return []types.PropertyChange{
		{Name: "guest.toolsRunningStatus", Val: string(types.VirtualMachineToolsRunningStatusGuestToolsNotRunning)},
		{Name: "guest.ipAddress", Val: ""},
		{Name: "summary.guest.ipAddress", Val: ""},
		{Name: "guest.ipStack", Val: types.ArrayOfGuestStackInfo{}},
		{Name: "guest.net", Val: types.ArrayOfGuestNicInfo{}},
	}
}
