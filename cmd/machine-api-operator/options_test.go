package main

import (
	"os"
	"path/filepath"
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
	manual.ListsEveryFlag(t, "../..", newFlags(&options{}, &zap.Options{}))
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

// A Deployment written for machine-api-operator starts this one.
func TestTheArgumentsOfMachineAPIOperatorAreAccepted(t *testing.T) {
	images := filepath.Join(t.TempDir(), "images.json")
	if err := os.WriteFile(images, []byte(`{"machineAPIOperator": "example.org/release@sha256:2", "kubeRBACProxy": "x"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	given := []string{"start", "--images-json=" + images, "--logtostderr=true", "--alsologtostderr", "--v=3", "--namespace=n"}
	if err := start(t.Context(), append(given, "--version")); err != nil {
		t.Error(err)
	}
	var o options
	var logging zap.Options
	if err := newFlags(&o, &logging).Parse(given[1:]); err != nil {
		t.Fatal(err)
	}
	if err := o.complete(); err != nil || o.image != "example.org/release@sha256:2" || logging.Level == nil || !logging.Level.Enabled(-3) {
		t.Errorf("the image is %q (%v), and --v=3 is %v", o.image, err, logging.Level)
	}
	o = options{namespace: "n", imagesFile: images, image: "example.org/mine"}
	if err := o.complete(); err != nil || o.image != "example.org/mine" {
		t.Errorf("--image is replaced by %q (%v)", o.image, err)
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
		"":                                      "no namespace to install to",
		"--namespace=n more":                    `unexpected argument "more"`,
		"--namespce=n":                          "flag provided but not defined",
		"start start --namespace=n":             `unexpected argument "start"`,
		"--namespace=n --images-json=/no/such":  "reading --images-json",
		"--namespace=n --images-json=/dev/null": "has no image of machineAPIOperator",
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
