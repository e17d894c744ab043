package iac

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/state"
	"github.com/machine-iac/machine-iac-operator/test/builder"
	"github.com/machine-iac/machine-iac-operator/test/long"
	"github.com/machine-iac/machine-iac-operator/test/shortdir"
)

// vcenterName is the name in the certificate of the simulated vCenter.
const vcenterName = "example.com"

// vcenter is a simulated one, and a bench whose engines reach it by its name.
type vcenter struct {
	*bench
	http *http.Client
	tag  string
}

// simulated is what the simulator reports of a virtual machine.
type simulated struct {
	UUID, Annotation, PowerState string
	CPUs                         int
	ExtraConfig                  map[string]string
	// Settings are those that no providerSpec has.
	Settings map[string]any
	DisksGiB []int
	Tags     []string
	// What it was cloned of, and the groups that it was in when it was powered on last.
	Snapshot, DiskMoveType string
	GroupsAtPowerOn        []string
}

func newVCenter(t *testing.T) *vcenter {
	t.Helper()
	return newVCenterReached(t, func(b *bench, certificate string, proxy *url.URL) {
		b.environment = map[string]string{"SSL_CERT_FILE": certificate, "HTTPS_PROXY": proxy.String()}
	})
}

// newVCenterReached has reach say to the bench which authority has signed the simulated vCenter's
// certificate, and which proxy leads to it.
func newVCenterReached(t *testing.T, reach func(b *bench, certificate string, proxy *url.URL)) *vcenter {
	t.Helper()
	long.Test(t)
	parallel(t)
	certificate := filepath.Join(t.TempDir(), "vcenter.pem")
	proxy := forwardTo(t, simulator(t, certificate))
	namespace, err := plane.Namespace(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	v := &vcenter{bench: &bench{
		t: t, client: plane.Client, namespace: namespace, clock: clocktesting.NewFakePassiveClock(time.Now()),
	}}
	reach(v.bench, certificate, proxy)
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM([]byte(readAll(t, certificate)))
	transport := &http.Transport{Proxy: http.ProxyURL(proxy), TLSClientConfig: &tls.Config{RootCAs: trusted}}
	t.Cleanup(transport.CloseIdleConnections)
	v.http = &http.Client{Transport: transport, Timeout: time.Minute}
	v.ask(http.MethodGet, "/test/tag", &v.tag)
	v.secret("vsphere", map[string]string{vcenterName + ".username": "administrator@vsphere.local", vcenterName + ".password": "simulated"})
	v.secret("user-data", map[string]string{"userData": `{"ignition":{"version":"3.2.0"}}`})
	v.start(shortdir.New(t), "owner-1")
	return v
}

// simulator starts a simulated vCenter and returns its address.
func simulator(t *testing.T, certificate string) string {
	t.Helper()
	command := exec.CommandContext(context.WithoutCancel(t.Context()), repository(t, "bin", "vcsim"), "--certificate-file", certificate)
	command.Stderr = os.Stderr
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatalf("%v; run 'make tools'", err)
	}
	t.Cleanup(func() {
		_ = command.Process.Signal(os.Interrupt)
		hung := time.AfterFunc(10*time.Second, func() { _ = command.Process.Kill() })
		defer hung.Stop()
		_ = command.Wait()
	})
	address, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		t.Fatalf("waiting for the simulated vCenter: %v", err)
	}
	return strings.TrimSpace(address)
}

// forwardTo starts a proxy that leads every connection to one address. So the vCenter has a name
// and no port, as keys of Secrets need.
func forwardTo(t *testing.T, address string) *url.URL {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect || r.Host != vcenterName+":443" {
			http.Error(w, "only the vCenter is here", http.StatusForbidden)
			return
		}
		target, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		client, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			_ = target.Close()
			return
		}
		// Written once the connection is ours: whoever asked sends nothing before.
		_, _ = io.WriteString(client, "HTTP/1.1 200 OK\r\n\r\n")
		go relay(client, target)
		go relay(target, client)
	}))
	t.Cleanup(server.Close)
	proxy, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	return proxy
}

func relay(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	_ = to.Close()
}

func readAll(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// ask calls the simulator, and returns false for what is not there.
func (v *vcenter) ask(method, path string, into any) bool {
	v.t.Helper()
	request, err := http.NewRequestWithContext(v.t.Context(), method, "https://"+vcenterName+path, nil)
	if err != nil {
		v.t.Fatal(err)
	}
	response, err := v.http.Do(request)
	if err != nil {
		v.t.Fatal(err)
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusNotFound:
		return false
	case http.StatusOK:
	default:
		content, _ := io.ReadAll(response.Body)
		v.t.Fatalf("%s %s: %s: %s", method, path, response.Status, content)
	}
	if err := json.NewDecoder(response.Body).Decode(into); err != nil {
		v.t.Fatal(err)
	}
	return true
}

// vm returns the instance of a Machine, nil when there is none.
func (v *vcenter) vm(machine *machinev1beta1.Machine) *simulated {
	v.t.Helper()
	found := &simulated{}
	if !v.ask(http.MethodGet, pathOf(machine), found) {
		return nil
	}
	return found
}

func pathOf(machine *machinev1beta1.Machine) string {
	return "/test/vm?path=" + url.QueryEscape("/DC0/vm/workers/"+machine.Name)
}

func (v *vcenter) secret(name string, content map[string]string) {
	v.t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: v.namespace, Name: name}, StringData: content}
	if err := plane.Create(v.t.Context(), secret); err != nil {
		v.t.Fatal(err)
	}
}

func (v *vcenter) spec(mods ...func(map[string]any)) map[string]any {
	spec := map[string]any{
		"apiVersion": "machine.openshift.io/v1beta1", "kind": "VSphereMachineProviderSpec",
		"credentialsSecret": map[string]any{"name": "vsphere"}, "userDataSecret": map[string]any{"name": "user-data"},
		"template": "DC0_C0_RP0_VM0", "numCPUs": 2, "numCoresPerSocket": 1, "memoryMiB": 2048, "diskGiB": 12, "snapshot": "",
		"dataDisks": []any{map[string]any{"name": "images", "sizeGiB": 3}},
		"network":   map[string]any{"devices": []any{map[string]any{"networkName": "VM Network"}}},
		"tagIDs":    []any{v.tag},
		"workspace": map[string]any{
			"server": vcenterName, "datacenter": "DC0", "folder": "/DC0/vm/workers", "datastore": "/DC0/datastore/LocalDS_0",
			"resourcePool": "/DC0/host/DC0_C0/Resources",
		},
	}
	for _, mod := range mods {
		mod(spec)
	}
	return spec
}

func (v *vcenter) machine() *machinev1beta1.Machine {
	machine := builder.In(v.namespace, builder.Machine())
	machine.Spec.ProviderSpec.Value = builder.ProviderSpec(v.spec())
	return v.apply(machine)
}

// check waits for a drift check and returns it.
func (v *vcenter) check(machine *machinev1beta1.Machine) *record.DriftCheck {
	v.t.Helper()
	v.clock.SetTime(v.clock.Now().Add(2 * time.Hour))
	now := v.clock.Now().UTC()
	deadline := time.Now().Add(patience)
	for time.Now().Before(deadline) {
		// An Update starts the check, and reports what one has found.
		_ = v.Update(v.t.Context(), machine)
		snapshot, err := v.store.Get(v.t.Context(), state.KeyFor(machine.Namespace, machine.UID))
		if err != nil {
			v.t.Fatal(err)
		}
		known, err := record.Read(snapshot.Meta)
		if err != nil {
			v.t.Fatal(err)
		}
		if known.Check != nil && !known.Check.At.Before(now) {
			return known.Check
		}
		time.Sleep(pause)
	}
	v.t.Fatal("no drift check in time")
	return nil
}

// reports waits until the Machine has what its guest reports.
func (v *vcenter) reports(machine *machinev1beta1.Machine) {
	v.t.Helper()
	deadline := time.Now().Add(patience)
	for !hasAddress(machine) {
		if time.Now().After(deadline) {
			v.t.Fatalf("addresses %v; want what the guest reports", machine.Status.Addresses)
		}
		v.clock.SetTime(v.clock.Now().Add(21 * time.Second))
		if err := v.drive(v.Update, machine); err != nil {
			v.t.Fatal(err)
		}
		time.Sleep(pause)
	}
}

func TestAVirtualMachineFromCreateToDelete(t *testing.T) {
	v := newVCenter(t)
	machine := v.machine()
	v.bring(machine)
	made := v.vm(machine)
	if made == nil {
		t.Fatal("there is no virtual machine in the folder")
	}
	v.reports(machine)
	v.looksAsAskedFor(machine, made)
	if found := v.check(machine); found.Result != record.DriftNone {
		t.Errorf("right after the create a check finds %s: %s", found.Result, found.Summary)
	}

	machine.Spec.ProviderSpec.Value = builder.ProviderSpec(v.spec(func(spec map[string]any) { spec["numCPUs"] = 4 }))
	err := v.drive(v.Update, machine)
	if !isReason(err, machinev1beta1.UnsupportedChangeMachineError) || !strings.Contains(err.Error(), "Only tagIDs can be changed on a virtual machine that exists") {
		t.Errorf("Update with more processors: %v, want UnsupportedChange in the module's words", err)
	}
	machine.Spec.ProviderSpec.Value = builder.ProviderSpec(v.spec(func(spec map[string]any) { spec["tagIDs"] = []any{} }))
	if err := v.drive(v.Update, machine); err != nil {
		t.Errorf("Update without the tag: %v", err)
	}
	if changed := v.vm(machine); changed.UUID != made.UUID || changed.CPUs != 2 || len(changed.Tags) > 0 {
		t.Errorf("after the changes it is %+v, want the same without a tag", changed)
	}

	v.lose(machine, v.owner)
	v.bring(machine)
	if found := v.vm(machine); found.UUID != made.UUID || *machine.Spec.ProviderID != "vsphere://"+made.UUID {
		t.Errorf("after the loss of its state the Machine has %s, want the virtual machine that it had", *machine.Spec.ProviderID)
	}
	if found := v.check(machine); found.Result != record.DriftNone {
		t.Errorf("right after the import a check finds %s: %s", found.Result, found.Summary)
	}

	if err := v.drive(v.Delete, machine); err != nil {
		t.Fatal(err)
	}
	if left := v.vm(machine); left != nil {
		t.Errorf("%+v outlived its Machine", left)
	}
}

// looksAsAskedFor compares a virtual machine, and what is published of it, with the Machine.
func (v *vcenter) looksAsAskedFor(machine *machinev1beta1.Machine, made *simulated) {
	v.t.Helper()
	if id := machine.Spec.ProviderID; id == nil || *id != "vsphere://"+made.UUID {
		v.t.Errorf("providerID %v, want that of %s", id, made.UUID)
	}
	reported := slices.ContainsFunc(machine.Status.Addresses, func(a corev1.NodeAddress) bool {
		return a.Type == corev1.NodeInternalIP && strings.HasPrefix(a.Address, "10.")
	})
	if named := (corev1.NodeAddress{Type: corev1.NodeInternalDNS, Address: machine.Name}); !reported || !slices.Contains(machine.Status.Addresses, named) {
		v.t.Errorf("addresses %v, want what the guest reports, and the name", machine.Status.Addresses)
	}
	if !strings.Contains(made.Annotation, string(machine.UID)) || made.PowerState != "poweredOn" {
		v.t.Errorf("it is %s with the annotation %q, want it on, with the UID %s", made.PowerState, made.Annotation, machine.UID)
	}
	if made.CPUs != 2 || !slices.Equal(made.DisksGiB, []int{12, 3}) || !slices.Equal(made.Tags, []string{v.tag}) {
		v.t.Errorf("it has %d processors, disks of %v GiB and the tags %v", made.CPUs, made.DisksGiB, made.Tags)
	}
	if got := made.ExtraConfig["guestinfo.ignition.config.data"]; got != base64.StdEncoding.EncodeToString([]byte(`{"ignition":{"version":"3.2.0"}}`)) {
		v.t.Errorf("Ignition is given %q", got)
	}
	if got := made.ExtraConfig["guestinfo.hostname"]; got != machine.Name {
		v.t.Errorf("the guest is given the name %q", got)
	}
}

func TestAVirtualMachineThatWasDeletedIsMissed(t *testing.T) {
	v := newVCenter(t)
	machine := v.machine()
	v.bring(machine)
	var nothing any
	if !v.ask(http.MethodDelete, pathOf(machine), &nothing) {
		t.Fatal("there is no virtual machine to delete")
	}
	if found := v.check(machine); found.Result != record.DriftMissing {
		t.Errorf("a check finds %s: %s; want it to miss the instance", found.Result, found.Summary)
	}
	if there, err := v.Exists(t.Context(), machine); there || err != nil {
		t.Errorf("Exists: %t, %v; want false", there, err)
	}
	if err := v.drive(v.Delete, machine); err != nil {
		t.Errorf("Delete of what is gone: %v", err)
	}
}

// People remove a template when they have made a newer one.
func TestAVirtualMachineOutlivesItsTemplateAndIsDeleted(t *testing.T) {
	v := newVCenter(t)
	machine := v.machine()
	v.bring(machine)
	var nothing any
	if !v.ask(http.MethodDelete, "/test/vm?path="+url.QueryEscape("/DC0/vm/DC0_C0_RP0_VM0"), &nothing) {
		t.Fatal("there is no template to remove")
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: v.namespace, Name: "user-data"}}
	if err := v.client.Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	machine.Spec.ProviderSpec.Value = builder.ProviderSpec(v.spec(func(spec map[string]any) { spec["numCPUs"] = -1 }))
	if err := v.drive(v.Delete, machine); err != nil {
		t.Fatal(err)
	}
	if left := v.vm(machine); left != nil {
		t.Errorf("%+v outlived its Machine", left)
	}
}

// TestAVirtualMachineOutlivesWhatItWasMadeOf removes the template, as people do after each new
// image.
func TestAVirtualMachineOutlivesWhatItWasMadeOf(t *testing.T) {
	v := newVCenter(t)
	machine := v.machine()
	v.bring(machine)
	made := v.vm(machine)
	var nothing any
	if !v.ask(http.MethodDelete, "/test/vm?path="+url.QueryEscape("/DC0/vm/DC0_C0_RP0_VM0"), &nothing) {
		t.Fatal("there is no template to delete")
	}
	if found := v.check(machine); found.Result != record.DriftNone {
		t.Errorf("without its template a check finds %s: %s", found.Result, found.Summary)
	}
	machine.Spec.ProviderSpec.Value = builder.ProviderSpec(v.spec(func(spec map[string]any) { spec["tagIDs"] = []any{} }))
	if err := v.drive(v.Update, machine); err != nil {
		t.Errorf("Update without the tag: %v", err)
	}
	if changed := v.vm(machine); changed.UUID != made.UUID || len(changed.Tags) > 0 {
		t.Errorf("after the change it is %+v, want the same without a tag", changed)
	}
	machine.Spec.ProviderSpec.Value = builder.ProviderSpec(v.spec(func(spec map[string]any) {
		spec["network"] = map[string]any{"devices": []any{map[string]any{"networkName": "VM Network"}, map[string]any{"networkName": "VM Network"}}}
	}))
	if err := v.drive(v.Update, machine); !isReason(err, machinev1beta1.UnsupportedChangeMachineError) {
		t.Errorf("Update with another device: %v, want UnsupportedChange", err)
	}
	machine.Spec.ProviderSpec.Value = builder.ProviderSpec(v.spec(func(spec map[string]any) { spec["tagIDs"] = []any{} }))
	if !v.ask(http.MethodDelete, pathOf(machine), &nothing) {
		t.Fatal("there is no virtual machine to delete")
	}
	if found := v.check(machine); found.Result != record.DriftMissing {
		t.Errorf("without the virtual machine a check finds %s: %s; want it to miss the instance", found.Result, found.Summary)
	}
}

// The provider's words for a path that leads nowhere must be those of module.yaml.
func TestAVirtualMachineThatALookupDoesNotFindIsMadeOrNotMissed(t *testing.T) {
	v := newVCenter(t)
	machine := v.machine()
	v.lose(machine, v.owner)
	v.bring(machine)
	var nothing any
	if !v.ask(http.MethodDelete, pathOf(machine), &nothing) {
		t.Fatal("there is no virtual machine after a create that had got lost before it made one")
	}
	v.lose(machine, v.owner)
	if err := v.drive(v.Delete, machine); err != nil {
		t.Errorf("Delete of what a lookup does not find: %v", err)
	}
}

// TestAVirtualMachineOfAnOpenShiftCluster has the tag that the installer made, its networks from
// its own compute cluster, and the zone of that.
func TestAVirtualMachineOfAnOpenShiftCluster(t *testing.T) {
	v := newVCenterReached(t, func(b *bench, certificate string, proxy *url.URL) {
		b.environment = map[string]string{"SSL_CERT_FILE": certificate, "HTTPS_PROXY": proxy.String()}
		b.cluster = &module.Cluster{Platform: "VSphere", FailureDomains: []module.FailureDomain{
			{Name: "a", Region: "east", Zone: "east-1", Server: vcenterName, Datacenter: "DC0", ComputeCluster: "/DC0/host/DC0_C0", Datastore: "/DC0/datastore/LocalDS_0"},
			{Name: "b", Region: "east", Zone: "east-2", Server: vcenterName, Datacenter: "DC0", ComputeCluster: "/DC0/host/DC0_C1", Datastore: "/DC0/datastore/LocalDS_0"},
		}}
	})
	machine := v.machine()
	v.bring(machine)
	if made := v.vm(machine); made == nil || !slices.Equal(made.Tags, []string{v.tag}) {
		t.Fatalf("where the installer made no tag of the cluster there is %+v, want the tag of the providerSpec only", made)
	}
	if machine.Labels[labelRegion] != "east" || machine.Labels[labelZone] != "east-1" {
		t.Errorf("labels %v, want those of the failure domain", machine.Labels)
	}
	var nothing any
	v.ask(http.MethodPost, "/test/vm?path="+url.QueryEscape("/DC0/vm/DC0_C0_RP0_VM0")+"&do=tag&cluster="+builder.ClusterID, &nothing)
	second := v.machine()
	v.bring(second)
	if made := v.vm(second); made == nil || len(made.Tags) != 2 {
		t.Errorf("with a tag of the cluster there is %+v, want it with that tag too", made)
	}
	lost := builder.In(v.namespace, builder.Machine())
	lost.Spec.ProviderSpec.Value = builder.ProviderSpec(v.spec(func(spec map[string]any) {
		spec["network"] = map[string]any{"devices": []any{map[string]any{"networkName": "nowhere"}}}
	}))
	if err := v.drive(v.Create, v.apply(lost)); !isReason(err, machinev1beta1.InvalidConfigurationMachineError) || !strings.Contains(err.Error(), `unable to get network for "nowhere"`) {
		t.Errorf("Create with a network that is not there: %v, want that its configuration is invalid", err)
	}
}
