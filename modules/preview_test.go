package modules_test

import (
	"encoding/json"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/machine-iac/machine-iac-operator/internal/module"

	"github.com/google/go-cmp/cmp"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/machine-iac/machine-iac-operator/internal/render"
)

// TestWhatAPreviewShows compares the images and disks of spec.preview with what modules make of a providerSpec: the example's, with fields
// changed.
func TestWhatAPreviewShows(t *testing.T) {
	disks := func(disks ...module.Disk) []module.Disk { return disks }
	tests := map[string]map[string]struct {
		change string
		want   module.InstancePreview
	}{
		"aws": {
			"the example's root volume": {want: module.InstancePreview{Image: "ami-0123456789abcdef0", Disks: disks(module.Disk{Size: "120Gi", Type: "gp3"})}},
			"a root volume by its device, and others": {
				change: `{"blockDevices": [{"deviceName": "/dev/sdb", "ebs": {"volumeSize": 500, "volumeType": "io2"}}, {"deviceName": "/dev/xvda", "ebs": {"volumeSize": 64}}]}`,
				want:   module.InstancePreview{Image: "ami-0123456789abcdef0", Disks: disks(module.Disk{Size: "500Gi", Type: "io2"}, module.Disk{Size: "64Gi"})},
			},
			"the image's root volume, beside another": {
				change: `{"blockDevices": [{"deviceName": "/dev/sdb", "ebs": {"volumeSize": 500}}]}`,
				want:   module.InstancePreview{Image: "ami-0123456789abcdef0", Disks: disks(module.Disk{}, module.Disk{Size: "500Gi"})},
			},
			"the image's root volume alone": {
				change: `{"blockDevices": null}`, want: module.InstancePreview{Image: "ami-0123456789abcdef0", Disks: disks(module.Disk{})},
			},
		},
		"azure": {
			"the example's disk": {want: module.InstancePreview{
				Image: "/resourceGroups/demo-x7k2p-rg/providers/Microsoft.Compute/galleries/gallery_demo_x7k2p/images/demo-x7k2p-gen2/versions/latest",
				Disks: disks(module.Disk{Size: "128Gi", Type: "Premium_LRS"}),
			}},
			"an image of the marketplace, and disks for data": {
				change: `{"image": {"publisher": "p", "offer": "o", "sku": "s", "version": "v"}, "osDisk": {"diskSizeGB": 64},
					"dataDisks": [{"nameSuffix": "a", "diskSizeGB": 4}, {"nameSuffix": "b", "diskSizeGB": 8, "managedDisk": {"storageAccountType": "UltraSSD_LRS"}}]}`,
				want: module.InstancePreview{
					Image: "p:o:s:v", Disks: disks(module.Disk{Size: "64Gi"}, module.Disk{Size: "4Gi", Type: "Premium_LRS"}, module.Disk{Size: "8Gi", Type: "UltraSSD_LRS"}),
				},
			},
		},
		"gcp": {
			"the example's disk": {want: module.InstancePreview{Image: "projects/rhcos-cloud/global/images/rhcos-9-6-gcp-x86-64", Disks: disks(module.Disk{Size: "128Gi", Type: "pd-ssd"})}},
			"the image of the disk that boots, wherever it stands": {
				change: `{"disks": [{"image": "data", "sizeGb": 16}, {"boot": true, "image": "os"}]}`,
				want:   module.InstancePreview{Image: "os", Disks: disks(module.Disk{Size: "16Gi", Type: "pd-standard"}, module.Disk{Type: "pd-standard"})},
			},
		},
		"kubemark": {"a Node has neither": {}},
		"libvirt": {
			"the base volume's size":     {want: module.InstancePreview{Image: "demo-x7k2p-base", Disks: disks(module.Disk{})}},
			"a quantity":                 {change: `{"volume": {"poolName": "p", "baseVolumeID": "b", "volumeSize": "32Gi"}}`, want: module.InstancePreview{Image: "b", Disks: disks(module.Disk{Size: "32Gi"})}},
			"a quantity of many a digit": {change: `{"volume": {"poolName": "p", "baseVolumeID": "b", "volumeSize": 34359738368}}`, want: module.InstancePreview{Image: "b", Disks: disks(module.Disk{Size: "32Gi"})}},
		},
		"nutanix": {
			"the example's disk": {want: module.InstancePreview{Image: "demo-x7k2p-rhcos", Disks: disks(module.Disk{Size: "120Gi"})}},
			"an image by its UUID, and disks for data": {
				change: `{"image": {"type": "uuid", "uuid": "u"}, "dataDisks": [{"diskSize": "3Gi"}, {"diskSize": "4Gi", "storageConfig": {"diskMode": "Standard"}}]}`,
				want:   module.InstancePreview{Image: "u", Disks: disks(module.Disk{Size: "120Gi"}, module.Disk{Size: "3Gi"}, module.Disk{Size: "4Gi", Type: "Standard"})},
			},
		},
		"openstack": {
			"the flavor's disk": {want: module.InstancePreview{Image: "demo-x7k2p-rhcos", Disks: disks(module.Disk{})}},
			"volumes, and a disk of the host": {
				change: `{"image": "", "rootVolume": {"sourceUUID": "u", "diskSize": 100, "volumeType": "fast"}, "additionalBlockDevices": [
					{"name": "a", "sizeGiB": 10, "storage": {"type": "Volume", "volume": {"type": "slow"}}},
					{"name": "b", "sizeGiB": 20, "storage": {"type": "Volume"}}, {"name": "c", "sizeGiB": 30, "storage": {"type": "Local"}}]}`,
				want: module.InstancePreview{Image: "u", Disks: disks(
					module.Disk{Size: "100Gi", Type: "fast"}, module.Disk{Size: "10Gi", Type: "slow"}, module.Disk{Size: "20Gi", Type: "Volume"}, module.Disk{Size: "30Gi", Type: "Local"},
				)},
			},
		},
		"vsphere": {
			"the example's disk": {want: module.InstancePreview{Image: "demo-x7k2p-rhcos-generated-region-generated-zone", Disks: disks(module.Disk{Size: "120Gi"})}},
			"the template's disk, since a linked clone has no other, and one for data": {
				change: `{"cloneMode": "linkedClone", "dataDisks": [{"name": "a", "sizeGiB": 3, "provisioningMode": "Thin"}]}`,
				want:   module.InstancePreview{Image: "demo-x7k2p-rhcos-generated-region-generated-zone", Disks: disks(module.Disk{}, module.Disk{Size: "3Gi", Type: "Thin"})},
			},
		},
		"kubevirt": {
			"a container disk": {want: module.InstancePreview{Image: "quay.io/containerdisks/fedora:latest", Disks: disks(module.Disk{})}},
			"a volume from a claim": {
				change: `{"containerDisk": null, "dataVolume": {"size": "30Gi", "storageClassName": "fast", "source": {"pvc": {"name": "golden", "namespace": "images"}}}}`,
				want:   module.InstancePreview{Image: "images/golden", Disks: disks(module.Disk{Size: "30Gi", Type: "fast"})},
			},
		},
	}
	each(t, func(t *testing.T, m kept) {
		if len(tests[m.Name()]) == 0 {
			t.Fatal("no case tests its preview")
		}
		for name, tc := range tests[m.Name()] {
			t.Run(name, func(t *testing.T) {
				value, err := render.ProviderSpec(exampleWith(t, m, tc.change), m.Module)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tc.want, module.PreviewOf(m.Module, value)); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		}
	})
}

// exampleWith returns a Machine of a module's example, with some fields of its providerSpec changed.
func exampleWith(t *testing.T, m kept, change string) *machinev1beta1.Machine {
	t.Helper()
	machine := &machinev1beta1.Machine{Spec: machineSet(t, m.files, "examples/machineset.yaml").Spec.Template.Spec}
	if change == "" {
		return machine
	}
	var fields, changed map[string]any
	if err := json.Unmarshal(machine.Spec.ProviderSpec.Value.Raw, &fields); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(change), &changed); err != nil {
		t.Fatal(err)
	}
	maps.Copy(fields, changed)
	raw, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	machine.Spec.ProviderSpec.Value = &runtime.RawExtension{Raw: raw}
	return machine
}

// TestDefaultTypesAreTheModules looks for the types that a preview shows where a providerSpec names none: the HCL sets them.
func TestDefaultTypesAreTheModules(t *testing.T) {
	each(t, func(t *testing.T, m kept) {
		preview := m.Spec().Preview
		if preview == nil {
			return
		}
		hcl := sources(t, m.files)
		for _, disk := range preview.Disks {
			if word := `"` + disk.DefaultType + `"`; disk.DefaultType != "" && !slices.ContainsFunc(hcl, func(text string) bool { return strings.Contains(text, word) }) {
				t.Errorf("no .tf file asks for %s", word)
			}
		}
	})
}

// sources returns what the module's own .tf files hold.
func sources(t *testing.T, files fs.FS) []string {
	t.Helper()
	names, err := fs.Glob(files, "*.tf")
	if err != nil || len(names) == 0 {
		t.Fatalf("want .tf files, got %v, %v", names, err)
	}
	var texts []string
	for _, name := range names {
		content, err := fs.ReadFile(files, name)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(content))
	}
	return texts
}
