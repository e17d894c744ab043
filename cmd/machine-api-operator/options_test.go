package main

import (
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/machine-iac/machine-iac-operator/internal/operator"
	"github.com/machine-iac/machine-iac-operator/test/manual"
)

func TestTheManualListsEveryFlag(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "")
	t.Setenv("RELEASE_VERSION", "")
	manual.ListsEveryFlag(t, "../../docs/operator.md", newFlags(&options{}, &zap.Options{}))
}

// What the operator applies may hold Secrets, and so may what it reads.
func TestBodiesOfRequestsAreNeverLogged(t *testing.T) {
	var text strings.Builder
	logging := zap.Options{DestWriter: &text}
	if err := newFlags(&options{}, &logging).Parse([]string{"--zap-log-level=10"}); err != nil {
		t.Fatal(err)
	}
	log := newLogger(&logging)
	log.V(7).Info("headers")
	log.V(8).Info("bodies")
	if got := text.String(); !strings.Contains(got, "headers") || strings.Contains(got, "bodies") {
		t.Errorf("logged is %s", got)
	}
}

func TestTheLeaseIsLongerOnAControlPlaneOfOneNode(t *testing.T) {
	lease, renew, retry := leaseTimes(operator.Start{})
	if lease != 137*time.Second || renew != 107*time.Second || retry != 26*time.Second {
		t.Errorf("%s, %s, %s", lease, renew, retry)
	}
	lease, renew, retry = leaseTimes(operator.Start{SingleNode: true})
	if lease != 270*time.Second || renew != 240*time.Second || retry != 60*time.Second {
		t.Errorf("on one node %s, %s, %s", lease, renew, retry)
	}
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
