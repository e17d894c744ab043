package modules_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/render"
	"github.com/machine-iac/machine-iac-operator/test/rights"
)

// TestRightsAreWhatALifeAsksFor compares spec.rights, and what OpenShift's manifests grant, with the calls of lives.
func TestRightsAreWhatALifeAsksFor(t *testing.T) {
	for _, name := range []string{"aws", "azure", "gcp"} {
		lives, err := rights.Lives(name)
		if err != nil {
			t.Fatal(err)
		}
		granted := grantedBy(t, "openshift-machine-api-"+name)
		var needed []string
		for _, one := range lives {
			needed = append(needed, one.Calls...)
		}
		for _, one := range lives {
			if diff := cmp.Diff(one.Calls, rightsOf(t, name, one)); diff != "" {
				t.Errorf("%s: %s: the rights (-asked for +listed):\n%s", name, one.Life, diff)
			}
			isGranted := func(call string) bool { return slices.Contains(granted, call) }
			if left := slices.DeleteFunc(one.Calls, isGranted); len(left) > 0 {
				t.Errorf("%s: %s: the CredentialsRequest does not grant %v", name, one.Life, left)
			}
			isNeedless := func(call string) bool { return isGranted(call) && !slices.Contains(needed, call) }
			if slices.ContainsFunc(one.Refused, isNeedless) {
				t.Errorf("%s: %s: the CredentialsRequest grants one of %v", name, one.Life, one.Refused)
			}
		}
	}
}

// grantedBy returns what a CredentialsRequest of the manifests grants.
func grantedBy(t *testing.T, name string) (granted []string) {
	t.Helper()
	file := filepath.Join("..", "install", "openshift", "0000_30_machine-api-operator_00_credentials-request.yaml")
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for document := range strings.SplitSeq(string(content), "\n---\n") {
		var request struct {
			Metadata struct{ Name string }
			Spec     struct {
				ProviderSpec struct {
					Permissions      []string
					StatementEntries []struct{ Action []string }
				}
			}
		}
		if err := yaml.Unmarshal([]byte(document), &request); err != nil {
			t.Fatal(err)
		}
		if request.Metadata.Name == name {
			granted = request.Spec.ProviderSpec.Permissions
			for _, statement := range request.Spec.ProviderSpec.StatementEntries {
				granted = append(granted, statement.Action...)
			}
		}
	}
	return granted
}

// rightsOf returns what the Machine of a life needs, sorted.
func rightsOf(t *testing.T, name string, life rights.Life) []string {
	t.Helper()
	fields, err := json.Marshal(life.Fields)
	if err != nil {
		t.Fatal(err)
	}
	if life.Fields == nil {
		fields = []byte("{}")
	}
	machine := exampleMachine(t, name, string(fields))
	maps.Copy(machine.Labels, life.Labels)
	cluster := &module.Cluster{ResourceTags: life.Tags}
	input := render.Input{Machine: machine, ClusterID: "demo", Module: keptIn(t, name).Module, Cluster: cluster}
	if _, err := render.Check(input); err != nil {
		t.Fatal(err)
	}
	var actions []string
	for _, entry := range render.Rights(input) {
		actions = append(actions, entry.Actions...)
	}
	slices.Sort(actions)
	return actions
}
