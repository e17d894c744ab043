package main

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"
)

// guests plays the tools of guests: a virtual machine that is powered on reports an address after a delay, and one that is not reports
// nothing.
type guests struct{ delay atomic.Int64 }

// serve sets the delay.
func (g *guests) serve(w http.ResponseWriter, r *http.Request) {
	delay, err := time.ParseDuration(r.URL.Query().Get("delay"))
	g.delay.Store(int64(delay))
	answer(w, nil, err)
}

func (g *guests) play(ctx *simulator.Context, stop <-chan struct{}) {
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
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
					boot := vm.Summary.Runtime.BootTime
					if vm.Guest.IpAddress == "" && boot != nil && time.Since(*boot) < time.Duration(g.delay.Load()) {
						break
					}
					// Reported again and again, so that no client misses a change that came before it listened.
					ctx.Update(vm, report(addressOf(vm.Self)))
				}
			})
		}
	}
}

// addressOf returns the address of a guest.
func addressOf(vm types.ManagedObjectReference) string {
	number, _ := strconv.Atoi(strings.TrimPrefix(vm.Value, "vm-"))
	return fmt.Sprintf("10.%d.%d.%d", number>>16&255, number>>8&255, number&255)
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
