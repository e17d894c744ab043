package stacks_test

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"testing"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/load"
	"github.com/machine-iac/machine-iac-operator/internal/render"
)

const (
	clusterID  = "demo-x7k2p"
	machineUID = "6d4a1c0e-0c6b-4c70-9a39-1f8f4f6f5a01"
)

// instanceOfStack is a Machine of a stack between its runs.
type instanceOfStack struct {
	history
	stack   *module.Module
	machine *machinev1beta1.Machine
	// values are those of its providerSpec, JSON.
	values string
	// credentials is the data of its Secret, userData its user data.
	credentials map[string][]byte
	userData    string
}

func newInstance(t *testing.T, stack, mirror, values string) *instanceOfStack {
	t.Helper()
	program := os.DirFS(stack)
	loaded, err := load.Module(program)
	if err != nil {
		t.Fatal(err)
	}
	return &instanceOfStack{
		history: history{t: t, engine: newPulumi(t, mirror), project: stack, program: program}, stack: loaded, values: values, userData: userData,
		machine: &machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "worker-0", Namespace: "machines", UID: types.UID(machineUID)}},
	}
}

// given renders what a run is given, for the Machine's values with others in the place of some.
func (i *instanceOfStack) given(changed string) given {
	i.t.Helper()
	inputs, err := i.render(changed)
	if err != nil {
		i.t.Fatal(err)
	}
	variables := map[string]json.RawMessage{}
	locals, err := i.stack.Locals(inputs.Variables)
	if err != nil {
		i.t.Fatal(err)
	}
	if err := json.Unmarshal(inputs.Variables, &variables); err != nil {
		i.t.Fatal(err)
	}
	variables[module.ConfigLocals] = locals
	raw, err := json.Marshal(variables)
	if err != nil {
		i.t.Fatal(err)
	}
	return given{variables: raw, environment: inputs.Environment, files: inputs.Files, sensitive: inputs.Sensitive}
}

func (i *instanceOfStack) render(changed string) (*render.Inputs, error) {
	i.t.Helper()
	values, other := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	for raw, into := range map[string]*map[string]json.RawMessage{i.values: &values, changed: &other} {
		if err := json.Unmarshal([]byte(raw), into); err != nil {
			i.t.Fatal(err)
		}
	}
	maps.Copy(values, other)
	raw, err := json.Marshal(map[string]any{
		"apiVersion": "machine-iac.io/v1alpha1", "kind": v1alpha1.PulumiMachineProviderSpecKind, "stack": i.stack.Name(), "values": values,
		"credentialsSecret": map[string]string{"name": "c"}, "userDataSecret": map[string]string{"name": "u"},
	})
	if err != nil {
		i.t.Fatal(err)
	}
	i.machine.Spec.ProviderSpec.Value = &runtime.RawExtension{Raw: raw}
	return render.Render(render.Input{
		Machine: i.machine, ClusterID: clusterID, Module: i.stack, UserData: []byte(i.userData), Credentials: i.credentials,
	})
}

// absent reports whether an error of a lookup says that there is nothing: every error of the run does, in the words of module.yaml. One that
// says anything else stops a create.
func (i *instanceOfStack) absent(err error) bool {
	failed, ok := errors.AsType[*failure.Error](err)
	found := 0
	if ok {
		for _, diagnostic := range failed.Diagnostics {
			if diagnostic.Severity != failure.SeverityError {
				continue
			}
			if found++; !i.stack.Absent(diagnostic.Summary + ": " + diagnostic.Detail) {
				i.t.Logf("this is another error: %q, %q", diagnostic.Summary, diagnostic.Detail)
				return false
			}
		}
	}
	return found > 0
}
