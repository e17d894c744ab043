// Command vcsim runs a simulated vCenter until it is told to stop: one datacenter, a cluster of hosts, datastores, networks and virtual
// machines to clone, as govmomi's simulator makes them, a folder /DC0/vm/workers and a tag. It speaks TLS with a certificate of its own.
//
// Beside the API of a vCenter it serves tests what they look at: GET and DELETE /test/vm?path=PATH, and GET /test/tag.
package main

import (
	"crypto/tls"
	"encoding/pem"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"syscall"
	"time"

	_ "github.com/vmware/govmomi/lookup/simulator"
	_ "github.com/vmware/govmomi/pbm/simulator"
	"github.com/vmware/govmomi/simulator"
	_ "github.com/vmware/govmomi/sts/simulator"
	_ "github.com/vmware/govmomi/vapi/simulator"
	"github.com/vmware/govmomi/vim25/types"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "Address to serve on; port 0 takes a free one.")
	user := flag.String("username", "administrator@vsphere.local", "Who may log in.")
	password := flag.String("password", "simulated", "The password.")
	certificate := flag.String("certificate-file", "", "File that the certificate is written to, in PEM.")
	flag.Parse()
	if err := run(*listen, url.UserPassword(*user, *password), *certificate); err != nil {
		fmt.Fprintln(os.Stderr, "vcsim:", err)
		os.Exit(1)
	}
}

func run(listen string, login *url.Userinfo, certificate string) error {
	model := simulator.VPX()
	defer model.Remove()
	if err := model.Create(); err != nil {
		return fmt.Errorf("making the inventory: %w", err)
	}
	model.Service.Listen = &url.URL{Host: listen, User: login}
	model.Service.TLS = new(tls.Config)
	model.Service.RegisterEndpoints = true
	look := &inventory{}
	model.Service.HandleFunc("/test/vm", look.serveVM)
	model.Service.HandleFunc("/test/tag", look.serveTag)
	server := model.Service.NewServer()
	defer server.Close()
	defer server.CloseClientConnections()
	if err := look.open(server.URL); err != nil {
		return fmt.Errorf("preparing the inventory: %w", err)
	}
	if certificate != "" {
		content := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
		if err := os.WriteFile(certificate, content, 0o600); err != nil {
			return fmt.Errorf("writing the certificate: %w", err)
		}
	}
	stopped := make(chan struct{})
	defer close(stopped)
	go bootGuests(model.Service.Context, stopped)
	fmt.Println(server.URL.Host) // whoever started this waits for the line
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	<-stop
	return nil
}

// bootGuests plays the tools of guests: a virtual machine that is powered on reports an address soon after.
func bootGuests(ctx *simulator.Context, stop <-chan struct{}) {
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
				if vm.Runtime.PowerState != types.VirtualMachinePowerStatePoweredOn || vm.Guest == nil {
					return
				}
				// Told again and again, so that nobody waits for a change that came too early to be noticed.
				address := vm.Guest.IpAddress
				if address == "" {
					last++
					address = fmt.Sprintf("10.%d.%d.%d", last>>16&255, last>>8&255, last&255)
				}
				ctx.Update(vm, reported(address))
			})
		}
	}
}

// reported answers what the tools of a guest tell of its network.
func reported(ip string) []types.PropertyChange {
	address := []types.NetIpConfigInfoIpAddress{{IpAddress: ip, PrefixLength: 8, State: "preferred"}}
	route := types.NetIpRouteConfigInfoIpRoute{Network: "0.0.0.0", Gateway: types.NetIpRouteConfigInfoGateway{IpAddress: "10.0.0.1", Device: "0"}}
	return []types.PropertyChange{
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
