package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/machine-iac/machine-iac-operator/internal/state"
	"github.com/machine-iac/machine-iac-operator/test/builder"
	"github.com/machine-iac/machine-iac-operator/test/controlplane"
)

// world is an API server and a kubeconfig for it whose namespace has a MachineSet "workers" with a Machine "workers-a".
type world struct {
	*controlplane.ControlPlane
	namespace, kubeconfig string
	machine               *machinev1beta1.Machine
}

// newSharedWorld returns one whose API server other tests have namespaces of as well.
func newSharedWorld(t *testing.T) *world {
	t.Helper()
	plane, err := sharedPlane()
	if err != nil {
		t.Fatalf("%v; run 'make tools'", err)
	}
	return newWorldOn(t, plane)
}

// newWorld returns one whose API server no other test uses.
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
	return newWorldOn(t, plane)
}

func newWorldOn(t *testing.T, plane *controlplane.ControlPlane) *world {
	t.Helper()
	w := &world{ControlPlane: plane, kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	var err error
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
	if err := w.states(t, set); err != nil {
		t.Fatal(err)
	}
	return w
}

// states gives the Machine two versions of a state and a run that goes on, and makes "workers-b", whose create has failed.
func (w *world) states(t *testing.T, set *machinev1beta1.MachineSet) error {
	session, err := w.acquire(t, w.machine, nil)
	if err != nil {
		return err
	}
	for _, body := range []string{stateBody(1), stateBody(2)} {
		if err := session.Put(t.Context(), []byte(body)); err != nil {
			return err
		}
	}
	failed := builder.Machine(builder.WithOwner(set), builder.WithPhase("Provisioning"), func(m *machinev1beta1.Machine) { m.Name = "workers-b" })
	if err := w.Create(t.Context(), failed); err != nil {
		return err
	}
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	if _, err := writer.Write([]byte("Creating...\n\x1b[2JError: no room\n")); err != nil {
		return err
	}
	if err := writer.Close(); err != nil {
		return err
	}
	session, err = w.acquire(t, failed, state.Attachments{"output": packed.Bytes()})
	if err != nil {
		return err
	}
	last := `{"operation":"create","run":"run-1","began":"2026-03-01T12:00:00Z","ended":"2026-03-01T12:00:02.5Z","result":"Failed","message":"no room; it is tried again"}`
	return session.Release(t.Context(), state.MetaPatch{"last-run": &last})
}

func (w *world) acquire(t *testing.T, machine *machinev1beta1.Machine, attached state.Attachments) (*state.Session, error) {
	return state.New(w.Client, state.Options{}).Acquire(t.Context(), state.KeyFor(w.namespace, machine.UID), state.AcquireOptions{
		Lock:        state.Lock{Owner: "manager-1", Run: "run-1", Operation: "update"},
		Annotations: map[string]string{state.AnnotationMachine: machine.Name}, Labels: map[string]string{state.LabelMachineUID: string(machine.UID)},
		Attachments: attached,
	})
}

func stateBody(serial int) string {
	return fmt.Sprintf(`{"version":4,"serial":%d,"lineage":"l","outputs":{"pin":{"value":"very-secret","sensitive":true}},`+
		`"resources":[{"mode":"managed","type":"t","name":"this","provider":"p","instances":[{"attributes":{"id":"i-1"}}]}]}`+"\n", serial)
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
		"a tree":                         {line: "tree", wantOut: "\n├─ Machine/workers-a   Provisioned "},
		"a tree of a Machine":            {line: "tree workers-a -o wide", wantOut: "\nMachine/workers-a "},
		"a tree of nothing":              {line: "tree -n default", wantErr: "There are no MachineSets and no Machines in namespace default; -n names another one, such as openshift-machine-api\n"},
		"a tree of nothing, for scripts": {line: "tree -n default -o json", wantOut: "{\n    \"items\": []\n}\n", wantErr: "There are no MachineSets"},
		"a tree of something else":       {line: "tree worker", wantCode: 1, wantErr: "error: there is no MachineDeployment or MachineSet or Machine \"worker\""},
		"a tree for nobody":              {line: "tree --as eve", wantCode: 1, wantErr: "User \"eve\" cannot list resource \"machinesets\""},
		"a tree in a format that is not": {line: "tree -o xml", wantCode: 1, wantErr: "unable to match a printer suitable for the output format \"xml\", allowed formats are: "},
		"a tree of kinds and names":      {line: "tree machineset/workers machine/workers-a", wantOut: "\nMachineSet/workers     0/1 ready"},
		"a tree of labels":               {line: "tree -l kind=none", wantErr: "There are no MachineSets and no Machines with labels \"kind=none\" in namespace "},
		"a tree of another kind":         {line: "tree node/x", wantCode: 1, wantErr: "\"node/x\" names no MachineDeployment, MachineSet or Machine; write machinedeployment/NAME, machineset/NAME or machine/NAME"},
		"names of all namespaces":        {line: "tree workers -A", wantCode: 1, wantErr: "a resource cannot be retrieved by name across all namespaces"},
		"names and labels":               {line: "runs workers-a -l a=b", wantCode: 1, wantErr: "selectors and the all flag cannot be used when passing resource/name arguments"},
		"labels that are none":           {line: "runs -l a=b=c", wantCode: 1, wantErr: "found '=', expected: ',' or 'end of string'"},
		"states":                         {line: "state list", wantOut: "\nworkers-a   Provisioned    1           2        0.2 KiB   "},
		"states of nothing":              {line: "state list -n default", wantErr: "There are no states of Machines in namespace default"},
		"a state":                        {line: "state show workers-a", wantOut: "\n\nOutputs\n  pin = (sensitive)\n"},
		"a state, for scripts":           {line: "state show workers-a -o json", wantOut: "\"pin\": \"(sensitive)\"\n"},
		"a state, whole":                 {line: "state show workers-a --show-sensitive", wantOut: "  pin = \"very-secret\"\n", wantErr: "warning: this holds credentials"},
		"a state as it is":               {line: "state pull workers-a", wantOut: stateBody(2), wantErr: "warning: this holds credentials"},
		"an earlier state":               {line: "state pull workers-a --serial 1", wantOut: stateBody(1), wantErr: "warning: this holds credentials"},
		"a state that is not kept":       {line: "state pull workers-a --serial 0", wantCode: 1, wantErr: "has no version 0; it has 2, 1"},
		"a state of nobody":              {line: "state show workers-d", wantCode: 1, wantErr: "did you mean workers-a, workers-b?"},
		"two states at once":             {line: "state show workers-a workers-a", wantCode: 1, wantErr: "accepts 1 arg(s), received 2"},
		"completing a state":             {line: "__complete state show w", wantOut: "workers-a\nworkers-b\n:4"},
		"completing it once":             {line: "__complete state pull workers-a w", wantOut: ":4\n"},
		"runs":                           {line: "runs", wantOut: "\nworkers-a   update   Running "},
		"runs of a Machine, for scripts": {line: "runs workers-a -o yaml", wantOut: "  phase: Running\n"},
		"runs of a MachineSet":           {line: "runs machineset/workers -o name", wantOut: "machine.machine.openshift.io/workers-a\nmachine.machine.openshift.io/workers-b\n"},
		"a path in runs":                 {line: "runs machine/workers-b -o jsonpath={.items[0].last.result}", wantOut: "Failed"},
		"columns of drift":               {line: "drift -o custom-columns=:.machine,:.result --no-headers", wantOut: "workers-a   NotChecked\nworkers-b   NotChecked\n"},
		"states of a MachineSet":         {line: "state list machinesets/workers --no-headers", wantOut: "workers-a   Provisioned    1     2     0.2 KiB   "},
		"a state by kind and name":       {line: "state show machine/workers-a", wantOut: "\n\nOutputs\n  pin = (sensitive)\n"},
		"a state of a MachineSet":        {line: "state show machineset/workers", wantCode: 1, wantErr: "\"machineset/workers\" is no Machine; name one of its Machines"},
		"active runs":                    {line: "runs --active", wantOut: "\nworkers-a "},
		"runs of nothing":                {line: "runs -n default", wantErr: "There are no Machines in namespace default"},
		"runs of nobody":                 {line: "runs workers", wantCode: 1, wantErr: "did you mean workers-a, workers-b?"},
		"completing runs":                {line: "__complete runs w", wantOut: "workers-a\nworkers-b\n:4"},
		"drift":                          {line: "drift", wantOut: "\nworkers-a   NotChecked   -       -         \n"},
		"drift where there is none":      {line: "drift --drifted", wantErr: "No check has found drift in namespace "},
		"drift of nothing":               {line: "drift -n default", wantErr: "There are no Machines in namespace default"},
		"drift of nobody":                {line: "drift x", wantCode: 1, wantErr: "there is no Machine \"x\""},
		"completing drift":               {line: "__complete drift w", wantOut: "workers-a\nworkers-b\n:4"},
		"the engine's output":            {line: "logs workers-b", wantOut: "Creating...\n[2JError: no room\n", wantErr: "note: create, Failed, began 2026-03-01T12:00:00Z, took 2.5s\nnote: no room; it is tried again\n"},
		"no output yet":                  {line: "logs workers-a", wantCode: 1, wantErr: "'kubectl machine runs workers-a' shows whether one goes on"},
		"the output of nobody":           {line: "logs workers-d", wantCode: 1, wantErr: "did you mean workers-a, workers-b?"},
		"completing logs":                {line: "__complete logs w", wantOut: "workers-a\nworkers-b\n:4"},
		"completing a tree":              {line: "__complete tree w", wantOut: "workers\nworkers-a\nworkers-b\n:4"},
		"completing a namespace":         {line: "__complete tree -n d", wantOut: "default\n"},
		"completing a format":            {line: "__complete tree -o w", wantOut: "wide\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := w.ask(t, tc.line)
			if got.code != tc.wantCode || !strings.Contains(got.out, tc.wantOut) || !strings.Contains(got.err, tc.wantErr) || tc.wantOut == "" && got.out != "" || tc.wantErr == "" && got.err != "" && !strings.HasPrefix(tc.line, "__") {
				t.Errorf("it ends with %d, want %d\noutput %q, want %q\nerrors %q, want %q", got.code, tc.wantCode, got.out, tc.wantOut, got.err, tc.wantErr)
			}
		})
	}
	t.Run("runs for somebody who may not read Secrets", func(t *testing.T) {
		rule := rbacv1.PolicyRule{APIGroups: []string{"machine.openshift.io"}, Resources: []string{"machines"}, Verbs: []string{"list"}}
		if err := w.Grant(t.Context(), w.namespace, "viewer", rule); err != nil {
			t.Fatal(err)
		}
		got := w.ask(t, "runs --as viewer")
		if got.code != 0 || !strings.Contains(got.out, "\nworkers-a ") || !strings.HasPrefix(got.err, "note: you may not list Secrets") {
			t.Errorf("it ends with %d and prints\n%s%s", got.code, got.out, got.err)
		}
	})
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
