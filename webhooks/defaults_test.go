package webhooks

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/machine-iac/machine-iac-operator/internal/module"
)

const awsKind = `"apiVersion":"machine.openshift.io/v1beta1","kind":"AWSMachineProviderConfig"`

// awsRules are those of the module aws in a cluster of which all is known.
func awsRules(t testing.TB, architecture string) rules {
	t.Helper()
	facts := module.Facts{module.FactArchitecture: architecture, module.FactRegion: "us-east-1"}
	return newRules(Options{Catalog: catalogOf(t, "aws"), ClusterID: "demo-x7k2p", Facts: facts})
}

func raw(fields string) *runtime.RawExtension {
	return &runtime.RawExtension{Raw: []byte("{" + fields + "}")}
}

func TestDefaultersWriteWhatTheModuleSays(t *testing.T) {
	const (
		secrets = `"credentialsSecret":{"name":"aws-cloud-credentials"},`
		kind    = `"kind":"AWSMachineProviderConfig",`
		version = `"apiVersion":"machine.openshift.io/v1beta1",`
		ending  = `"userDataSecret":{"name":"worker-user-data"}}`
	)
	tests := map[string]struct {
		architecture string
		providerSpec string
		want         string
	}{
		"the least that there can be": {
			architecture: "amd64", providerSpec: awsKind + `,"ami":{"id":"ami-1"}`,
			want: `{"ami":{"id":"ami-1"},` + version + secrets + `"instanceType":"m5.large",` + kind + `"placement":{"region":"us-east-1"},` + ending,
		},
		"a cluster of another architecture": {
			architecture: "arm64", providerSpec: awsKind + `,"ami":{"id":"ami-1"}`,
			want: `{"ami":{"id":"ami-1"},` + version + secrets + `"instanceType":"m6g.large",` + kind + `"placement":{"region":"us-east-1"},` + ending,
		},
		"a placement without a region gets one": {
			architecture: "amd64", providerSpec: awsKind + `,"placement":{"availabilityZone":"us-east-1a"}`,
			want: `{` + version + secrets + `"instanceType":"m5.large",` + kind + `"placement":{"availabilityZone":"us-east-1a","region":"us-east-1"},` + ending,
		},
		"nothing that is given is overwritten, not even a Secret without a name": {
			architecture: "amd64", providerSpec: awsKind + `,"instanceType":"t3.micro","placement":{"region":"r"},"userDataSecret":{},"credentialsSecret":{"name":"c"}`,
		},
		"a kind that nobody serves stays, to be refused later": {
			architecture: "amd64", providerSpec: `"apiVersion":"machine.openshift.io/v1beta1","kind":"Other"`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			rules := awsRules(t, tc.architecture)
			if tc.want == "" {
				tc.want = "{" + tc.providerSpec + "}"
			}
			machine := machineWith(withValue(raw(tc.providerSpec)))
			if err := (&machineDefaulter{rules: rules}).Default(t.Context(), machine); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(machine.Spec.ProviderSpec.Value.Raw)); diff != "" {
				t.Errorf("Machine (-want +got):\n%s", diff)
			}
			set := setWith(withTemplate(raw(tc.providerSpec)))
			before := set.Spec.Template.Labels
			if err := (&machineSetDefaulter{rules: rules}).Default(t.Context(), set); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(set.Spec.Template.Spec.ProviderSpec.Value.Raw)); diff != "" {
				t.Errorf("MachineSet (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, set.Spec.Template.Labels); diff != "" {
				t.Errorf("a template gets no label (-want +got):\n%s", diff)
			}
		})
	}
}

func TestADefaultOfAnotherClusterIsThatOfTheMachine(t *testing.T) {
	rules := newRules(Options{Catalog: catalogOf(t, "aws"), ClusterID: "demo", Facts: module.Facts{module.FactClusterID: "stale"}})
	if got := rules.facts[module.FactClusterID]; got != "demo" {
		t.Errorf("the cluster is %q, want the option's", got)
	}
}

func TestWhatIsFilledInIsAcceptedAndWhatIsTakenAwayIsNot(t *testing.T) {
	rules := awsRules(t, "amd64")
	machine := machineWith(withValue(raw(awsKind + `,"ami":{"id":"ami-1"}`)))
	if err := (&machineDefaulter{rules: rules}).Default(t.Context(), machine); err != nil {
		t.Fatal(err)
	}
	if got := rules.newMachine(machine); len(got.errs) > 0 {
		t.Fatalf("what is filled in is refused: %v", got.errs)
	}
	without := func(path string) *machinev1beta1.Machine {
		fields := map[string]string{
			"instanceType": `"instanceType":"m5.large"`, "placement.region": `"placement":{"region":"us-east-1"}`,
			"userDataSecret": `"userDataSecret":{"name":"u"}`, "credentialsSecret": `"credentialsSecret":{"name":"c"}`,
		}
		text := awsKind + `,"ami":{"id":"ami-1"}`
		for name, field := range fields {
			if name != path {
				text += "," + field
			}
		}
		return machineWith(withValue(raw(text)))
	}
	for _, path := range []string{"instanceType", "placement.region", "userDataSecret", "credentialsSecret"} {
		got := rules.changedMachine(machine, without(path))
		if len(got.errs) != 1 || got.errs[0].Field != "spec.providerSpec.value."+path {
			t.Errorf("an update that takes %s away is answered %v", path, texts(got.errs))
		}
	}
}
