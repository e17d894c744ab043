// Package vcenter runs the simulated vCenter of hack/tools/vcsim for tests, and looks at it as an administrator would.
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
	// Name is what the vCenter is called, in its certificate too.
	Name = "example.com"
	// Username and Password are who may log in.
	Username = "administrator@vsphere.local"
	Password = "simulated"
	// Template is a virtual machine that can be cloned.
	Template = "DC0_C0_RP0_VM0"
	// Cluster is the compute cluster.
	Cluster = "/DC0/host/DC0_C0"
	// Folder is where virtual machines may be made.
	Folder = "/DC0/vm/workers"

	startTimeout = time.Minute
	askTimeout   = time.Minute
	stopTimeout  = 10 * time.Second
)

// VM is a virtual machine.
type VM struct {
	UUID, Annotation, PowerState string
	CPUs, MemoryMiB              int
	// Created and Changed are when it was made, and when its configuration was written last.
	Created, Changed time.Time
	// ClonedFrom is the name of what it was cloned from.
	ClonedFrom string
	// Networks and ResourcePool are inventory paths.
	Networks     []string
	ResourcePool string
	ExtraConfig  map[string]string
	Disks        []Disk
	// Tags are URNs.
	Tags []string
	// Snapshot is what the snapshot is called that it is a linked clone of, and DiskMoveType how its disks were asked for.
	Snapshot, DiskMoveType string
	// GroupsAtPowerOn are the groups of virtual machines that it was in when it was powered on last.
	GroupsAtPowerOn []string
}

// Disk is a disk of a virtual machine.
type Disk struct {
	SizeGiB int
	// File is where it is, as [datastore] path.
	File string
}

// VCenter is a simulated vCenter. It is reached by its name and without a port, as keys of Secrets need, through a proxy of its own.
type VCenter struct {
	// Tag is the URN of a tag that is there.
	Tag string

	certificate string
	process     *exec.Cmd
	proxy       *httptest.Server
	transport   *http.Transport
	client      *http.Client
}

// Start starts the program as a process. Its certificate and its log are written into dir.
func Start(ctx context.Context, program, dir string) (*VCenter, error) {
	v := &VCenter{certificate: filepath.Join(dir, "vcenter.pem")}
	address, err := v.launch(ctx, program, dir)
	if err != nil {
		return nil, fmt.Errorf("starting a simulated vCenter: %w", errors.Join(err, v.Close()))
	}
	if err := v.connect(address); err != nil {
		return nil, fmt.Errorf("connecting to the simulated vCenter: %w", errors.Join(err, v.Close()))
	}
	if _, err := v.ask(ctx, http.MethodGet, "/test/tag", nil, &v.Tag); err != nil {
		return nil, errors.Join(err, v.Close())
	}
	return v, nil
}

// launch starts the process and returns its address, which it prints when it serves.
func (v *VCenter) launch(ctx context.Context, program, dir string) (string, error) {
	process := exec.CommandContext(context.WithoutCancel(ctx), program, "--certificate-file", v.certificate, "--username", Username, "--password", Password)
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

// Environment is what a provider needs besides its credentials to reach the vCenter.
func (v *VCenter) Environment() map[string]string {
	return map[string]string{"SSL_CERT_FILE": v.certificate, "HTTPS_PROXY": v.proxy.URL}
}

// Close stops it and waits for its end.
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
	_ = v.process.Wait() // how it ends is nobody's concern
	v.process = nil
	return nil
}

// VM returns a virtual machine by its inventory path, nil when there is none.
func (v *VCenter) VM(ctx context.Context, path string) (*VM, error) {
	found := &VM{}
	there, err := v.ask(ctx, http.MethodGet, "/test/vm", url.Values{"path": {path}}, found)
	if err != nil || !there {
		return nil, err
	}
	return found, nil
}

// Destroy deletes a virtual machine behind everybody's back.
func (v *VCenter) Destroy(ctx context.Context, path string) error {
	return v.do(ctx, http.MethodDelete, url.Values{"path": {path}})
}

// PowerOff pulls the plug of a virtual machine.
func (v *VCenter) PowerOff(ctx context.Context, path string) error {
	return v.do(ctx, http.MethodPost, url.Values{"path": {path}, "do": {"powerOff"}})
}

// Attach gives a virtual machine a volume that is a file, as [datastore] path.
func (v *VCenter) Attach(ctx context.Context, path, file string) error {
	return v.do(ctx, http.MethodPost, url.Values{"path": {path}, "do": {"attach"}, "file": {file}})
}

// TagCluster gives a virtual machine the tag of a cluster, as OpenShift's actuator does.
func (v *VCenter) TagCluster(ctx context.Context, path, cluster string) error {
	return v.do(ctx, http.MethodPost, url.Values{"path": {path}, "do": {"tag"}, "cluster": {cluster}})
}

// Clone makes a virtual machine of the template, as another actuator does, and powers it on.
func (v *VCenter) Clone(ctx context.Context, path string, cpus, memoryMiB int) error {
	return v.do(ctx, http.MethodPost, url.Values{
		"path": {path}, "do": {"clone"}, "from": {Template}, "cpus": {strconv.Itoa(cpus)}, "memoryMiB": {strconv.Itoa(memoryMiB)},
	})
}

// MakeSnapshot makes a snapshot of a virtual machine, which becomes its current one.
func (v *VCenter) MakeSnapshot(ctx context.Context, path, name string) error {
	return v.do(ctx, http.MethodPost, url.Values{"path": {path}, "do": {"snapshot"}, "name": {name}})
}

// MakeGroup makes a group of virtual machines of the cluster.
func (v *VCenter) MakeGroup(ctx context.Context, name string) error {
	_, err := v.ask(ctx, http.MethodPost, "/test/group", groupQuery(name), nil)
	return err
}

// EmptyGroup takes all virtual machines out of a group behind everybody's back.
func (v *VCenter) EmptyGroup(ctx context.Context, name string) error {
	_, err := v.ask(ctx, http.MethodDelete, "/test/group", groupQuery(name), nil)
	return err
}

// Group returns the names of the virtual machines in a group of the cluster, in their order, nil when there is no such group.
func (v *VCenter) Group(ctx context.Context, name string) (members []string, err error) {
	_, err = v.ask(ctx, http.MethodGet, "/test/group", groupQuery(name), &members)
	return members, err
}

func groupQuery(name string) url.Values { return url.Values{"cluster": {Cluster}, "name": {name}} }

// HasFile reports whether a file, named as [datastore] path, is there.
func (v *VCenter) HasFile(ctx context.Context, file string) (there bool, err error) {
	_, err = v.ask(ctx, http.MethodGet, "/test/file", url.Values{"path": {file}}, &there)
	return there, err
}

func (v *VCenter) do(ctx context.Context, method string, query url.Values) error {
	there, err := v.ask(ctx, method, "/test/vm", query, nil)
	if err == nil && !there {
		err = fmt.Errorf("there is no virtual machine %s", query.Get("path"))
	}
	return err
}

// ask returns false for what is not there.
func (v *VCenter) ask(ctx context.Context, method, path string, query url.Values, into any) (bool, error) {
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
