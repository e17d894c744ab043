package modules_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/machine-iac/machine-iac-operator/internal/module/load"
	"github.com/machine-iac/machine-iac-operator/internal/render"
)

func TestAWSTakesTheProviderSpecThatTheInstallerWrites(t *testing.T) {
	aws, err := load.Module(os.DirFS("aws"))
	if err != nil {
		t.Fatal(err)
	}
	for _, apiVersion := range []string{
		"machine.openshift.io/v1beta1", "machine.openshift.io/v1", "awsproviderconfig.openshift.io/v1beta1", "awsproviderconfig.openshift.io/v1",
	} {
		warnings, err := render.Check(render.Input{Machine: awsMachine(t, `{"apiVersion":"`+apiVersion+`"}`), ClusterID: "demo-x7k2p", Module: aws})
		if err != nil || len(warnings) > 0 {
			t.Errorf("%s: %v, %v", apiVersion, err, warnings)
		}
	}
}

func awsMachine(t *testing.T, changes string) *machinev1beta1.Machine {
	t.Helper()
	return exampleMachine(t, "aws", changes)
}

// exampleMachine returns a Machine of a module's example, with fields of its providerSpec changed.
func exampleMachine(t *testing.T, module, changes string) *machinev1beta1.Machine {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(module, "examples", "machineset.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var set machinev1beta1.MachineSet
	if err := yaml.UnmarshalStrict(content, &set); err != nil {
		t.Fatal(err)
	}
	value := set.Spec.Template.Spec.ProviderSpec.Value
	fields := map[string]any{}
	for _, layer := range [][]byte{value.Raw, []byte(changes)} {
		if err := json.Unmarshal(layer, &fields); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	machine := &machinev1beta1.Machine{Spec: set.Spec.Template.Spec}
	machine.Namespace, machine.Labels = set.Namespace, set.Spec.Template.Labels
	machine.Spec.ProviderSpec.Value = &runtime.RawExtension{Raw: raw}
	return machine
}
