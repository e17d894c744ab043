package main

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/test/long"
)

func TestTheVersionOfTheOperatorIsTheOneThatItHasRolledOut(t *testing.T) {
	long.Test(t)
	i := newInstallation(t)
	got := runCommand(t, "version", "--kubeconfig", i.kubeconfig)
	if want := "no machine-api-operator in the cluster has reported a version"; got.code != 1 || !strings.Contains(got.err, want) {
		t.Errorf("before the first rollout it ends with %d and %q; want 1 and %q", got.code, got.err, want)
	}
	reported := client.RawPatch(types.MergePatchType,
		[]byte(`{"status":{"versions":[{"name":"other","version":"1.0.0"},{"name":"operator","version":"1.2.3"}]}}`))
	if err := i.Client.Status().Patch(t.Context(), i.own[len(i.own)-1].DeepCopy(), reported); err != nil {
		t.Fatal(err)
	}
	got = runCommand(t, "version", "--kubeconfig", i.kubeconfig, "-o", "yaml")
	if want := "clientVersion: " + version + "\noperatorVersion: 1.2.3\n"; got.code != 0 || got.out != want {
		t.Errorf("it ends with %d, %q and %q; want %q", got.code, got.err, got.out, want)
	}
}
