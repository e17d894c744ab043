// Command vcsim runs a simulated vCenter until it is interrupted: one datacenter, a cluster of hosts, datastores, networks and virtual
// machines to clone, as govmomi's simulator makes them, a folder /DC0/vm/workers and a tag. It speaks TLS with a certificate of its own.
//
// Beside the API of a vCenter it serves tests what they check, and what they change directly in the infrastructure:
//
//	GET    /test/tag                                the tag
//	GET    /test/vm?path=PATH                       what a virtual machine is
//	DELETE /test/vm?path=PATH                       delete it
//	POST   /test/vm?path=PATH&do=powerOff           pull its plug
//	POST   /test/vm?path=PATH&do=tag&cluster=NAME   give it the tag of a cluster, as OpenShift's installer calls it
//	POST   /test/vm?path=PATH&do=clone&from=VM&cpus=N&memoryMiB=N   make it of another one, and power it on
//	POST   /test/vm?path=PATH&do=attach&file=FILE   attach a volume that is this file on a datastore
//	POST   /test/vm?path=PATH&do=attach&file=FILE&controller=own   the same, on a SCSI controller of its own
//	POST   /test/vm?path=PATH&do=snapshot&name=NAME make a snapshot of it
//	GET    /test/group?cluster=PATH&name=NAME       the names of the virtual machines in a group of a compute cluster
//	POST   /test/group?cluster=PATH&name=NAME       make the group
//	DELETE /test/group?cluster=PATH&name=NAME       take all out of it
//	GET    /test/file?path=FILE                     whether a datastore has the file
//	GET    /test/sessions                           how many sessions of both APIs are open, without the two of this program
//	POST   /test/deny?method=NAME&method=NAME       refuse these methods of the API, and no others
//	POST   /test/guests?delay=DURATION              have guests report their addresses that long after they boot
//	GET    /test/calls                              how often what was requested
//	POST   /test/slow?method=NAME&delay=DURATION    delay a method, and return how many requests of it were there at once
package main

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"syscall"
	"time"

	_ "github.com/vmware/govmomi/lookup/simulator"
	_ "github.com/vmware/govmomi/pbm/simulator"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/simulator/esx"
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
	reportHardwareVersion(model.Service.Context)
	model.Service.Listen = &url.URL{Host: listen, User: login}
	model.Service.TLS = new(tls.Config)
	model.Service.RegisterEndpoints = true
	look := &inventory{}
	look.history.keep(model.Service.Context)
	model.Service.HandleFunc("/test/vm", look.serveVM)
	model.Service.HandleFunc("/test/tag", look.serveTag)
	model.Service.HandleFunc("/test/file", look.serveFile)
	model.Service.HandleFunc("/test/group", look.serveGroup)
	model.Service.HandleFunc("/test/deny", look.serveDeny)
	model.Service.HandleFunc("/test/sessions", func(w http.ResponseWriter, r *http.Request) {
		soap, err := look.sessions(r.Context())
		answer(w, soap+restSessions(model.Service.ServeMux)-2, err)
	})
	played := &guests{}
	model.Service.HandleFunc("/test/guests", played.serve)
	counted := &calls{made: map[string]int{}, slow: map[string]time.Duration{}, pending: map[string]int{}, most: map[string]int{}}
	model.Service.HandleFunc("/test/calls", counted.serve)
	model.Service.HandleFunc("/test/slow", counted.serveSlow)
	server := model.Service.NewServer()
	server.Config.Handler = counted.around(server.Config.Handler)
	defer server.Close()
	defer server.CloseClientConnections()
	if err := look.open(context.Background(), server.URL); err != nil {
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
	go played.play(model.Service.Context, stopped)
	fmt.Println(server.URL.Host) // whoever started this waits for the line
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	<-stop
	return nil
}

// reportHardwareVersion makes the hosts name the hardware version of the virtual machines, as a vCenter does; the simulator's own response has none, and
// a client that compares the two would upgrade a virtual machine that runs.
func reportHardwareVersion(ctx *simulator.Context) {
	for _, found := range ctx.Map.AllReference("EnvironmentBrowser") {
		browser := found.(*simulator.EnvironmentBrowser)
		browser.QueryConfigOptionResponse.Returnval = &types.VirtualMachineConfigOption{
			Version: esx.HardwareVersion, DefaultDevice: esx.VirtualDevice, HardwareOptions: types.VirtualHardwareOption{HwVersion: int32(types.MustParseHardwareVersion(esx.HardwareVersion))},
		}
	}
}
