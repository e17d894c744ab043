// Package vcenter runs the simulated vCenter of test/vcenter/vcsim, and inspects it as an administrator would.
package vcenter

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	// Name is the vCenter's host name, also in its certificate.
	Name = "example.com"
	// Username and Password are the valid login.
	Username = "administrator@vsphere.local"
	Password = "simulated"
	// Template is a virtual machine to clone.
	Template = "DC0_C0_RP0_VM0"
	Cluster  = "/DC0/host/DC0_C0"
	// Folder is the folder for new virtual machines.
	Folder = "/DC0/vm/workers"

	startTimeout = time.Minute
	askTimeout   = time.Minute
	stopTimeout  = 10 * time.Second
)

type VM struct {
	UUID, Annotation, PowerState string
	// Address is the guest's, also before it reports it.
	Address         string
	CPUs, MemoryMiB int
	// Created is its creation, Changed the last change of its configuration.
	Created, Changed time.Time
	// ClonedFrom is the name of its source.
	ClonedFrom string
	// Networks and ResourcePool are inventory paths.
	Networks     []string
	ResourcePool string
	ExtraConfig  map[string]string
	// Settings are those that no providerSpec has.
	Settings map[string]any
	Disks    []Disk
	DisksGiB []int
	Tags     []string
	// Snapshot names the snapshot of which it is a linked clone; DiskMoveType is the clone request's.
	Snapshot, DiskMoveType string
	// GroupsAtPowerOn are its groups when it was last powered on.
	GroupsAtPowerOn []string
}

type Disk struct {
	SizeGiB int
	// File has the form [datastore] path.
	File string
}

// VCenter is a simulated vCenter. Its own proxy makes it reachable by name and without a port, which keys of Secrets
// require.
type VCenter struct {
	// Tag is the URN of an existing tag.
	Tag string

	certificate string
	process     *exec.Cmd
	proxy       *httptest.Server
	transport   *http.Transport
	client      *http.Client
}

// Start starts the program, which writes its certificate and log into dir.
func Start(ctx context.Context, program, dir string) (*VCenter, error) {
	v := &VCenter{certificate: filepath.Join(dir, "vcenter.pem")}
	address, err := v.launch(ctx, program, dir)
	if err != nil {
		return nil, fmt.Errorf("starting a simulated vCenter: %w", errors.Join(err, v.Close()))
	}
	if err := v.connect(address); err != nil {
		return nil, fmt.Errorf("connecting to the simulated vCenter: %w", errors.Join(err, v.Close()))
	}
	if _, err := v.Ask(ctx, http.MethodGet, "/test/tag", nil, &v.Tag); err != nil {
		return nil, errors.Join(err, v.Close())
	}
	return v, nil
}

// launch starts the process and returns the address that it prints when it serves.
func (v *VCenter) launch(ctx context.Context, program, dir string) (string, error) {
	process := exec.CommandContext(context.WithoutCancel(ctx), program, "--certificate-file", v.certificate,
		"--username", Username, "--password", Password)
	log, err := os.Create(filepath.Join(dir, "vcenter.log"))
	if err != nil {
		return "", err
	}
	defer log.Close() //nolint:errcheck // the process has its own handle
	process.Stderr = log
	output, err := process.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := process.Start(); err != nil {
		return "", fmt.Errorf("%w; run 'make tools'", err)
	}
	v.process = process
	late := time.AfterFunc(startTimeout, func() { _ = process.Process.Kill() })
	defer late.Stop()
	address, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("waiting for its address: %w; its log is %s", err, log.Name())
	}
	return strings.TrimSpace(address), nil
}

func (v *VCenter) connect(address string) error {
	certificate, err := os.ReadFile(v.certificate)
	if err != nil {
		return err
	}
	trusted := x509.NewCertPool()
	if !trusted.AppendCertsFromPEM(certificate) {
		return errors.New("its certificate is none")
	}
	v.proxy = forwardTo(address)
	through, err := url.Parse(v.proxy.URL)
	if err != nil {
		return err
	}
	v.transport = &http.Transport{Proxy: http.ProxyURL(through), TLSClientConfig: &tls.Config{RootCAs: trusted}}
	v.client = &http.Client{Transport: v.transport, Timeout: askTimeout}
	return nil
}

// Environment returns what a provider needs, besides credentials, to reach the vCenter.
func (v *VCenter) Environment() map[string]string {
	return map[string]string{"SSL_CERT_FILE": v.certificate, "HTTPS_PROXY": v.proxy.URL}
}

func (v *VCenter) Close() error {
	if v.transport != nil {
		v.transport.CloseIdleConnections()
	}
	if v.proxy != nil {
		v.proxy.CloseClientConnections()
		v.proxy.Close()
	}
	if v.process == nil {
		return nil
	}
	_ = v.process.Process.Signal(os.Interrupt)
	hung := time.AfterFunc(stopTimeout, func() { _ = v.process.Process.Kill() })
	defer hung.Stop()
	_ = v.process.Wait() // the exit status does not matter
	v.process = nil
	return nil
}

// VM returns a virtual machine by its inventory path, or nil.
func (v *VCenter) VM(ctx context.Context, path string) (*VM, error) {
	found := &VM{}
	there, err := v.Ask(ctx, http.MethodGet, "/test/vm", url.Values{"path": {path}}, found)
	if err != nil || !there {
		return nil, err
	}
	return found, nil
}

// Destroy deletes a virtual machine outside of the operator.
func (v *VCenter) Destroy(ctx context.Context, path string) error {
	return v.do(ctx, http.MethodDelete, url.Values{"path": {path}})
}

// PowerOff powers a virtual machine off without a shutdown.
func (v *VCenter) PowerOff(ctx context.Context, path string) error {
	return v.do(ctx, http.MethodPost, url.Values{"path": {path}, "do": {"powerOff"}})
}

// Attach attaches a volume, given as [datastore] path, to a virtual machine.
func (v *VCenter) Attach(ctx context.Context, path, file string) error {
	return v.do(ctx, http.MethodPost, url.Values{"path": {path}, "do": {"attach"}, "file": {file}})
}

// TagCluster adds a cluster's tag to a virtual machine, as OpenShift's actuator does.
func (v *VCenter) TagCluster(ctx context.Context, path, cluster string) error {
	return v.do(ctx, http.MethodPost, url.Values{"path": {path}, "do": {"tag"}, "cluster": {cluster}})
}

// Clone clones the template, as another actuator would, and powers the clone on.
func (v *VCenter) Clone(ctx context.Context, path string, cpus, memoryMiB int) error {
	return v.do(ctx, http.MethodPost, url.Values{
		"path": {path}, "do": {"clone"}, "from": {Template}, "cpus": {strconv.Itoa(cpus)},
		"memoryMiB": {strconv.Itoa(memoryMiB)},
	})
}

// MakeSnapshot makes a snapshot, which becomes the current one.
func (v *VCenter) MakeSnapshot(ctx context.Context, path, name string) error {
	return v.do(ctx, http.MethodPost, url.Values{"path": {path}, "do": {"snapshot"}, "name": {name}})
}

// MakeGroup creates a VM group in the cluster.
func (v *VCenter) MakeGroup(ctx context.Context, name string) error {
	_, err := v.Ask(ctx, http.MethodPost, "/test/group", groupQuery(name), nil)
	return err
}

// EmptyGroup removes all virtual machines from a group outside of the operator.
func (v *VCenter) EmptyGroup(ctx context.Context, name string) error {
	_, err := v.Ask(ctx, http.MethodDelete, "/test/group", groupQuery(name), nil)
	return err
}

// Group returns the sorted names of the virtual machines in a group, or nil if it does not exist.
func (v *VCenter) Group(ctx context.Context, name string) (members []string, err error) {
	_, err = v.Ask(ctx, http.MethodGet, "/test/group", groupQuery(name), &members)
	return members, err
}

func groupQuery(name string) url.Values { return url.Values{"cluster": {Cluster}, "name": {name}} }

// HasFile reports whether a file, given as [datastore] path, exists.
func (v *VCenter) HasFile(ctx context.Context, file string) (there bool, err error) {
	_, err = v.Ask(ctx, http.MethodGet, "/test/file", url.Values{"path": {file}}, &there)
	return there, err
}

// Deny has the vCenter refuse methods of its API, such as CloneVM_Task, and no others, until it is called again.
func (v *VCenter) Deny(ctx context.Context, methods ...string) error {
	_, err := v.Ask(ctx, http.MethodPost, "/test/deny", url.Values{"method": methods}, nil)
	return err
}

// Delay has guests report their addresses only so long after they boot.
func (v *VCenter) Delay(ctx context.Context, delay time.Duration) error {
	_, err := v.Ask(ctx, http.MethodPost, "/test/guests", url.Values{"delay": {delay.String()}}, nil)
	return err
}

// Calls returns how often what was requested, without tests. Names begin as those of test/calls.
func (v *VCenter) Calls(ctx context.Context) (made map[string]int, err error) {
	_, err = v.Ask(ctx, http.MethodGet, "/test/calls", nil, &made)
	return made, err
}

func (v *VCenter) do(ctx context.Context, method string, query url.Values) error {
	there, err := v.Ask(ctx, method, "/test/vm", query, nil)
	if err == nil && !there {
		err = fmt.Errorf("there is no virtual machine %s", query.Get("path"))
	}
	return err
}

// Ask calls the simulator, and returns false if the object does not exist.
func (v *VCenter) Ask(ctx context.Context, method, path string, query url.Values, into any) (bool, error) {
	address := url.URL{Scheme: "https", Host: Name, Path: path, RawQuery: query.Encode()}
	request, err := http.NewRequestWithContext(ctx, method, address.String(), nil)
	if err != nil {
		return false, err
	}
	response, err := v.client.Do(request)
	if err != nil {
		return false, err
	}
	defer response.Body.Close() //nolint:errcheck // it was only read
	content, err := io.ReadAll(response.Body)
	switch {
	case err != nil:
		return false, fmt.Errorf("%s %s: %w", method, path, err)
	case response.StatusCode == http.StatusNotFound:
		return false, nil
	case response.StatusCode != http.StatusOK:
		return false, fmt.Errorf("%s %s: %s: %s", method, path, response.Status, content)
	}
	if into == nil {
		return true, nil
	}
	return true, json.Unmarshal(content, into)
}
