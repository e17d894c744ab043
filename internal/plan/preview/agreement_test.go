package preview_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/machine-iac/machine-iac-operator/internal/module/load"
	"github.com/machine-iac/machine-iac-operator/internal/plan/preview"

	"github.com/hashicorp/terraform-exec/tfexec"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/plan/offline"
	"github.com/machine-iac/machine-iac-operator/internal/render"
	"github.com/machine-iac/machine-iac-operator/test/controlplane"
	"github.com/machine-iac/machine-iac-operator/test/long"
	"github.com/machine-iac/machine-iac-operator/test/planning"
	"github.com/machine-iac/machine-iac-operator/test/vcenter"
)

// TestAPreviewAgreesWithTheApply compares previews of a MachineSet and of a Machine with the state that the engine then
// writes.
func TestAPreviewAgreesWithTheApply(t *testing.T) {
	long.Test(t)
	cases := map[string]struct {
		providerSpec map[string]any
		// world starts the module's infrastructure, and returns the environment and the credentials.
		world func(t *testing.T) (environment map[string]string, credentials map[string][]byte)
		// wantKnown are paths that must be known, so that the comparison is not vacuous.
		wantKnown, wantKnownOfMachine []string
	}{
		"kubemark": {
			providerSpec: map[string]any{
				"apiVersion": "kubemarkproviderconfig.openshift.io/v1alpha1", "kind": "KubemarkMachineProviderConfig",
				"instanceType": "huge", "zone": "zone-a", "cpu": 8, "credentialsSecret": map[string]any{"name": "c"},
			},
			world: apiServer,
			wantKnown: []string{"terraform_data.made_with input.cpu", "kubectl_manifest.this validate_schema",
				"outputs instance_type", "outputs zone"},
			wantKnownOfMachine: []string{"outputs addresses[0].address", "outputs provider_id"},
		},
		"vsphere": {
			providerSpec: map[string]any{
				"apiVersion": "machine.openshift.io/v1beta1", "kind": "VSphereMachineProviderSpec",
				"credentialsSecret": map[string]any{"name": "c"}, "userDataSecret": map[string]any{"name": "u"},
				"template": vcenter.Template, "numCPUs": 2, "numCoresPerSocket": 1, "memoryMiB": 2048, "diskGiB": 12,
				"dataDisks": []any{map[string]any{"name": "images", "sizeGiB": 3}},
				"network":   map[string]any{"devices": []any{map[string]any{"networkName": "VM Network"}}},
				"workspace": map[string]any{
					"server": vcenter.Name, "datacenter": "DC0", "folder": vcenter.Folder,
					"datastore":    "/DC0/datastore/LocalDS_0",
					"resourcePool": "/DC0/host/DC0_C0/Resources",
				},
			},
			world: simulatedVCenter,
			wantKnown: []string{
				"vsphere_virtual_machine.this num_cpus", "vsphere_virtual_machine.this memory",
				"vsphere_virtual_machine.this disk[0].size",
				"vsphere_virtual_machine.this disk[1].label", "vsphere_virtual_machine.this folder",
			},
			wantKnownOfMachine: []string{"vsphere_virtual_machine.this name",
				"vsphere_virtual_machine.this annotation"},
		},
	}
	planner := planning.Planner(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			loaded, err := load.Folders("../../../modules/" + name)
			if err != nil {
				t.Fatal(err)
			}
			catalog, err := module.NewCatalog(loaded...)
			if err != nil {
				t.Fatal(err)
			}
			machine := machineFor(t, tc.providerSpec)
			environment, credentials := tc.world(t)
			applied := apply(t, render.Input{
				Machine: machine, ClusterID: "demo", Module: loaded[0], Credentials: credentials,
				UserData: []byte("user data"),
			}, environment)
			machine.Kind, machine.APIVersion = preview.KindMachine, machinev1beta1.GroupVersion.String()
			raw, err := json.Marshal(machine)
			if err != nil {
				t.Fatal(err)
			}
			known := previewed(t, planner, catalog, setFor(t, tc.providerSpec))
			compare(t, known, applied, tc.wantKnown)
			compare(t, previewed(t, planner, catalog, string(raw)), applied,
				append(tc.wantKnown, tc.wantKnownOfMachine...))
			for _, path := range tc.wantKnownOfMachine {
				if value, found := known[path]; found {
					t.Errorf("the preview of the MachineSet has %s = %s, which is not known yet", path, value)
				}
			}
		})
	}
}

// setFor returns a MachineSet, and machineFor a Machine that it could have created.
func setFor(t *testing.T, providerSpec map[string]any) string {
	t.Helper()
	raw, err := json.Marshal(map[string]any{
		"apiVersion": machinev1beta1.GroupVersion.String(), "kind": preview.KindMachineSet,
		"metadata": map[string]any{"name": "workers"},
		"spec": map[string]any{
			"selector": map[string]any{"matchLabels": map[string]any{"set": "workers"}},
			"template": map[string]any{
				"metadata": map[string]any{"labels": map[string]any{"set": "workers",
					machinev1beta1.MachineClusterIDLabel: "demo"}},
				"spec": map[string]any{"providerSpec": map[string]any{"value": providerSpec}},
			},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func machineFor(t *testing.T, providerSpec map[string]any) *machinev1beta1.Machine {
	t.Helper()
	set := &machinev1beta1.MachineSet{}
	if err := json.Unmarshal([]byte(setFor(t, providerSpec)), set); err != nil {
		t.Fatal(err)
	}
	machine := render.MachineOf(set)
	machine.Name, machine.Namespace, machine.UID = "workers-x7k2p", "openshift-machine-api",
		"5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1"
	return machine
}

// previewed returns the values in the preview of a manifest by address and path.
func previewed(t *testing.T, planner preview.Planner, catalog *module.Catalog, manifest string) map[string]string {
	t.Helper()
	requests := planning.Requests(t, "manifest", manifest, catalog)
	outcome := planner.Plan(t.Context(), preview.ModuleOf(requests[0].Module), []offline.Input{requests[0].Input})[0]
	if outcome.Err != nil {
		t.Fatal(outcome.Err)
	}
	found := map[string]string{}
	add := func(address string, values offline.Values) {
		for _, one := range preview.Changes(values) {
			if !one.Unknown && !one.Sensitive {
				found[address+" "+one.Path] = one.Text()
			}
		}
	}
	for _, resource := range outcome.Plan.Resources {
		add(resource.Address, resource.Values)
	}
	add("outputs", outcome.Plan.Outputs)
	return found
}

// apply creates a Machine with the engine, and returns the values in its state.
func apply(t *testing.T, input render.Input, environment map[string]string) map[string]string {
	t.Helper()
	inputs, err := render.Render(input)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, input.Module.Files()); err != nil {
		t.Fatal(err)
	}
	// The mirror's provider is built from source, and matches no checksum of a release.
	for _, name := range []string{"lookup", ".terraform.lock.hcl"} {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	files := map[string]string{
		"machine.tfvars.json": string(inputs.Variables),
		"cli.tfrc": "provider_installation {\n  filesystem_mirror {\n    path = " +
			strconv.Quote(absolute(t, "../../../bin/mirror")) + "\n  }\n}\n",
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	engine, err := tfexec.NewTerraform(dir, absolute(t, "../../../bin/tofu"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{"HOME": dir, "TF_CLI_CONFIG_FILE": filepath.Join(dir, "cli.tfrc")}
	maps.Copy(all, environment)
	maps.Copy(all, inputs.Environment)
	if err := engine.SetEnv(all); err != nil {
		t.Fatal(err)
	}
	if err := engine.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := engine.Apply(t.Context(), tfexec.VarFile("machine.tfvars.json")); err != nil {
		t.Fatal(err)
	}
	state, err := engine.Show(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	add := func(address string, value any) {
		for _, one := range preview.Compare(nil, value) {
			found[address+" "+one.Path] = one.Text()
		}
	}
	for _, resource := range state.Values.RootModule.Resources {
		add(resource.Address, resource.AttributeValues)
	}
	outputs := map[string]any{}
	for name, output := range state.Values.Outputs {
		outputs[name] = output.Value
	}
	add("outputs", outputs)
	return found
}

// compare compares the preview's values with the applied ones.
func compare(t *testing.T, known, applied map[string]string, want []string) {
	t.Helper()
	for path, value := range known {
		if applied[path] != value {
			t.Errorf("%s was previewed as %s, and is %q", path, value, applied[path])
		}
	}
	for _, path := range want {
		if _, ok := known[path]; !ok {
			t.Errorf("%s is not in the preview; it is %s", path, applied[path])
		}
	}
	if len(known) >= len(applied) {
		t.Errorf("all of the %d values were known, although some come from the infrastructure", len(applied))
	}
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	found, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func apiServer(t *testing.T) (environment map[string]string, credentials map[string][]byte) {
	t.Helper()
	plane, err := controlplane.Start(controlplane.Default)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(); err != nil {
			t.Error(err)
		}
	})
	config := plane.Config
	environment = map[string]string{"KUBE_CLIENT_CERT_DATA": string(config.CertData),
		"KUBE_CLIENT_KEY_DATA": string(config.KeyData)}
	host := config.Host
	if !strings.Contains(host, "://") {
		host = "https://" + host
	}
	return environment, map[string][]byte{"server": []byte(host), "token": []byte("unused"), "ca.crt": config.CAData}
}

func simulatedVCenter(t *testing.T) (environment map[string]string, credentials map[string][]byte) {
	t.Helper()
	simulated, err := vcenter.Start(t.Context(), absolute(t, "../../../bin/vcsim"), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := simulated.Close(); err != nil {
			t.Error(err)
		}
	})
	return simulated.Environment(), map[string][]byte{
		vcenter.Name + ".username": []byte(vcenter.Username), vcenter.Name + ".password": []byte(vcenter.Password),
	}
}
