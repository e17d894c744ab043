package iac

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	machinev1 "github.com/openshift/api/machine/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/desired"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/load"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state/statefile"
	"github.com/machine-iac/machine-iac-operator/modules"
	"github.com/machine-iac/machine-iac-operator/test/builder"
)

// typed is a platform's type of the provider status, and what a client finds in it.
type typed struct {
	outputs      string
	status, want any
}

var platformStatuses = map[string]typed{
	"aws": {
		`{"instance_id":"i-1","instance_state":"running","dedicated_host":{"id":"h-01234567"}}`, &machinev1beta1.AWSMachineProviderStatus{},
		&machinev1beta1.AWSMachineProviderStatus{
			TypeMeta:   metav1.TypeMeta{APIVersion: "machine.openshift.io/v1beta1", Kind: "AWSMachineProviderStatus"},
			InstanceID: ptr.To("i-1"), InstanceState: ptr.To("running"), DedicatedHost: &machinev1beta1.DedicatedHostStatus{ID: "h-01234567"},
		},
	},
	"azure": {
		`{"instance_id":"5f6d","instance_state":"Running","vm_id":"/subscriptions/s/virtualMachines/m"}`, &machinev1beta1.AzureMachineProviderStatus{},
		&machinev1beta1.AzureMachineProviderStatus{
			TypeMeta: metav1.TypeMeta{APIVersion: "machine.openshift.io/v1beta1", Kind: "AzureMachineProviderStatus"},
			VMID:     ptr.To("/subscriptions/s/virtualMachines/m"), VMState: ptr.To(machinev1beta1.VMStateRunning),
		},
	},
	"gcp": {
		`{"instance_id":"m","instance_state":"RUNNING"}`, &machinev1beta1.GCPMachineProviderStatus{},
		&machinev1beta1.GCPMachineProviderStatus{
			TypeMeta:   metav1.TypeMeta{APIVersion: "machine.openshift.io/v1beta1", Kind: "GCPMachineProviderStatus"},
			InstanceID: ptr.To("m"), InstanceState: ptr.To("RUNNING"),
		},
	},
	"vsphere": {
		`{"instance_id":"4201","instance_state":"poweredOn"}`, &machinev1beta1.VSphereMachineProviderStatus{},
		&machinev1beta1.VSphereMachineProviderStatus{
			TypeMeta:   metav1.TypeMeta{APIVersion: "machine.openshift.io/v1beta1", Kind: "VSphereMachineProviderStatus"},
			InstanceID: ptr.To("4201"), InstanceState: ptr.To("poweredOn"),
		},
	},
	"nutanix": {
		`{"instance_id":"8c7a","instance_state":"COMPLETE"}`, &machinev1.NutanixMachineProviderStatus{},
		&machinev1.NutanixMachineProviderStatus{
			TypeMeta: metav1.TypeMeta{APIVersion: "machine.openshift.io/v1", Kind: "NutanixMachineProviderStatus"},
			VmUUID:   ptr.To("8c7a"),
		},
	},
	"openstack": {
		`{"instance_id":"8c7a","instance_state":"ACTIVE"}`, &metav1.TypeMeta{},
		&metav1.TypeMeta{APIVersion: "machine-iac.io/v1alpha1", Kind: "TerraformMachineProviderStatus"},
	},
}

// platformModules returns the built-in modules by name.
func platformModules(t *testing.T) map[string]*module.Module {
	t.Helper()
	loaded, err := load.Modules(modules.FS)
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]*module.Module{}
	for _, one := range loaded {
		named[one.Name()] = one
	}
	return named
}

// outputsOf returns facts with a state that has the outputs.
func outputsOf(t *testing.T, text string) *lifecycle.Facts {
	t.Helper()
	raw := map[string]json.RawMessage{}
	if err := json.Unmarshal([]byte(text), &raw); err != nil {
		t.Fatal(err)
	}
	f := &lifecycle.Facts{State: &statefile.State{Outputs: map[string]statefile.Output{}}}
	for name, value := range raw {
		f.State.Outputs[name] = statefile.Output{Value: value}
	}
	return f
}

// report writes the status of a Machine with these facts.
func report(t *testing.T, machine *machinev1beta1.Machine, f *lifecycle.Facts, by *module.Module) {
	t.Helper()
	out, err := f.Outputs()
	if err != nil {
		t.Fatal(err)
	}
	o := newObservation(runs.Update, machine, f)
	o.outputs, o.choice = out, desired.Choice{Modules: &desired.Modules{Current: by}}
	o.status.InstanceID, o.status.InstanceState = out.InstanceID, out.InstanceState
	o.write()
}

func TestClientsFindTheTypeOfTheirPlatform(t *testing.T) {
	served := platformModules(t)
	for name, tc := range platformStatuses {
		t.Run(name, func(t *testing.T) {
			machine, f := builder.Machine(), outputsOf(t, tc.outputs)
			report(t, machine, f, served[name])
			written := machine.Status.ProviderStatus
			if err := json.Unmarshal(written.Raw, tc.status); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, tc.status); diff != "" {
				t.Errorf("the status differs (-want +got):\n%s", diff)
			}
			if status := readProviderStatus(machine); status.InstanceID == "" || !status.Ours() {
				t.Errorf("got %s, want this project's fields beside", written.Raw)
			}
			if report(t, machine, f, served[name]); machine.Status.ProviderStatus != written {
				t.Errorf("the same outputs are written again: %s", machine.Status.ProviderStatus.Raw)
			}
			o := newObservation(runs.Destroy, machine, &lifecycle.Facts{})
			if o.write(); machine.Status.ProviderStatus != written {
				t.Errorf("without a module, the status becomes %s", machine.Status.ProviderStatus.Raw)
			}
		})
	}
}

// A state of an older module lacks an output, and what the Machine API Operator left may stay.
func TestAnOldStateLeavesThePlatformsFields(t *testing.T) {
	azure := platformModules(t)["azure"]
	for name, tc := range map[string]struct{ outputs, want string }{
		"missing":   {`{"instance_id":"5f6d"}`, "before"},
		"null":      {`{"instance_id":"5f6d","vm_id":null}`, "before"},
		"another":   {`{"instance_id":"5f6d","vm_id":"after"}`, "after"},
		"sensitive": {`{"instance_id":"5f6d","vm_id":"secret"}`, "before"},
	} {
		t.Run(name, func(t *testing.T) {
			machine, f := builder.Machine(), outputsOf(t, tc.outputs)
			machine.Status.ProviderStatus = &runtime.RawExtension{Raw: []byte(`{"kind":"AzureMachineProviderStatus","vmId":"before"}`)}
			if name == "sensitive" {
				f.State.Outputs["vm_id"] = statefile.Output{Value: []byte(`"secret"`), Sensitive: true}
			}
			report(t, machine, f, azure)
			got, _ := readProviderStatus(machine).Platform["vmId"].(string)
			if got != tc.want || bytes.Contains(machine.Status.ProviderStatus.Raw, []byte("secret")) {
				t.Errorf("got %s, want vmId %q", machine.Status.ProviderStatus.Raw, tc.want)
			}
		})
	}
}

func TestAStatusBeforeThePlatformsTypesBecomesOne(t *testing.T) {
	machine := builder.Machine()
	machine.Status.ProviderStatus = &runtime.RawExtension{Raw: []byte(
		`{"apiVersion":"machine-iac.io/v1alpha1","kind":"TerraformMachineProviderStatus","instanceId":"m","module":"gcp@sha256:00"}`)}
	report(t, machine, outputsOf(t, `{"instance_id":"m"}`), platformModules(t)["gcp"])
	status := readProviderStatus(machine)
	if status.Kind != "GCPMachineProviderStatus" || status.Module != "gcp@sha256:00" || status.ReportedBy != v1alpha1.ReportedBy {
		t.Errorf("got %s", machine.Status.ProviderStatus.Raw)
	}
}
