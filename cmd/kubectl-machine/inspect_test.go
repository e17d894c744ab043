package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/machine-iac/machine-iac-operator/test/builder"
	"github.com/machine-iac/machine-iac-operator/test/controlplane"
)

// world is an API server and a kubeconfig for it whose namespace has a MachineSet "workers" with a Machine "workers-a".
type world struct {
	*controlplane.ControlPlane
	namespace, kubeconfig string
	machine               *machinev1beta1.Machine
}

func newWorld(t *testing.T) *world {
	t.Helper()
	plane, err := controlplane.Start(controlplane.Default)
	if err != nil {
		t.Fatalf("%v; run 'make tools'", err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(); err != nil {
			t.Error(err)
		}
	})
	w := &world{ControlPlane: plane, kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	if w.namespace, err = plane.Namespace(t.Context()); err != nil {
		t.Fatal(err)
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: plane.Config.Host, CertificateAuthorityData: plane.Config.CAData}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{ClientCertificateData: plane.Config.CertData, ClientKeyData: plane.Config.KeyData}
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u", Namespace: w.namespace}
	config.CurrentContext = "x"
	if err := clientcmd.WriteToFile(*config, w.kubeconfig); err != nil {
		t.Fatal(err)
	}
	set := builder.In(w.namespace, builder.MachineSet(func(s *machinev1beta1.MachineSet) { s.Name = "workers" }))
	if err := plane.Create(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	w.machine = builder.Machine(builder.WithOwner(set), builder.WithPhase("Provisioned"), func(m *machinev1beta1.Machine) { m.Name = "workers-a" })
	if err := plane.Create(t.Context(), w.machine); err != nil {
		t.Fatal(err)
	}
	return w
}

// ask runs a command line against the API server.
func (w *world) ask(t *testing.T, line string) result {
	t.Helper()
	t.Setenv("KUBECONFIG", w.kubeconfig)
	return runCommand(t, strings.Fields(line)...)
}

// TestCommandsAgainstAPIServer types what a person would.
func TestCommandsAgainstAPIServer(t *testing.T) {
	w := newWorld(t)
	cases := map[string]struct {
		line     string
		wantCode int
		wantOut  string
		wantErr  string
	}{
		"a tree":                         {line: "tree", wantOut: "\n└─ Machine/workers-a   Provisioned "},
		"a tree of a Machine":            {line: "tree workers-a -o wide", wantOut: "\nMachine/workers-a "},
		"a tree of nothing":              {line: "tree -n default", wantErr: "There are no MachineSets and no Machines in namespace default; -n names another one, such as openshift-machine-api\n"},
		"a tree of nothing, for scripts": {line: "tree -n default -o json", wantOut: "{\n  \"items\": []\n}\n", wantErr: "There are no MachineSets"},
		"a tree of something else":       {line: "tree worker", wantCode: 1, wantErr: "error: there is no MachineSet or Machine \"worker\""},
		"a tree for nobody":              {line: "tree --as eve", wantCode: 1, wantErr: "User \"eve\" cannot list resource \"machinesets\""},
		"a tree in a format that is not": {line: "tree -o xml", wantCode: 1, wantErr: "the output format \"xml\" is not known"},
		"completing a tree":              {line: "__complete tree w", wantOut: "workers\nworkers-a\n:4"},
		"completing a namespace":         {line: "__complete tree -n d", wantOut: "default\n"},
		"completing a format":            {line: "__complete tree -o w", wantOut: "wide\ta table with everything\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := w.ask(t, tc.line)
			if got.code != tc.wantCode || !strings.Contains(got.out, tc.wantOut) || !strings.Contains(got.err, tc.wantErr) || tc.wantOut == "" && got.out != "" {
				t.Errorf("it ends with %d, want %d\noutput %q, want %q\nerrors %q, want %q", got.code, tc.wantCode, got.out, tc.wantOut, got.err, tc.wantErr)
			}
		})
	}
	t.Run("a tree of all namespaces, for scripts", func(t *testing.T) {
		got := w.ask(t, "tree -A -o json")
		var forest struct {
			Items []struct{ Namespace, Name string }
		}
		if err := json.Unmarshal([]byte(got.out), &forest); err != nil || len(forest.Items) != 1 || forest.Items[0].Namespace != w.namespace {
			t.Errorf("%v; it prints\n%s%s", err, got.out, got.err)
		}
	})
}
