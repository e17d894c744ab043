package compute_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-iac/machine-iac-operator/test/gcp/compute"
)

const zone = "https://compute.googleapis.com/compute/v1/projects/" + compute.Project + "/zones/" + compute.Zone

// client asks as a provider does: by the proxy, with the authority and a token.
type client struct {
	t     *testing.T
	http  *http.Client
	token string
}

func newClient(t *testing.T, o compute.Options) (*client, *compute.Server) {
	t.Helper()
	o.Dir = t.TempDir()
	server, err := compute.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	environment := server.Environment()
	proxy, err := url.Parse(environment["HTTPS_PROXY"])
	if err != nil {
		t.Fatal(err)
	}
	authority, err := os.ReadFile(environment["SSL_CERT_FILE"])
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(authority)
	transport := &http.Transport{Proxy: http.ProxyURL(proxy), TLSClientConfig: &tls.Config{RootCAs: trusted}}
	t.Cleanup(transport.CloseIdleConnections)
	c := &client{t: t, http: &http.Client{Transport: transport, Timeout: time.Minute}}
	c.signIn(credentials(t, server))
	return c, server
}

// signIn signs in with the key that counts, and returns the status of the answer.
func (c *client) signIn(credentials []byte) int {
	c.t.Helper()
	var key struct {
		ID string `json:"private_key_id"`
	}
	if err := json.Unmarshal(credentials, &key); err != nil {
		c.t.Fatal(err)
	}
	header := base64.RawURLEncoding.EncodeToString([]byte(`{"kid":"` + key.ID + `"}`))
	assertion := url.Values{"assertion": {header + ".claims.signature"}}
	response, err := c.http.PostForm("https://oauth2.googleapis.com/token", assertion)
	if err != nil {
		c.t.Fatal(err)
	}
	defer response.Body.Close()
	var given struct {
		Token string `json:"access_token"`
	}
	if err := json.NewDecoder(response.Body).Decode(&given); err != nil {
		c.t.Fatal(err)
	}
	c.token = given.Token
	return response.StatusCode
}

// credentials returns the key that counts now.
func credentials(t *testing.T, server *compute.Server) []byte {
	t.Helper()
	key, err := server.Credentials()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// ask returns the status and the fields of an answer.
func (c *client) ask(method, address string, body any) (int, map[string]any) {
	c.t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		c.t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(c.t.Context(), method, address, bytes.NewReader(raw))
	if err != nil {
		c.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	response, err := c.http.Do(request)
	if err != nil {
		c.t.Fatal(err)
	}
	defer response.Body.Close()
	var fields map[string]any
	if err := json.NewDecoder(response.Body).Decode(&fields); err != nil && err != io.EOF {
		c.t.Fatal(err)
	}
	return response.StatusCode, fields
}

// done asks for a change, and waits until it has ended. It returns how often it was not yet.
func (c *client) done(method, address string, body any) (waited int) {
	c.t.Helper()
	status, operation := c.ask(method, address, body)
	if status != http.StatusOK {
		c.t.Fatalf("%s %s: %d %v", method, address, status, operation)
	}
	for ; operation["status"] != "DONE"; waited++ {
		time.Sleep(10 * time.Millisecond)
		_, operation = c.ask(http.MethodGet, zone+"/operations/"+operation["name"].(string), nil)
	}
	return waited
}

// worker is what is asked for an instance.
func worker(image string) map[string]any {
	return map[string]any{
		"name": "worker-1", "machineType": "projects/" + compute.Project + "/zones/" + compute.Zone + "/machineTypes/n1-standard-4", "labels": map[string]any{"kubernetes-io-cluster-demo": "owned"},
		"disks":             []any{map[string]any{"boot": true, "autoDelete": true, "initializeParams": map[string]any{"sourceImage": image, "diskSizeGb": "128"}}},
		"networkInterfaces": []any{map[string]any{"subnetwork": "projects/" + compute.Project + "/regions/us-central1/subnetworks/workers", "accessConfigs": []any{map[string]any{"type": "ONE_TO_ONE_NAT"}}}},
	}
}

const image = "projects/rhcos-cloud/global/images/rhcos"

func TestAnInstanceFromInsertToDelete(t *testing.T) {
	c, server := newClient(t, compute.Options{Latency: 100 * time.Millisecond})
	if waited := c.done(http.MethodPost, zone+"/instances", worker(image)); waited == 0 {
		t.Error("the insert ended at once, want it to take its time")
	}
	status, made := c.ask(http.MethodGet, zone+"/instances/worker-1", nil)
	if status != http.StatusOK || made["status"] != "RUNNING" || made["metadata"].(map[string]any)["fingerprint"] == "" {
		t.Errorf("%d: it is %v", status, made)
	}
	nic := made["networkInterfaces"].([]any)[0].(map[string]any)
	if nic["networkIP"] == "" || nic["accessConfigs"].([]any)[0].(map[string]any)["natIP"] == nil {
		t.Errorf("its network interface is %v, want addresses", nic)
	}
	if diff := cmp.Diff([]string{"disks/worker-1", "instances/worker-1"}, server.Names()); diff != "" {
		t.Errorf("what there is (-want +got):\n%s", diff)
	}
	_, found := c.ask(http.MethodGet, "https://cloudasset.googleapis.com/v1/projects/"+compute.Project+":searchAllResources?query="+url.QueryEscape("labels.kubernetes-io-cluster-demo=owned"), nil)
	if results := found["results"].([]any); len(results) != 1 {
		t.Errorf("the search finds %v", results)
	}
	members := zone + "/instanceGroups/demo-master/"
	c.done(http.MethodPost, members+"addInstances", map[string]any{"instances": []any{map[string]any{"instance": made["selfLink"]}}})
	if got := server.Members("demo-master"); !slices.Equal(got, []string{"worker-1"}) {
		t.Errorf("the group has %v", got)
	}
	c.done(http.MethodPost, zone+"/instances/worker-1/setLabels", map[string]any{"labels": map[string]any{"team": "a"}})
	if got := server.Instance("worker-1")["labels"].(map[string]any)["team"]; got != "a" {
		t.Errorf("the label is %v", got)
	}
	if status, _ := c.ask(http.MethodPost, zone+"/instances", worker(image)); status != http.StatusConflict {
		t.Errorf("a second one of the name is answered %d", status)
	}
	c.done(http.MethodDelete, zone+"/instances/worker-1", nil)
	if left := server.Names(); len(left) > 0 || len(server.Members("demo-master")) > 0 {
		t.Errorf("%v are left after the delete", left)
	}
	want := []string{"insert instances/worker-1", "addInstances instanceGroups/demo-master", "setLabels instances/worker-1", "delete instances/worker-1"}
	if diff := cmp.Diff(want, server.Writes()); diff != "" {
		t.Errorf("what was written (-want +got):\n%s", diff)
	}
}

func TestWhatIsNotThereAndWhatIsRefused(t *testing.T) {
	c, server := newClient(t, compute.Options{})
	server.Remove(image)
	status, failed := c.ask(http.MethodPost, zone+"/instances", worker(image))
	if text, _ := json.Marshal(failed); status != http.StatusNotFound || !strings.Contains(string(text), image) || len(server.Names()) > 0 {
		t.Errorf("of an image that was removed: %d %s, and there are %v", status, text, server.Names())
	}
	server.Refuse(&compute.Refusal{Path: compute.Path("instances"), Status: http.StatusForbidden, Reason: "quotaExceeded", Message: "no more"})
	if status, _ := c.ask(http.MethodPost, zone+"/instances", worker("projects/rhcos-cloud/global/images/other")); status != http.StatusForbidden {
		t.Errorf("what is refused is answered %d", status)
	}
	server.Refuse(nil)
	c.done(http.MethodPost, zone+"/instances", worker("projects/rhcos-cloud/global/images/other"))
	server.Remove("projects/rhcos-cloud/global/images/other")
	if err := server.Copy("worker-1", "copy", map[string]any{"mine": "no"}); err != nil {
		t.Errorf("an instance whose image was removed cannot be copied: %v", err)
	}
	server.Remove(compute.Path("instances/worker-1"))
	if status, _ := c.ask(http.MethodGet, zone+"/instances/worker-1", nil); status != http.StatusNotFound {
		t.Errorf("one that others have removed is answered %d", status)
	}
	former := credentials(t, server)
	server.Rotate()
	if status, _ := c.ask(http.MethodGet, zone+"/instances/worker-1", nil); status != http.StatusUnauthorized {
		t.Errorf("a former token is answered %d", status)
	}
	if status := c.signIn(former); status != http.StatusBadRequest {
		t.Errorf("a former key is answered %d", status)
	}
	c.signIn(credentials(t, server))
	if status, _ := c.ask(http.MethodGet, zone+"/machineTypes/n1-standard-4", nil); status != http.StatusOK {
		t.Errorf("a machine type, with another token, is answered %d", status)
	}
}
