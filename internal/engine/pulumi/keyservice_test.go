package pulumi

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-iac/machine-iac-operator/internal/engine"
)

// ask requests a run's key as the CLI does.
func ask(t *testing.T, socket, path, token string) (status int, body string, err error) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
	}}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://localhost"+path, strings.NewReader(`{"ciphertext":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Vault-Token", token)
	response, err := client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	return response.StatusCode, string(raw), err
}

func TestAKeyIsServedToItsRunAlone(t *testing.T) {
	e := newIdle(t, "exit 1")
	r := idleRun(t)
	workspace, err := e.Open(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	socket := workspace.socket()
	for name, tc := range map[string]struct {
		path, token string
		want        int
	}{
		"its own token":        {servicePath, r.Key.token(r.ID), http.StatusOK},
		"no token":             {servicePath, "", http.StatusForbidden},
		"another run's token":  {servicePath, r.Key.token("r2"), http.StatusForbidden},
		"a key that is not it": {servicePath + "s", r.Key.token(r.ID), http.StatusNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			status, body, err := ask(t, socket, tc.path, tc.token)
			if err != nil || status != tc.want {
				t.Fatalf("the response is %d %s, %v, want %d", status, body, err, tc.want)
			}
			var got struct{ Data struct{ Plaintext []byte } }
			_ = json.Unmarshal([]byte(body), &got) // not each is JSON
			if key := got.Data.Plaintext; (tc.want == http.StatusOK) != bytes.Equal(key, r.Key.derived) {
				t.Errorf("the response is %s", body)
			}
		})
	}
	for _, secret := range []string{r.Key.token(r.ID), r.Key.passphrase} {
		if printed := workspace.redact.Redact("it is " + secret); strings.Contains(printed, secret) {
			t.Errorf("%q is reported", printed)
		}
	}
	if err := workspace.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := ask(t, socket, servicePath, r.Key.token(r.ID)); err == nil {
		t.Error("the key is served when the run is closed")
	}
}

func TestACheckpointIsStoredAsItWas(t *testing.T) {
	from, _ := twoKeys(t)
	old := encryptedWith(t, from)
	given, err := served(old)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := SaltOf(given); err == nil || bytes.Contains(given, []byte(`"passphrase"`)) {
		t.Errorf("the CLI finds %s, want nothing of a passphrase in it", given)
	}
	back, err := stored(given)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(canonical(t, old), canonical(t, back)); diff != "" {
		t.Errorf("what is stored differs (-want +got):\n%s", diff)
	}
	for name, checkpoint := range map[string][]byte{"one that was never run": emptyCheckpoint("acme"), "one with a passphrase": old} {
		if got, err := stored(checkpoint); err != nil || !bytes.Equal(got, checkpoint) {
			t.Errorf("%s is stored as %s, %v, want it as it is", name, got, err)
		}
	}
	for name, checkpoint := range map[string]string{
		"what is none":         `{"version":3`,
		"one without its salt": string(checkpointOf(`{"secrets_providers":{"type":"cloud","state":{"url":"hashivault://machine"}}}`)),
	} {
		if got, err := stored([]byte(checkpoint)); err == nil {
			t.Errorf("%s is stored as %s, want an error", name, got)
		}
	}
}

// TestAnAbandonedCheckpointIsReadAsStored has a process die whose CLI has written a checkpoint that was not saved.
func TestAnAbandonedCheckpointIsReadAsStored(t *testing.T) {
	from, _ := twoKeys(t)
	e := newIdle(t, "exit 1")
	workspace, err := e.Open(t.Context(), idleRun(t))
	if err != nil {
		t.Fatal(err)
	}
	written, err := served(encryptedWith(t, from))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(workspace.stateFile(), written, 0o600); err != nil {
		t.Fatal(err)
	}
	found, err := readAbandonedRun(workspace.dir)
	if err != nil {
		t.Fatal(err)
	}
	if salt, err := SaltOf(found.Checkpoint); err != nil || salt != from.Salt() {
		t.Errorf("the abandoned run has %s, %v, want it with its key's salt", found.Checkpoint, err)
	}
	if err := workspace.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestAProviderForVaultHasItsVariables goes from one way to give the CLI its key to the other and back.
func TestAProviderForVaultHasItsVariables(t *testing.T) {
	b := newBench(t, "vaulted")
	b.create()
	r := b.run("vault", small)
	r.Environment["VAULT_AGENT_ADDR"], r.Environment["VAULT_TOKEN"] = "http://127.0.0.1:1", "of the provider"
	workspace := b.open(r)
	if report, err := workspace.Apply(t.Context()); err != nil {
		t.Fatalf("%v\n%s", err, report.Text)
	}
	if err := workspace.Close(); err != nil {
		t.Fatal(err)
	}
	if salt, err := SaltOf(b.last()); err != nil || salt != b.key.Salt() {
		t.Errorf("the checkpoint has the salt %s, %v, want the key's", salt, err)
	}
	b.wantPlan("unchanged", small, engine.ActionNoOp)
}

func TestVariablesForVaultAreTheProviders(t *testing.T) {
	e := newIdle(t, "exit 1")
	for name, tc := range map[string]struct {
		run  RunSpec
		want bool
	}{
		"none":         {RunSpec{Program: fstest.MapFS{}, Environment: map[string]string{"ACME_VAULT_TOKEN": "x"}}, true},
		"a variable":   {RunSpec{Environment: map[string]string{"VAULT_ADDR": "x"}}, false},
		"a file's":     {RunSpec{Files: map[string]string{"VAULT_CACERT": "x"}}, false},
		"no variables": {RunSpec{}, true},
	} {
		if got := e.serves(tc.run); got != tc.want {
			t.Errorf("%s: the run serves its key: %t, want %t", name, got, tc.want)
		}
	}
}
