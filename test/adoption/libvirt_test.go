//go:build e2e_libvirt

package adoption

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-iac/machine-iac-operator/test/libvirt"
)

// guests tests the module libvirt with domains that virsh creates.
type guests struct {
	*world
	*libvirt.Host
}

func newGuests(t *testing.T) *guests {
	t.Helper()
	host, err := libvirt.Open(t.Context(), "adoption-"+strings.ToLower(t.Name()))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("domains are of type %s: %s", host.DomainType, host.Reason)
	t.Cleanup(func() {
		if err := host.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return &guests{world: newWorld(t, "libvirt"), Host: host}
}

func (g *guests) virsh(arguments ...string) string {
	g.t.Helper()
	out, err := g.Virsh(g.t.Context(), arguments...)
	if err != nil {
		g.t.Fatal(err)
	}
	return out
}

// domain creates a domain, and returns its UUID.
func (g *guests) domain(name, description string) string {
	g.t.Helper()
	uuid, err := g.MakeDomain(g.t.Context(), name, description)
	if err != nil {
		g.t.Fatal(err)
	}
	return uuid
}

func (g *guests) machine(name string, fields map[string]any) {
	g.t.Helper()
	spec := map[string]any{
		"apiVersion": "libvirtproviderconfig.openshift.io/v1beta1", "kind": "LibvirtMachineProviderConfig",
		"domainMemory": libvirt.Memory, "domainVcpu": 1, "uri": g.URI, "autostart": false, "ignKey": "",
		"ignition":             map[string]any{"userDataSecret": "worker-user-data"},
		"volume":               map[string]any{"poolName": g.Name, "baseVolumeID": "base"},
		"networkInterfaceName": g.Name,
	}
	maps.Copy(spec, fields)
	g.render(machineOf(name, spec), clusterID, nil, g.Environment())
}

// image creates the volume that Machines boot from.
func (g *guests) image() {
	g.t.Helper()
	g.virsh("vol-create-as", g.Name, "base", "64M", "--format", "qcow2")
}

// destroyed destroys everything in the state, and fails if anything is left of worker-1.
func (g *guests) destroyed() {
	g.t.Helper()
	g.destroy()
	if left := g.virsh("list", "--all", "--name") + g.virsh("vol-list", g.Name); strings.Contains(left, "worker-1") {
		g.t.Errorf("after the destroy there is %s", left)
	}
}

func TestADomainIsMadeAsRequested(t *testing.T) {
	g := newGuests(t)
	g.image()
	g.machine("worker-1", map[string]any{
		"volume": map[string]any{"poolName": g.Name, "baseVolumeID": "base", "volumeSize": "128Mi"},
	})
	g.apply()
	volume := "worker-1-5e0ad6a1-6f9f-4f39-a4b5-000000000008"
	file := filepath.Join(g.Pool, volume+".ign")
	for text, wants := range map[string][]string{
		g.virsh("dumpxml", "worker-1"): {
			"<domain type='" + g.DomainType + "'", "<memory unit='KiB'>65536</memory>", ">1</vcpu>",
			"<source network='" + g.Name + "'", "volume='" + volume + "'", "name=opt/com.coreos/config,file=" + file,
		},
		g.virsh("vol-dumpxml", volume, "--pool", g.Name): {
			"<capacity unit='bytes'>134217728</capacity>", "<path>" + filepath.Join(g.Pool, "base") + "</path>",
		},
		g.output("provider_id"): {`"libvirt:///` + g.virsh("domuuid", "worker-1") + `"`},
		g.output("addresses"):   {`[{"address":"worker-1","type":"InternalDNS"},{"address":"worker-1","type":"Hostname"}]`},
	} {
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("there is no %s in %s", want, text)
			}
		}
	}
	if given, err := os.ReadFile(file); err != nil || !strings.Contains(string(given), `"data:,worker-1"`) {
		t.Errorf("the user data is %s, %v; want the hostname in it", given, err)
	}
	g.virsh("destroy", "worker-1")
	if diff := cmp.Diff([]string{"libvirt_domain.this update"}, changes(g.plan())); diff != "" {
		t.Errorf("the plan for a domain that is off (-want +got):\n%s", diff)
	}
	g.apply()
	if state := g.virsh("domstate", "worker-1"); state != "running" {
		t.Errorf("after the apply the domain is %s", state)
	}
	g.destroyed()
}

func TestADomainWhoseCreateWasLostIsFound(t *testing.T) {
	g := newGuests(t)
	g.image()
	// QEMU does not start without this file, but libvirt has the domain by then.
	late := filepath.Join(g.Dir, "late.ign")
	g.machine("worker-1", map[string]any{"ignKey": late, "ignition": nil})
	err := g.terraform.Apply(t.Context())
	if err == nil || !strings.Contains(err.Error(), "error creating libvirt domain") {
		t.Fatalf("without its user data a domain is made, or fails with %v", err)
	}
	uuid := g.virsh("domuuid", "worker-1")
	g.write(late, []byte(`{"ignition":{"version":"3.2.0"}}`))
	g.forget()
	g.link(g.module.LookupFiles()...)
	g.apply()
	got := g.virsh("domuuid", "worker-1") + " " + g.virsh("domstate", "worker-1")
	if want := uuid + " running"; got != want {
		t.Errorf("the domain is %s, want %s", got, want)
	}
	g.link()
	if left := changes(g.plan()); len(left) > 0 {
		t.Errorf("after the apply a plan has %v", left)
	}
	g.destroyed()
}

func TestADomainIsAdoptedAsItIs(t *testing.T) {
	g := newGuests(t)
	uuid := g.domain("worker-1", "")
	before := g.virsh("dumpxml", "worker-1")
	g.machine("worker-1", nil)
	g.adopt("libvirt:///"+uuid, "")
	plan := g.plan()
	want := []string{"libvirt_domain.this import", "libvirt_ignition.user_data[0] create", "libvirt_volume.root import",
		"terraform_data.made_with create"}
	if diff := cmp.Diff(want, changes(plan)); diff != "" {
		t.Errorf("the plan (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string(nil), warnings(plan)); diff != "" {
		t.Errorf("what differs (-want +got):\n%s", diff)
	}
	g.apply()
	if diff := cmp.Diff(before, g.virsh("dumpxml", "worker-1")); diff != "" {
		t.Errorf("the adoption has changed the domain (-before +after):\n%s", diff)
	}
	g.link()
	if left := changes(g.plan()); len(left) > 0 {
		t.Errorf("a plan after the adoption has changes %v", left)
	}
	g.destroyed()
}

func TestADomainOfOthersIsRefused(t *testing.T) {
	g := newGuests(t)
	other := g.domain("worker-1", "Machine openshift-machine-api/worker-1 5e0ad6a1 of the cluster other")
	g.machine("worker-1", nil)
	g.adopt("libvirt:///"+other, "")
	g.refuses("The domain " + other + " belongs to the cluster other, and the Machine to the cluster demo-x7k2p.")
	g.machine("worker-2", nil)
	g.refuses("The domain " + other + " is called worker-1, and not as the Machine, worker-2")
	g.adopt("libvirt:///00000000-0000-4000-8000-000000000000", "")
	_, err := g.tryPlan()
	if err == nil || !g.module.AdoptAbsent(
		strings.Join(strings.Fields(strings.ReplaceAll(err.Error(), "│", " ")), " ")) {
		t.Errorf("adopting a domain that is not there says %v; want module.yaml to know that for absence", err)
	}
}

func TestWhatDiffersOfADomainIsSaid(t *testing.T) {
	g := newGuests(t)
	uuid := g.domain("worker-1", "")
	g.machine("worker-1", map[string]any{"domainMemory": 128, "domainVcpu": 2})
	g.adopt("libvirt:///"+uuid, "")
	want := []string{
		"providerSpec.domainMemory: 128 is requested, the domain has 64 MiB and keeps them.",
		"providerSpec.domainVcpu: 2 is requested, the domain has 1 and keeps them.",
	}
	if diff := cmp.Diff(want, warnings(g.plan())); diff != "" {
		t.Errorf("what differs (-want +got):\n%s", diff)
	}
}

func TestDomainsAreListed(t *testing.T) {
	g := newGuests(t)
	uuid := g.domain("worker-1", "Machine openshift-machine-api/worker-1 5e0ad6a1-6f9f of the cluster "+clusterID)
	g.domain("worker-2", "Machine openshift-machine-api/worker-2 5e0ad6a1-6f9f of the cluster other")
	g.domain("worker-3", "")
	g.machine("worker-9", nil)
	g.link(g.module.InventoryFiles()...)
	var found []listed
	output(t, g.plan(), "inventory", &found)
	mine := slices.DeleteFunc(found, func(one listed) bool { return one.ProviderID != "libvirt:///"+uuid })
	if diff := cmp.Diff([]listed{{"libvirt:///" + uuid, "worker-1", "", "5e0ad6a1-6f9f"}}, found); diff != "" ||
		len(mine) != 1 {
		t.Errorf("the inventory (-want +got):\n%s", diff)
	}
}
