package main

import (
	"crypto/tls"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHooksAreMadeAsTheFlagsSay(t *testing.T) {
	for name, tc := range map[string]struct {
		options                options
		wantServer, wantKeeper bool
	}{
		"without webhooks nothing listens":                  {options{webhookPort: 9443}, false, false},
		"who names no folder has the certificate made":      {options{webhooks: true, webhookPort: 9443, namespace: "ns"}, true, true},
		"a folder's certificate is somebody else's to keep": {options{webhooks: true, webhookPort: 9443, webhookCertDir: "/tls"}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("POD_NAMESPACE", "")
			got, err := newHooks(tc.options)
			if err != nil {
				t.Fatal(err)
			}
			if (got.server != nil) != tc.wantServer || (got.keeper != nil) != tc.wantKeeper {
				t.Errorf("server is %v, keeper is %v", got.server, got.keeper)
			}
		})
	}
}

func TestHooksAreNotReadyWithoutACertificate(t *testing.T) {
	got, err := newHooks(options{webhooks: true, webhookPort: 9443, namespace: "ns"})
	if err != nil {
		t.Fatal(err)
	}
	if err := got.ready(nil); err == nil || !strings.Contains(err.Error(), "no certificate yet") {
		t.Errorf("got %v", err)
	}
}

// TestMetricsAreServedWithoutACertificate uses a keeper that has made none yet, and none at all.
func TestMetricsAreServedWithoutACertificate(t *testing.T) {
	kept, err := newHooks(options{webhooks: true, webhookPort: 9443, namespace: "ns"})
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{}
	kept.metricsTLS(config)
	if own, err := config.GetCertificate(nil); err != nil || len(own.Certificate) == 0 {
		t.Errorf("while the keeper has no certificate: %v", err)
	}
	config = &tls.Config{}
	hooks{}.metricsTLS(config)
	if config.GetCertificate != nil {
		t.Error("without webhooks, the metrics server does not make its own certificate")
	}
}

func TestWebhookNames(t *testing.T) {
	want := []string{
		"machine-api-operator-webhook.own.svc", "localhost", "machine-api-controllers.own.svc", "machine-api-operator.own.svc",
	}
	if diff := cmp.Diff(want, servingNames("own")); diff != "" {
		t.Error(diff)
	}
}
