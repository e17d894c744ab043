package adoption

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/render"
)

// testAzureManifests applies each manifest of the documentation's cases, plans it again, and destroys it.
func testAzureManifests(t *testing.T, mirror string) {
	folder := filepath.Join(root, "test", "manifests", "azure")
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil || len(files) < 2 {
		t.Fatalf("want manifests, got %v, %v", files, err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		if name == "infrastructure" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			o := newOnAzure(t, mirror)
			machine, infrastructure := readManifest(t, file, filepath.Join(folder, "infrastructure.yaml"))
			o.cluster = module.ClusterOf(infrastructure)
			values := module.ClusterValues{
				module.ValueClusterID:     clusterID,
				module.ValueResourceGroup: clusterID + "-rg", module.ValueNetworkResourceGroup: clusterID + "-rg",
			}
			machine, _ = render.Complete(machine, o.module, values)
			o.take(machine)
			o.apply()
			o.settled()
			var stays []string
			for _, one := range o.Names() {
				if strings.Contains(o.output("outlives"), strings.TrimPrefix(one, "disks/")) {
					stays = append(stays, one)
				}
			}
			o.destroyed(stays...)
		})
	}
}

// readManifest returns the Machine, or a Machine of the MachineSet, in a manifest, and its Infrastructure or that of
// another file.
func readManifest(t *testing.T, file, otherwise string) (*machinev1beta1.Machine, *configv1.Infrastructure) {
	t.Helper()
	var machine *machinev1beta1.Machine
	infrastructure := &configv1.Infrastructure{}
	for _, from := range []string{otherwise, file} {
		content, err := os.ReadFile(from) //nolint:gosec // one of the repository's
		if err != nil {
			t.Fatal(err)
		}
		for document := range strings.SplitSeq(string(content), "\n---\n") {
			set := &machinev1beta1.MachineSet{}
			if err := yaml.Unmarshal([]byte(document), set); err != nil {
				t.Fatal(err)
			}
			switch set.Kind {
			case "Infrastructure":
				err = yaml.Unmarshal([]byte(document), infrastructure)
			case "Machine":
				machine = &machinev1beta1.Machine{}
				err = yaml.Unmarshal([]byte(document), machine)
			case "MachineSet":
				machine = machineOf("worker-1", nil)
				machine.Labels, machine.Spec = set.Spec.Template.Labels, set.Spec.Template.Spec
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if machine == nil {
		t.Fatalf("%s has no Machine and no MachineSet", file)
	}
	machine.UID, machine.Namespace = types.UID("5e0ad6a1-6f9f-4f39-a4b5-000000000008"), "openshift-machine-api"
	return machine, infrastructure
}
