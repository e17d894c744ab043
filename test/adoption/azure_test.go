package adoption

import (
	"debug/buildinfo"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/test/azure/arm"
	"github.com/machine-iac/machine-iac-operator/test/rights"
)

const (
	// azurermModule is the Go module of terraform-provider-azurerm, azurermBuild the module version of release
	// azurermVersion.
	azurermModule  = "github.com/hashicorp/terraform-provider-azurerm"
	azurermBuild   = "v1.44.1-0.20260824201233-fae580791926"
	azurermVersion = "5.2.0"
)

// azurermMirror returns a mirror with the provider, or skips the test if it is not built.
func azurermMirror(t *testing.T) string {
	t.Helper()
	const howTo = "; 'GOFLAGS=-p=1 go install " + azurermModule + "@" + azurermBuild +
		"' builds it, in ten minutes with 4 GB of memory"
	program, err := exec.LookPath("terraform-provider-azurerm")
	if err != nil {
		t.Skip("there is no terraform-provider-azurerm on PATH" + howTo)
	}
	// A build from a checkout has no version.
	if built, err := buildinfo.ReadFile(program); err != nil ||
		!slices.Contains([]string{azurermBuild, "(devel)"}, built.Main.Version) {
		t.Skipf("%s is not built from version %s of its module%s", program, azurermBuild, howTo)
	}
	return mirrorOf(t, program, "azurerm", azurermVersion)
}

// mirrorOf returns a mirror with a provider's program.
func mirrorOf(t *testing.T, program, provider, version string) string {
	t.Helper()
	mirror := t.TempDir()
	dir := filepath.Join(mirror, "registry.opentofu.org", "hashicorp", provider, version, runtime.GOOS+"_"+runtime.GOARCH)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	copyProgram(t, program, filepath.Join(dir, "terraform-provider-"+provider+"_v"+version))
	return mirror
}

// copyProgram copies a program: an engine follows no link that leads out of its mirror.
func copyProgram(t *testing.T, from, to string) {
	t.Helper()
	source, err := os.Open(from) //nolint:gosec // a program of the developer's
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = source.Close() }()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o700) //nolint:gosec // it is run
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(target, source); err != nil {
		t.Fatal(err)
	}
	if err := target.Close(); err != nil {
		t.Fatal(err)
	}
}

// onAzure tests the module azure with its real provider and a simulated Resource Manager, which grants each Machine its
// rights alone.
type onAzure struct {
	*world
	*arm.Server
	guard   *rights.Guard
	cluster *module.Cluster
}

// workerSpec returns a worker's providerSpec as the installer writes it.
func workerSpec() map[string]any {
	return map[string]any{
		"apiVersion": "machine.openshift.io/v1beta1", "kind": "AzureMachineProviderSpec",
		"credentialsSecret": map[string]any{"name": "c"}, "userDataSecret": map[string]any{"name": "u"},
		"location": "eastus", "zone": "1", "vmSize": "Standard_D4s_v3", "acceleratedNetworking": true,
		"image": map[string]any{
			"resourceID": "/resourceGroups/" + clusterID +
				"-rg/providers/Microsoft.Compute/galleries/g/images/i/versions/1.0.0",
		},
		"osDisk": map[string]any{
			"diskSizeGB": 128, "osType": "Linux", "managedDisk": map[string]any{"storageAccountType": "Premium_LRS"},
		},
		"resourceGroup": clusterID + "-rg", "networkResourceGroup": clusterID + "-rg", "vnet": clusterID +
			"-vnet", "subnet": clusterID + "-worker-subnet",
		"managedIdentity": clusterID + "-identity",
	}
}

// machine renders a worker's Machine with other fields.
func (o *onAzure) machine(name string, fields map[string]any) *machinev1beta1.Machine {
	o.t.Helper()
	spec := workerSpec()
	maps.Copy(spec, fields)
	machine := machineOf(name, spec)
	o.take(machine)
	return machine
}

func (o *onAzure) take(machine *machinev1beta1.Machine) {
	o.t.Helper()
	o.renderIn(o.cluster, machine, clusterID, armCredentials(), o.Environment())
	o.guard.Grant(o.rights(o.cluster, machine))
}

func armCredentials() map[string][]byte {
	return map[string][]byte{
		"azure_subscription_id": []byte(arm.Subscription), "azure_tenant_id": []byte(arm.Tenant),
		"azure_client_id": []byte(arm.Client), "azure_client_secret": []byte(arm.Secret),
	}
}

// settled fails the test if a plan after an apply has changes.
func (o *onAzure) settled() {
	o.t.Helper()
	if left := changes(o.plan()); len(left) > 0 {
		o.t.Errorf("after the apply a plan has %v", left)
	}
}

// destroyed destroys everything in the state, and fails if anything else than stays is left.
func (o *onAzure) destroyed(stays ...string) {
	o.t.Helper()
	o.destroy()
	if diff := cmp.Diff(stays, o.Names()); diff != "" {
		o.t.Errorf("after the destroy (-want +got):\n%s", diff)
	}
}

// TestResourceManager shares one copy of the provider, which is large.
func TestResourceManager(t *testing.T) {
	mirror := azurermMirror(t)
	on := func(t *testing.T) *onAzure { return newOnAzure(t, mirror) }
	t.Run("a virtual machine from create to delete", func(t *testing.T) { testVirtualMachine(t, on(t)) })
	t.Run("data disks are there at the first boot", func(t *testing.T) { testDataDisks(t, on(t)) })
	t.Run("a lost virtual machine is found by its UID", func(t *testing.T) { testLostVirtualMachine(t, on(t)) })
	t.Run("a virtual machine that was not made yet is made by what is there",
		func(t *testing.T) { testHalfMadeVirtualMachine(t, on(t)) })
	t.Run("a virtual machine is adopted as it is", func(t *testing.T) { testAdoptedVirtualMachine(t, on(t)) })
	t.Run("virtual machines are listed", func(t *testing.T) { testListedVirtualMachines(t, on(t)) })
	t.Run("pools are called as their load balancers are", func(t *testing.T) { testPools(t, on(t)) })
	t.Run("refusals end a Machine or are tried again", func(t *testing.T) { testRefusals(t, on(t)) })
	t.Run("manifests are made, and change nothing afterwards", func(t *testing.T) { testAzureManifests(t, mirror) })
}

func newOnAzure(t *testing.T, mirror string) *onAzure {
	t.Helper()
	guard := &rights.Guard{}
	server, err := arm.Start(arm.Options{Dir: t.TempDir(), Allowed: guard.Allows})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		server.Close()
		for _, problem := range server.Problems() {
			t.Error(problem)
		}
	})
	return &onAzure{world: newWorldIn(t, "azure", mirror), Server: server, guard: guard}
}

func testVirtualMachine(t *testing.T, o *onAzure) {
	o.machine("worker-1", map[string]any{"publicIP": true, "securityGroup": clusterID + "-nsg"})
	o.apply()
	o.settled()
	const machine = "Microsoft.Compute/virtualMachines/worker-1"
	for path, want := range map[string]string{
		"zones":                                   `["1"]`,
		"properties.hardwareProfile.vmSize":       `"Standard_D4s_v3"`,
		"properties.osProfile.computerName":       `"worker-1"`,
		"properties.osProfile.customData":         `"eyJpZ25pdGlvbiI6eyJ2ZXJzaW9uIjoiMy4yLjAifX0="`,
		"properties.storageProfile.osDisk.name":   `"worker-1_OSDisk"`,
		"properties.storageProfile.osDisk.osType": `"Linux"`,
		"tags": `{"kubernetes.io_cluster.demo-x7k2p":"owned","machine-iac.io_machine-uid":"5e0ad6a1-6f9f-4f39-a4b5-000000000008"}`,
	} {
		if got := o.Property(machine, strings.Split(path, ".")...); got != want {
			t.Errorf("%s of the virtual machine is %s, want %s", path, got, want)
		}
	}
	for name, want := range map[string]string{
		"provider_id":    `"azure://` + arm.Group + "/providers/" + machine + `"`,
		"instance_state": `"Running"`, "instance_type": `"Standard_D4s_v3"`, "region": `"eastus"`, "zone": `"1"`,
		"interruptible": "false", "outlives": "[]",
		"instance_id": `"5e0ad6a1-0000-4000-8000-0000000000a2"`,
		"addresses": `[{"address":"10.0.0.4","type":"InternalIP"},{"address":"20.0.0.4","type":"ExternalIP"},` +
			`{"address":"demo-x7k2p-worker-1.eastus.cloudapp.azure.com","type":"ExternalDNS"},{"address":"worker-1","type":"Hostname"},` +
			`{"address":"worker-1","type":"InternalDNS"},{"address":"worker-1.internal.cloudapp.net","type":"InternalDNS"}]`,
	} {
		if got := o.output(name); got != want {
			t.Errorf("the output %s is %s, want %s", name, got, want)
		}
	}

	o.machine("worker-1", map[string]any{
		"publicIP": true, "securityGroup": clusterID + "-nsg", "vmSize": "Standard_D8s_v3",
	})
	o.refuses("A virtual machine that exists stays as it is")
	o.machine("worker-1", map[string]any{"publicIP": true, "securityGroup": clusterID + "-nsg"})
	o.Power(machine, "deallocated")
	o.apply()
	if got := o.output("instance_state"); got != `"Deallocated"` {
		t.Errorf("the state of a virtual machine that was deallocated is %s", got)
	}
	o.destroyed()
}

func testDataDisks(t *testing.T, o *onAzure) {
	disk := func(name, policy string, lun int) map[string]any {
		return map[string]any{"nameSuffix": name, "diskSizeGB": 64, "lun": lun, "deletionPolicy": policy,
			"managedDisk": map[string]any{"storageAccountType": "Premium_LRS"}}
	}
	o.machine("worker-1", map[string]any{"dataDisks": []any{disk("etcd", "Delete", 0), disk("kept", "Detach", 1)}})
	o.apply()
	o.settled()
	if got := o.Property("Microsoft.Compute/virtualMachines/worker-1", "properties", "storageProfile",
		"dataDisks"); strings.Count(got, `"lun"`) != 2 {
		t.Errorf("the data disks of the virtual machine are %s, want two", got)
	}
	if made := slices.Index(o.Writes(), "PUT disks/worker-1_etcd"); made < 0 ||
		made > slices.Index(o.Writes(), "PUT virtualMachines/worker-1") {
		t.Errorf("the requests are %v, want the disk before the virtual machine", o.Writes())
	}
	o.destroyed("disks/worker-1_kept")
}

func testLostVirtualMachine(t *testing.T, o *onAzure) {
	o.machine("worker-1", map[string]any{
		"publicIP": true, "securityGroup": clusterID + "-nsg", "applicationSecurityGroups": []any{clusterID + "-asg"},
		"publicLoadBalancer": clusterID,
	})
	o.apply()
	made := len(o.Writes())
	o.forget()
	o.link(o.module.LookupFiles()...)
	want := []string{
		"azurerm_linux_virtual_machine.this[0] import", "azurerm_network_interface.primary import",
		`azurerm_network_interface_application_security_group_association.primary["demo-x7k2p-asg"] import`,
		`azurerm_network_interface_backend_address_pool_association.primary["demo-x7k2p"] import`,
		"azurerm_network_interface_security_group_association.primary[0] import", "azurerm_public_ip.primary[0] import",
		"terraform_data.made_with create",
	}
	if diff := cmp.Diff(want, changes(o.plan())); diff != "" {
		t.Errorf("the plan of a lookup (-want +got):\n%s", diff)
	}
	o.apply()
	if len(o.Writes()) != made {
		t.Errorf("a lookup wrote %v", o.Writes()[made:])
	}
	o.link()
	o.settled()
	o.Remove("Microsoft.Compute/virtualMachines/worker-1")
	if got := changes(o.plan()); !slices.Contains(got, "azurerm_linux_virtual_machine.this[0] create") {
		t.Errorf("after the virtual machine was deleted by others, a plan has %v", got)
	}
	o.destroyed("disks/worker-1_OSDisk")
}

// testHalfMadeVirtualMachine tests what an interrupted create leaves before it requests the virtual machine.
func testHalfMadeVirtualMachine(t *testing.T, o *onAzure) {
	o.machine("worker-1", map[string]any{
		"securityGroup": clusterID + "-nsg", "applicationSecurityGroups": []any{clusterID + "-asg"},
		"publicLoadBalancer": clusterID,
	})
	o.Refuse("virtualMachines/worker-1", "OperationNotAllowed")
	if err := o.terraform.Apply(t.Context()); err == nil {
		t.Fatal("what is refused is made")
	}
	o.Refuse()
	o.forget()
	o.link(o.module.LookupFiles()...)
	o.apply()
	o.link()
	o.settled()
	o.destroyed()
}

// testAdoptedVirtualMachine adopts what this module creates, since OpenShift's actuator uses the same names.
func testAdoptedVirtualMachine(t *testing.T, o *onAzure) {
	o.machine("worker-1", nil)
	o.apply()
	made := len(o.Writes())
	o.forget()
	o.adopt("azure://"+strings.ToLower(arm.Group)+"/providers/Microsoft.Compute/virtualMachines/worker-1", "")
	plan := o.plan()
	want := []string{"azurerm_linux_virtual_machine.this[0] import", "azurerm_network_interface.primary import",
		"terraform_data.made_with create"}
	if diff := cmp.Diff(want, changes(plan)); diff != "" {
		t.Errorf("the plan of an adoption (-want +got):\n%s", diff)
	}
	if said := warnings(plan); len(said) > 0 {
		t.Errorf("an adoption of what is requested warns of %v", said)
	}
	o.apply()
	if len(o.Writes()) != made {
		t.Errorf("an adoption wrote %v", o.Writes()[made:])
	}
	o.link()
	o.settled()
	o.destroyed()

	o.machine("worker-1", nil)
	o.adopt("", arm.Group+"/providers/Microsoft.Compute/virtualMachines/worker-1")
	if _, err := o.tryPlan(); err == nil || !o.module.AdoptAbsent(unframed(err)) {
		t.Errorf("adopting what is not there fails with %v; want module.yaml to know that for absence", err)
	}
}

func testListedVirtualMachines(t *testing.T, o *onAzure) {
	o.machine("worker-1", nil)
	o.apply()
	o.link(o.module.InventoryFiles()...)
	var got []listed
	output(t, o.plan(), "inventory", &got)
	want := []listed{{ProviderID: "azure://" + arm.Group + "/providers/Microsoft.Compute/virtualMachines/worker-1",
		Name: "worker-1", MachineUID: "5e0ad6a1-6f9f-4f39-a4b5-000000000008"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the inventory (-want +got):\n%s", diff)
	}
}

func testPools(t *testing.T, o *onAzure) {
	pool := func(balancer, name string) string {
		return arm.Group + "/providers/Microsoft.Network/loadBalancers/" + balancer + "/backendAddressPools/" + name
	}
	o.machine("master-1", map[string]any{
		"publicLoadBalancer": clusterID, "internalLoadBalancer": clusterID + "-internal",
	})
	o.apply()
	o.settled()
	got := o.Property("Microsoft.Network/networkInterfaces/master-1-nic", "properties", "ipConfigurations")
	for _, want := range []string{pool(clusterID, clusterID), pool(clusterID+"-internal", clusterID+"-internal")} {
		if !strings.Contains(got, `"`+want+`"`) {
			t.Errorf("the network interface has %s, want the pool %s", got, want)
		}
	}
	o.destroyed()
}

func testRefusals(t *testing.T, o *onAzure) {
	o.machine("worker-1", nil)
	for code, final := range map[string]bool{
		"InvalidParameter": true, "PlatformImageNotFound": true, "SkuNotAvailable": false,
		"OperationNotAllowed": false, "SubnetIsFull": false,
	} {
		o.Refuse("virtualMachines/worker-1", code)
		err := o.terraform.Apply(t.Context())
		if err == nil {
			t.Fatalf("what is refused with %s is made", code)
		}
		if text := unframed(err); o.module.Final(text) != final || !strings.Contains(text, code) {
			t.Errorf("whether a refusal with %s ends the Machine is %t, want %t: %s", code, !final, final, text)
		}
	}
	o.Refuse()
	o.destroyed()
}
