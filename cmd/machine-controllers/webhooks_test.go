package main

import (
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

func TestWebhookNames(t *testing.T) {
	want := []string{"machine-api-operator-webhook.own.svc", "localhost"}
	if diff := cmp.Diff(want, webhookNames("own")); diff != "" {
		t.Error(diff)
	}
}
