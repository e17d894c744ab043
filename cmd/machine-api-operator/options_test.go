package main

import (
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/machine-iac/machine-iac-operator/test/manual"
)

func TestTheManualListsEveryFlag(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "")
	t.Setenv("RELEASE_VERSION", "")
	manual.ListsEveryFlag(t, "../../docs/operator.md", newFlags(&options{}, &zap.Options{}))
}

func TestStartRefusesWhatCannotWork(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "")
	for flags, want := range map[string]string{
		"":                   "no namespace to install to",
		"--namespace=n more": `unexpected argument "more"`,
		"--namespce=n":       "flag provided but not defined",
		"--namespace=n --kubeconfig=/no/such/file": "finding the API server",
	} {
		if err := start(t.Context(), strings.Fields(flags)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", flags, err, want)
		}
	}
	if err := start(t.Context(), []string{"--version"}); err != nil {
		t.Error(err)
	}
}
