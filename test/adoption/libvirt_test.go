//go:build e2e_libvirt

package adoption

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// guests is the module libvirt with a libvirt that runs, where virsh makes domains.
type guests struct {
	*world
	uri, pool, dir string
	domainType     string
}

func newGuests(t *testing.T) *guests {
	t.Helper()
	g := &guests{world: newWorld(t, "libvirt"), uri: os.Getenv("LIBVIRT_DEFAULT_URI"), pool: "adoption-" + strings.ToLower(t.Name()), domainType: "kvm"}
	if g.uri == "" || os.Getenv("LIBVIRT_DIR") == "" {
		t.Fatal("there is no libvirt to test with: run 'make e2e-libvirt', which starts one")
	}
	if _, err := g.try("domcapabilities", "--virttype", "kvm"); err != nil {
		g.domainType = "qemu"
	}
	g.dir = filepath.Join(os.Getenv("LIBVIRT_DIR"), g.pool)
	if err := os.Mkdir(g.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	g.virsh("pool-create-as", g.pool, "dir", "--target", g.dir)
	network := filepath.Join(g.dir, "network.xml")
	g.write(network, fmt.Appendf(nil, "<network><name>%s</name><forward mode='bridge'/><bridge name='%s'/></network>", g.pool, os.Getenv("LIBVIRT_BRIDGE")))
	g.virsh("net-create", network)
	t.Cleanup(func() {
		for _, name := range strings.Fields(g.virsh("list", "--all", "--name")) {
			_, _ = g.try("destroy", name)
			_, _ = g.try("undefine", name)
		}
		_, _ = g.try("net-destroy", g.pool)
		_, _ = g.try("pool-destroy", g.pool)
	})
	return g
}

func (g *guests) try(arguments ...string) (string, error) {
	command := exec.Command("virsh", append([]string{"--connect", g.uri, "--quiet"}, arguments...)...)
	var out, problems bytes.Buffer
	command.Stdout, command.Stderr = &out, &problems
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("virsh %s: %w: %s", strings.Join(arguments, " "), err, strings.TrimSpace(problems.String()))
	}
	return strings.TrimSpace(out.String()), nil
}

func (g *guests) virsh(arguments ...string) string {
	g.t.Helper()
	out, err := g.try(arguments...)
	if err != nil {
		g.t.Fatal(err)
	}
	return out
}

// domain makes one as OpenShift's actuator does, with a volume of its name, and returns its UUID.
func (g *guests) domain(name, description string) string {
	g.t.Helper()
	g.virsh("vol-create-as", g.pool, name, "64M", "--format", "qcow2")
	definition := filepath.Join(g.dir, name+".xml")
	g.write(definition, fmt.Appendf(nil, `<domain type='%s'><name>%s</name><description>%s</description><memory unit='MiB'>64</memory><vcpu>1</vcpu>
  <os><type>hvm</type></os>
  <devices>
    <disk type='file' device='disk'><driver name='qemu' type='qcow2'/><source file='%s'/><target dev='vda' bus='virtio'/></disk>
    <interface type='network'><source network='%s'/><model type='virtio'/></interface>
  </devices></domain>`, g.domainType, name, description, filepath.Join(g.dir, name), g.pool))
	g.virsh("define", definition)
	g.virsh("start", name)
	return g.virsh("domuuid", name)
}

func (g *guests) machine(name string, fields map[string]any) {
	g.t.Helper()
	spec := map[string]any{
		"apiVersion": "libvirtproviderconfig.openshift.io/v1beta1", "kind": "LibvirtMachineProviderConfig",
		"domainMemory": 64, "domainVcpu": 1, "uri": g.uri, "autostart": false, "ignKey": "",
		"ignition":             map[string]any{"userDataSecret": "worker-user-data"},
		"volume":               map[string]any{"poolName": g.pool, "baseVolumeID": "base"},
		"networkInterfaceName": g.pool,
	}
	maps.Copy(spec, fields)
	g.render(machineOf(name, spec), clusterID, nil, map[string]string{"TERRAFORM_LIBVIRT_TEST_DOMAIN_TYPE": g.domainType})
}

func TestADomainIsAdoptedAsItIs(t *testing.T) {
	g := newGuests(t)
	uuid := g.domain("worker-1", "")
	before := g.virsh("dumpxml", "worker-1")
	g.machine("worker-1", nil)
	g.adopt("libvirt:///"+uuid, "")
	plan := g.plan()
	want := []string{"libvirt_domain.this import", "libvirt_ignition.user_data[0] create", "libvirt_volume.root import", "terraform_data.made_with create"}
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
	if err := g.terraform.Destroy(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := g.virsh("list", "--all", "--name") + g.virsh("vol-list", g.pool, "--details"); strings.Contains(left, "worker-1 ") || strings.HasPrefix(left, "worker-1") {
		t.Errorf("after the destroy there is %s", left)
	}
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
	if err == nil || !g.module.AdoptAbsent(strings.Join(strings.Fields(strings.ReplaceAll(err.Error(), "│", " ")), " ")) {
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
	if diff := cmp.Diff([]listed{{"libvirt:///" + uuid, "worker-1", "", "5e0ad6a1-6f9f"}}, found); diff != "" || len(mine) != 1 {
		t.Errorf("the inventory (-want +got):\n%s", diff)
	}
}
