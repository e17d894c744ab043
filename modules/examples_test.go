package modules_test

import (
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"github.com/machine-iac/machine-iac-operator/api/v1beta1"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/render"
)

// TestExamplesAreTakenAsTheyAre applies the examples in mind: nothing of them is refused, and nothing has no effect.
func TestExamplesAreTakenAsTheyAre(t *testing.T) {
	each(t, func(t *testing.T, m kept) {
		examples, err := fs.Glob(m.files, "examples/machine*.yaml")
		if err != nil || len(examples) == 0 {
			t.Fatalf("examples %v, %v", examples, err)
		}
		for _, example := range examples {
			set := machineSet(t, m.files, example)
			selector, err := metav1.LabelSelectorAsSelector(&set.Spec.Selector)
			if err != nil || !selector.Matches(labels.Set(set.Spec.Template.Labels)) {
				t.Errorf("%s: its selector %s does not match its template's labels, %v", example, selector, err)
			}
			machine := &machinev1beta1.Machine{
				ObjectMeta: metav1.ObjectMeta{GenerateName: set.Name + "-", Namespace: set.Namespace, Labels: set.Spec.Template.Labels},
				Spec:       set.Spec.Template.Spec,
			}
			if apiVersion, kind, err := render.KindOf(machine); err != nil || !m.Serves(apiVersion, kind) {
				t.Errorf("%s: it is a %s %s, %v; want a providerSpec that the module serves", example, apiVersion, kind, err)
			}
			warnings, err := render.Check(render.Input{Machine: machine, Module: m.Module})
			if err != nil || len(warnings) > 0 {
				t.Errorf("%s: %v, warnings %v; want none", example, err, warnings)
			}
		}
	})
}

// TestExamplesGrowFromZero asks what the Machines of the examples offer, which a cluster autoscaler must know while there are none.
func TestExamplesGrowFromZero(t *testing.T) {
	each(t, func(t *testing.T, m kept) {
		if m.Spec().Capacity == nil && !slices.Contains(folders(t, "."), m.Name()) {
			t.Skip("a module that is not built in need not have sizes")
		}
		set := machineSet(t, m.files, "examples/machineset.yaml")
		providerSpec, err := render.ProviderSpec(&machinev1beta1.Machine{Spec: set.Spec.Template.Spec}, m.Module)
		if err != nil {
			t.Fatal(err)
		}
		size, err := module.SizeOf(m.Module, providerSpec)
		if err != nil || size == nil || size.CPU < 1 || size.MemoryMiB < 1 || size.Architecture == "" {
			t.Errorf("the size is %+v, %v; want processors, memory and an architecture", size, err)
		}
	})
}

// TestLabelsOfNodes compares the labels that a cluster autoscaler is told with those that the Node gets.
func TestLabelsOfNodes(t *testing.T) {
	node := func(pairs ...string) map[string]string {
		found := map[string]string{}
		for i, key := range []string{corev1.LabelInstanceTypeStable, corev1.LabelTopologyRegion, corev1.LabelTopologyZone, corev1.LabelOSStable} {
			if i < len(pairs) && pairs[i] != "" {
				found[key] = pairs[i]
			}
		}
		return found
	}
	for name, tc := range map[string]struct {
		module, changes string
		want            map[string]string
	}{
		"aws":                            {"aws", `{}`, node("m6i.xlarge", "us-east-1", "us-east-1a")},
		"aws by subnet":                  {"aws", `{"placement":{"region":"us-east-1"}}`, node("m6i.xlarge", "us-east-1")},
		"azure":                          {"azure", `{}`, node("Standard_D4s_v3", "eastus", "eastus-1", "linux")},
		"azure in the set of a location": {"azure", `{"location":"EastUS","zone":"","availabilitySet":"set"}`, node("Standard_D4s_v3", "eastus", "", "linux")},
		"azure in the group's location":  {"azure", `{"location":"","osDisk":{"osType":"Windows"}}`, node("Standard_D4s_v3", "", "", "windows")},
		"gcp":                            {"gcp", `{}`, node("n2-standard-4", "us-central1", "us-central1-a")},
		"kubemark":                       {"kubemark", `{}`, node("hollow", "region-a", "zone-a")},
		"libvirt":                        {"libvirt", `{}`, node()},
		"nutanix":                        {"nutanix", `{}`, node()},
		"openstack":                      {"openstack", `{"availabilityZone":"AZ1"}`, node("m1.xlarge", "", "AZ1")},
		"vsphere":                        {"vsphere", `{}`, node()},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, sizeOf(t, tc.module, tc.changes).Labels, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAttachedGPUsAreCounted(t *testing.T) {
	for changes, want := range map[string]int64{
		`{}`: 0,
		`{"machineType":"n1-standard-4","gpus":[{"type":"nvidia-tesla-t4","count":2}]}`: 2,
		`{"machineType":"n1-standard-4","gpus":[{"type":"nvidia-tesla-t4"}]}`:           1,
		`{"machineType":"a2-highgpu-1g"}`:                                               1,
	} {
		if got := sizeOf(t, "gcp", changes).GPU; got != want {
			t.Errorf("%s has %d GPUs, want %d", changes, got, want)
		}
	}
}

// sizeOf returns the size of a module's example, with fields of its providerSpec changed.
func sizeOf(t *testing.T, name, changes string) *module.Size {
	t.Helper()
	m := keptIn(t, name)
	providerSpec, err := render.ProviderSpec(exampleMachine(t, name, changes), m.Module)
	if err != nil {
		t.Fatal(err)
	}
	size, err := module.SizeOf(m.Module, providerSpec)
	if err != nil {
		t.Fatal(err)
	}
	return size
}

// machineSet returns an example; of a MachineDeployment, what makes its MachineSets.
func machineSet(t *testing.T, files fs.FS, name string) *machinev1beta1.MachineSet {
	t.Helper()
	content, err := fs.ReadFile(files, name)
	if err != nil {
		t.Fatal(err)
	}
	set := &machinev1beta1.MachineSet{}
	if strings.Contains(name, "/machinedeployment") {
		deployment := &v1beta1.MachineDeployment{}
		if err := yaml.UnmarshalStrict(content, deployment); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		set.ObjectMeta, set.Spec.Selector, set.Spec.Template = deployment.ObjectMeta, deployment.Spec.Selector, deployment.Spec.Template
		return set
	}
	if err := yaml.UnmarshalStrict(content, set); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return set
}
