package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/machine-iac/machine-iac-operator/api/v1beta1"
	"github.com/machine-iac/machine-iac-operator/internal/module/source"
	"github.com/machine-iac/machine-iac-operator/internal/plan/preview"
	"github.com/machine-iac/machine-iac-operator/test/builder"
	"github.com/machine-iac/machine-iac-operator/test/controlplane"
	"github.com/machine-iac/machine-iac-operator/test/long"
)

func TestPlanAgainstACluster(t *testing.T) {
	long.Test(t)
	plane, err := sharedPlane()
	if err != nil {
		t.Fatal(err)
	}
	namespace, err := plane.Namespace(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	config := clientcmdapi.NewConfig()
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u", Namespace: namespace}
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: plane.Config.Host, CertificateAuthorityData: plane.Config.CAData}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{ClientCertificateData: plane.Config.CertData, ClientKeyData: plane.Config.KeyData}
	config.CurrentContext = "x"
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		t.Fatal(err)
	}
	set := builder.In(namespace, builder.MachineSet())
	set.Name = "workers"
	set.Spec.Template.Spec.ProviderSpec.Value = builder.ProviderSpec(map[string]any{
		"apiVersion": "kubemarkproviderconfig.openshift.io/v1alpha1", "kind": "KubemarkMachineProviderConfig", "instanceType": "hollow",
		"credentialsSecret": map[string]any{"name": "c"},
	})
	if err := plane.Create(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	machine := builder.Machine(builder.WithOwner(set))
	machine.Spec = set.Spec.Template.Spec
	if err := plane.Create(t.Context(), machine); err != nil {
		t.Fatal(err)
	}
	deployed := deployedWith(t, plane, set)
	flags := append([]string{"plan", "--cache-dir", t.TempDir(), "--kubeconfig", kubeconfig}, realEngine(t)...)
	cases := map[string]struct {
		arguments []string
		wantCode  int
		wantOut   string
		wantErr   string
	}{
		"a MachineSet by its name":              {arguments: []string{"workers"}, wantOut: "MachineSet " + namespace + "/workers: 1 replica\n"},
		"a MachineSet by kind and name":         {arguments: []string{"machineset/workers"}, wantOut: "be created"},
		"with credentials that are missing":     {arguments: []string{"workers", "--refresh"}, wantOut: "with the credentials, named in spec.providerSpec.value, does not exist"},
		"a key that is not there":               {arguments: []string{"workers", "--module-key-file", "/none"}, wantCode: 1, wantErr: "reading the key of modules: stat /none"},
		"a Machine":                             {arguments: []string{"machine/" + machine.Name, "--detailed-exitcode"}, wantCode: 2, wantOut: "it has no instance yet"},
		"a manifest of what is not there":       {arguments: []string{"--live", "-f", manifestOf(t, "2"), "-n", "elsewhere"}, wantOut: "MachineSet openshift-machine-api/hollow is not in the cluster\n"},
		"a MachineSet that is not there":        {arguments: []string{"nobody"}, wantCode: 1, wantErr: "error: there is no MachineSet \"nobody\" in namespace " + namespace},
		"a MachineDeployment":                   {arguments: []string{"md/pool"}, wantCode: 2, wantOut: deployed + "   3          -       be replaced   instanceType\n"},
		"only in place":                         {arguments: []string{"machinedeployment/pool", "--expect", "in-place"}, wantCode: 1, wantOut: "be replaced", wantErr: "error: --expect in-place: MachineDeployment " + namespace + "/pool: 1 of 1 Machine cannot change in place, because of instanceType: " + deployed + "\n"},
		"in place as expected":                  {arguments: []string{"workers", "--expect", "in-place"}, wantOut: "be created"},
		"a MachineDeployment that is not there": {arguments: []string{"--live", "-f", repository(t, "modules", "kubemark", "examples", "machinedeployment.yaml"), "-n", namespace}, wantOut: "MachineDeployment openshift-machine-api/pool is not in the cluster\n"},
		"a cluster that takes no such user":     {arguments: []string{"workers", "--as", "nobody"}, wantCode: 1, wantErr: "forbidden"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := runCommand(t, append(flags, tc.arguments...)...)
			if got.code != tc.wantCode || !strings.Contains(got.out, tc.wantOut) || !strings.Contains(got.err, tc.wantErr) || (tc.wantErr == "") != (got.err == "") {
				t.Errorf("it ends with %d, want %d\noutput %q, want %q\nerrors %q, want %q", got.code, tc.wantCode, got.out, tc.wantOut, got.err, tc.wantErr)
			}
		})
	}
	t.Run("by a user who may not read the cluster's configuration", func(t *testing.T) {
		rights := []rbacv1.PolicyRule{
			{APIGroups: []string{"machine.openshift.io"}, Resources: []string{"machines", "machinesets"}, Verbs: []string{"get", "list"}},
			{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}},
		}
		if err := plane.Grant(t.Context(), namespace, "viewer", rights...); err != nil {
			t.Fatal(err)
		}
		for flag, want := range map[string]bool{"--refresh": true, "--live": false} {
			got := runCommand(t, append(flags, "workers", "--as", "viewer", flag)...)
			if strings.Contains(got.err, "note: you may not read how the cluster reaches its infrastructure") != want {
				t.Errorf("with %q it ends with %d and says %s", flag, got.code, got.err)
			}
		}
	})
	t.Run("as JSON", func(t *testing.T) {
		got := runCommand(t, append(flags, "workers", "-o", "json")...)
		var read preview.Preview
		if err := json.Unmarshal([]byte(got.out), &read); err != nil {
			t.Fatalf("%v in %s%s", err, got.out, got.err)
		}
		if live := read.Sets[0].Live; live == nil || len(live.Machines) != 1 || live.Machines[0].Result != preview.NotMade || read.Summary.Live.Other != 1 {
			t.Errorf("it prints %s", got.out)
		}
	})
}

// deployedWith creates the MachineDeployment "pool", of an instanceType that its Machine does not have, and returns the Machine's name.
func deployedWith(t *testing.T, plane *controlplane.ControlPlane, set *machinev1beta1.MachineSet) string {
	t.Helper()
	d := &v1beta1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, Name: "pool"}}
	d.Spec.Selector, d.Spec.Strategy.Type = set.Spec.Selector, v1beta1.RollingUpdate
	set.Spec.Template.DeepCopyInto(&d.Spec.Template)
	d.Spec.Template.Spec.ProviderSpec.Value.Raw = bytes.ReplaceAll(d.Spec.Template.Spec.ProviderSpec.Value.Raw, []byte("hollow"), []byte("huge"))
	if err := plane.Create(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	old := builder.In(set.Namespace, builder.MachineSet(builder.SelectingAs(set)))
	old.Annotations = map[string]string{v1beta1.RevisionAnnotation: "3"}
	old.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(d, v1beta1.GroupVersion.WithKind(v1beta1.MachineDeploymentKind))}
	old.Spec.Template.Spec = set.Spec.Template.Spec
	if err := plane.Create(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	machine := builder.Machine(builder.WithOwner(old))
	machine.Spec = set.Spec.Template.Spec
	if err := plane.Create(t.Context(), machine); err != nil {
		t.Fatal(err)
	}
	return machine.Name
}

func TestPlanWithAModuleFromAnArchive(t *testing.T) {
	packed, err := source.Pack(os.DirFS(repository(t, "internal", "plan", "preview", "testdata", "modules", "example")))
	if err != nil {
		t.Fatal(err)
	}
	archive := filepath.Join(t.TempDir(), "example.tar.gz")
	write(t, archive, string(packed.Archive))
	sum := sha256.Sum256(packed.Archive)
	digest := hex.EncodeToString(sum[:])
	manifest := repository(t, "internal", "plan", "preview", "testdata", "golden", "machineset.input.yaml")
	flags := append([]string{"plan", "--cache-dir", t.TempDir(), "--cluster-id", "demo", "-f", manifest}, realEngine(t)...)
	got := runCommand(t, append(flags, "--module-source", "file://"+archive+"@sha256:"+digest)...)
	if got.code != 0 || !strings.Contains(got.out, "Preview: 1 MachineSet, ") {
		t.Errorf("it ends with %d, %q and\n%s", got.code, got.err, got.out)
	}
	got = runCommand(t, append(flags, "--module-source", "file://"+archive+"@sha256:"+strings.Repeat("0", 64))...)
	if got.code != 1 || !strings.Contains(got.err, "sha256") {
		t.Errorf("with another digest it ends with %d and %q", got.code, got.err)
	}
}
