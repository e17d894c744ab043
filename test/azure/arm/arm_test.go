package arm_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/machine-iac/machine-iac-operator/test/azure/arm"
)

// asker makes requests as a provider does.
type asker struct {
	t             *testing.T
	client        *http.Client
	address, auth string
}

func open(t *testing.T, o arm.Options) (*arm.Server, *asker) {
	t.Helper()
	o.Dir = t.TempDir()
	server, err := arm.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	a := &asker{t: t, client: server.Client(), address: "https://" + server.Environment()["ARM_METADATA_HOSTNAME"]}
	response, err := a.client.PostForm(a.address+"/"+arm.Tenant+"/oauth2/v2.0/token", url.Values{"client_id": {arm.Client}, "client_secret": {arm.Secret}})
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var given struct {
		Token string `json:"access_token"`
	}
	if err := json.NewDecoder(response.Body).Decode(&given); err != nil {
		t.Fatal(err)
	}
	a.auth = "Bearer " + given.Token
	return server, a
}

// ask returns the status of a request, and where its operation is polled.
func (a *asker) ask(method, path, body string) (status int, operation string) {
	a.t.Helper()
	request, err := http.NewRequestWithContext(a.t.Context(), method, a.address+path, strings.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	request.Header.Set("Authorization", a.auth)
	response, err := a.client.Do(request)
	if err != nil {
		a.t.Fatal(err)
	}
	_ = response.Body.Close()
	return response.StatusCode, strings.TrimPrefix(response.Header.Get("Azure-AsyncOperation"), a.address)
}

const disk = arm.Group + "/providers/Microsoft.Compute/disks/one"

func TestWritesWithALatencyAreOperations(t *testing.T) {
	var passed atomic.Int64
	server, a := open(t, arm.Options{Latency: time.Second, Now: func() time.Time { return time.Unix(passed.Load(), 0) }})
	state := func() string {
		return server.Property("Microsoft.Compute/disks/one", "properties", "provisioningState")
	}
	status, operation := a.ask(http.MethodPut, disk, `{"properties":{}}`)
	if status != http.StatusCreated || operation == "" || state() != `"Creating"` {
		t.Fatalf("a write returns %d with the operation %q, and is %s", status, operation, state())
	}
	if status, _ := a.ask(http.MethodGet, operation, ""); status != http.StatusOK {
		t.Errorf("the operation: %d", status)
	}
	passed.Add(1)
	if state() != `"Succeeded"` {
		t.Errorf("after its latency it is %s", state())
	}
	if status, operation = a.ask(http.MethodDelete, disk, ""); status != http.StatusAccepted || operation == "" || state() != `"Deleting"` {
		t.Errorf("a deletion returns %d with the operation %q, and is %s", status, operation, state())
	}
	passed.Add(1)
	if names := server.Names(); len(names) > 0 {
		t.Errorf("after the deletion there are %v", names)
	}
}

func TestARotatedSecretEndsTokens(t *testing.T) {
	server, a := open(t, arm.Options{})
	if status, _ := a.ask(http.MethodPut, disk, `{"properties":{}}`); status != http.StatusOK {
		t.Errorf("a write: %d", status)
	}
	server.Rotate("rotated")
	if status, _ := a.ask(http.MethodGet, disk, ""); status != http.StatusUnauthorized {
		t.Errorf("with a token of the former secret: %d", status)
	}
}
