package render

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/internal/module"
)

// defaulted returns a module with defaults for a size, a zone with a cluster value, a pair of fields, and both Secrets.
func defaulted(t testing.TB) *module.Module {
	t.Helper()
	return moduleOf(t, map[string]string{
		"module.yaml": strings.Replace(readFile(t, "testdata/module/module.yaml"), "  environment:\n", `  defaults:
    - path: size
      value: small
      byArchitecture: {arm64: small-arm}
    - path: placement.zone
      value: "{clusterID}-{region}"
    - path: cpu
      value: 4
      unless: [quota]
    - path: quota
      value: 9
      unless: [cpu]
    - path: disks
      value: [{gib: 7}]
    - path: credentialsSecret
      value: {name: cloud}
    - path: userDataSecret
      value: {name: user}
  environment:
`, 1),
	})
}

func TestComplete(t *testing.T) {
	const kind = `{"apiVersion":"example.io/v1","kind":"ExampleProviderSpec"`
	const generic = `{"apiVersion":"machine-iac.io/v1alpha1","kind":"TerraformMachineProviderSpec","module":"example"`
	const given = kind +
		`,"size":"s","placement":{"zone":"z"},"cpu":1,"disks":[{"gib":1}],"credentialsSecret":{"name":"c"},"userDataSecret":{}}`
	known := module.ClusterValues{module.ValueRegion: "r", module.ValueClusterID: "demo"}
	tests := map[string]struct {
		providerSpec string
		known        module.ClusterValues
		cluster      string
		// want defaults to the same providerSpec.
		want         string
		wantUnfilled []Unfilled
	}{
		"what is missing is written, with what is known of the cluster": {
			providerSpec: kind + `}`, known: known,
			want: `{"apiVersion":"example.io/v1","cpu":4,"credentialsSecret":{"name":"cloud"},"disks":[{"gib":7}],"kind":"ExampleProviderSpec",` +
				`"placement":{"zone":"demo-r"},"quota":9,"size":"small","userDataSecret":{"name":"user"}}`,
		},
		"what is given stays, and an object that is empty is given": {providerSpec: given, known: known},
		"null, an empty text and an empty list are what clients write for nothing": {
			providerSpec: kind +
				`,"size":"","placement":null,"disks":[],"quota":1,"credentialsSecret":{"name":"c"},"userDataSecret":{}}`, known: known,
			want: `{"apiVersion":"example.io/v1","credentialsSecret":{"name":"c"},"disks":[{"gib":7}],"kind":"ExampleProviderSpec",` +
				`"placement":{"zone":"demo-r"},"quota":1,"size":"small","userDataSecret":{}}`,
		},
		"another architecture has its own size": {
			providerSpec: kind +
				`,"placement":{"zone":"z"},"cpu":1,"disks":[{"gib":1}],"credentialsSecret":{},"userDataSecret":{}}`,
			known: module.ClusterValues{module.ValueArchitecture: "arm64"},
			want: `{"apiVersion":"example.io/v1","cpu":1,"credentialsSecret":{},"disks":[{"gib":1}],"kind":"ExampleProviderSpec",` +
				`"placement":{"zone":"z"},"size":"small-arm","userDataSecret":{}}`,
		},
		"a value with a cluster value that is not known is left out, and reported": {
			providerSpec: kind +
				`,"size":"s","placement":{"rack":"a"},"cpu":1,"disks":[{"gib":1}],"credentialsSecret":{},"userDataSecret":{}}`,
			wantUnfilled: []Unfilled{{Path: "spec.providerSpec.value.placement.zone",
				Missing: []string{"clusterID", "region"}}},
		},
		"a Machine's cluster is the one that its label names": {
			providerSpec: kind +
				`,"size":"s","placement":{"rack":"a"},"cpu":1,"disks":[{"gib":1}],"credentialsSecret":{},"userDataSecret":{}}`,
			known: known, cluster: "other",
			want: `{"apiVersion":"example.io/v1","cpu":1,"credentialsSecret":{},"disks":[{"gib":1}],"kind":"ExampleProviderSpec",` +
				`"placement":{"rack":"a","zone":"other-r"},"size":"s","userDataSecret":{}}`,
		},
		"what its author wrote is kept to the letter": {
			providerSpec: kind +
				`,"x":12345678901234567890.10,"y":"<&>\u0001","placement":"no object","cpu":1,"disks":[{"gib":1}],"credentialsSecret":{},"userDataSecret":{}}`, known: known,
			want: `{"apiVersion":"example.io/v1","cpu":1,"credentialsSecret":{},"disks":[{"gib":1}],"kind":"ExampleProviderSpec",` +
				`"placement":"no object","size":"small","userDataSecret":{},"x":12345678901234567890.10,"y":"<&>\u0001"}`,
		},
		"the kind for any module has values filled in, and its own Secrets are given": {
			providerSpec: generic + `,"credentialsSecret":{"name":"c"}}`, known: known,
			want: `{"apiVersion":"machine-iac.io/v1alpha1","credentialsSecret":{"name":"c"},"kind":"TerraformMachineProviderSpec","module":"example",` +
				`"values":{"cpu":4,"disks":[{"gib":7}],"placement":{"zone":"demo-r"},"quota":9,"size":"small","userDataSecret":{"name":"user"}}}`,
		},
		"its values may name them too": {
			providerSpec: generic +
				`,"values":{"size":"s","cpu":1,"disks":[{"gib":1}],"credentialsSecret":{"name":"c"},"userDataSecret":{"name":"u"}}}`,
			want: "",
			wantUnfilled: []Unfilled{{Path: "spec.providerSpec.value.values.placement.zone",
				Missing: []string{"clusterID", "region"}}},
		},
		"values that are none stay":                {providerSpec: generic + `,"values":[]}`, known: known},
		"a providerSpec that cannot be read stays": {providerSpec: kind + `,"size":"a","size":"b"}`, known: known},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			machine := machineWith(tc.providerSpec)
			if tc.cluster != "" {
				machine.Labels = map[string]string{machinev1beta1.MachineClusterIDLabel: tc.cluster}
			}
			completed, unfilled := Complete(machine, defaulted(t), tc.known)
			want := tc.want
			if want == "" {
				want = tc.providerSpec
			}
			if diff := cmp.Diff(want, string(completed.Spec.ProviderSpec.Value.Raw)); diff != "" {
				t.Errorf("providerSpec (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantUnfilled, unfilled); diff != "" {
				t.Errorf("unfilled (-want +got):\n%s", diff)
			}
			if got := string(machine.Spec.ProviderSpec.Value.Raw); got != tc.providerSpec {
				t.Errorf("the Machine itself was changed to %s", got)
			}
			again, _ := Complete(completed, defaulted(t), tc.known)
			if again != completed {
				t.Error("what is complete was written once more")
			}
		})
	}
}

func TestCompleteLeavesAloneWhatIsNotThere(t *testing.T) {
	machine := &machinev1beta1.Machine{}
	if completed, unfilled := Complete(machine, defaulted(t), nil); completed != machine || unfilled != nil {
		t.Errorf("got %v and %v for a Machine without a providerSpec", completed, unfilled)
	}
	machine = machineWith(`{"apiVersion":"example.io/v1","kind":"ExampleProviderSpec"}`)
	if completed, _ := Complete(machine, exampleModule(t), nil); completed != machine {
		t.Error("a module without defaults fills something in")
	}
}
