package openstack_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/machine-iac/machine-iac-operator/test/openstack"
)

// asker calls a cloud as a provider does.
type asker struct {
	t         *testing.T
	client    *http.Client
	address   string
	token     string
	endpoints map[string]string
}

func newAsker(t *testing.T, c *openstack.Cloud) *asker {
	t.Helper()
	var clouds struct {
		Clouds map[string]struct {
			Auth struct {
				AuthURL string `json:"auth_url"`
			} `json:"auth"`
		} `json:"clouds"`
	}
	if err := yaml.Unmarshal([]byte(c.CloudsYAML()), &clouds); err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	if !trusted.AppendCertsFromPEM([]byte(c.CACert())) {
		t.Fatal("its authority is no certificate")
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}}
	t.Cleanup(transport.CloseIdleConnections)
	return &asker{t: t, client: &http.Client{Transport: transport},
		address: clouds.Clouds[openstack.CloudName].Auth.AuthURL, endpoints: map[string]string{}}
}

func (a *asker) ask(method, address string, body any) (int, map[string]any) {
	a.t.Helper()
	response, err := a.client.Do(a.request(a.t.Context(), method, address, body))
	if err != nil {
		a.t.Fatal(err)
	}
	defer response.Body.Close()
	if token := response.Header.Get("X-Subject-Token"); token != "" {
		a.token = token
	}
	content := map[string]any{}
	if raw, err := io.ReadAll(response.Body); err != nil || len(raw) > 0 && json.Unmarshal(raw, &content) != nil {
		a.t.Fatalf("%s %s: %s, %v", method, address, raw, err)
	}
	return response.StatusCode, content
}

func (a *asker) request(ctx context.Context, method, address string, body any) *http.Request {
	a.t.Helper()
	content, err := json.Marshal(body)
	if err != nil {
		a.t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(content))
	if err != nil {
		a.t.Fatal(err)
	}
	request.Header.Set("X-Auth-Token", a.token)
	request.Header.Set("X-OpenStack-Nova-API-Version", "2.52")
	return request
}

func (a *asker) login(password string) int {
	a.t.Helper()
	return a.loginAs(openstack.Username, password)
}

func (a *asker) loginAs(user, password string) int {
	a.t.Helper()
	status, response := a.ask(http.MethodPost, a.address+
		"/auth/tokens", map[string]any{"auth": map[string]any{"identity": map[string]any{
		"password": map[string]any{"user": map[string]any{"name": user, "password": password}},
	}}})
	token, _ := response["token"].(map[string]any)
	catalog, _ := token["catalog"].([]any)
	for _, one := range catalog {
		service := one.(map[string]any)
		a.endpoints[service["type"].(string)] = service["endpoints"].([]any)[0].(map[string]any)["url"].(string)
	}
	return status
}

// id returns the ID of a list's first object.
func (a *asker) id(address, list string) string {
	a.t.Helper()
	_, response := a.ask(http.MethodGet, address, nil)
	found, _ := response[list].([]any)
	if len(found) == 0 {
		a.t.Fatalf("%s has none: %v", address, response)
	}
	return found[0].(map[string]any)["id"].(string)
}

// Tests with a simulated cloud prove something only if it rejects what a real one rejects.
func TestTheCloudRefusesWhatARealOneDoes(t *testing.T) {
	c := openstack.Start()
	t.Cleanup(c.Close)
	a := newAsker(t, c)
	if status := a.login("wrong"); status != http.StatusUnauthorized {
		t.Errorf("a wrong password: %d", status)
	}
	if status := a.login(openstack.Password); status != http.StatusCreated {
		t.Fatalf("the password: %d", status)
	}
	ports, servers, trunks := a.endpoints["network"]+"/v2.0/ports", a.endpoints["compute"]+"/servers",
		a.endpoints["network"]+"/v2.0/trunks"
	network := a.id(a.endpoints["network"]+"/v2.0/networks?name="+openstack.Cluster+"-openshift", "networks")
	_, response := a.ask(http.MethodPost, ports,
		map[string]any{"port": map[string]any{"name": "p", "network_id": network}})
	port, _ := response["port"].(map[string]any)["id"].(string)
	wanted := func(changes map[string]any) any {
		server := map[string]any{
			"name": "s", "flavorRef": a.id(a.endpoints["compute"]+"/flavors/detail", "flavors"),
			"networks": []any{map[string]any{"port": port}},
			"imageRef": a.id(a.endpoints["image"]+"/v2/images?name="+url.QueryEscape(openstack.Cluster+"-rhcos"),
				"images"),
		}
		for field, value := range changes {
			server[field] = value
		}
		return map[string]any{"server": server}
	}
	_, response = a.ask(http.MethodPost, trunks, map[string]any{"trunk": map[string]any{"port_id": port}})
	trunk, _ := response["trunk"].(map[string]any)["id"].(string)
	if status, response := a.ask(http.MethodPost, trunks,
		map[string]any{"trunk": map[string]any{"port_id": port}}); status != http.StatusConflict {
		t.Errorf("a second trunk of a port: %d, %v", status, response)
	}
	status, response := a.ask(http.MethodPost, servers, wanted(nil))
	if status != http.StatusAccepted {
		t.Fatalf("a server: %d, %v", status, response)
	}
	server := response["server"].(map[string]any)["id"].(string)
	for name, tc := range map[string]struct {
		method, address string
		body            any
		want            int
	}{
		"a port of no network": {
			http.MethodPost, ports, map[string]any{"port": map[string]any{"network_id": "no network is that"}},
			http.StatusBadRequest,
		},
		"a port that a server has": {http.MethodPost, servers, wanted(nil), http.StatusConflict},
		"a tag with a slash": {
			http.MethodPost, servers, wanted(map[string]any{"tags": []string{"a/b"}}), http.StatusBadRequest,
		},
		"metadata with a slash": {
			http.MethodPost, servers, wanted(map[string]any{"metadata": map[string]any{"a/b": "c"}}),
			http.StatusBadRequest,
		},
		"a flavor that is not there": {
			http.MethodPost, servers, wanted(map[string]any{"flavorRef": "x"}), http.StatusBadRequest,
		},
		"an image that is not there": {
			http.MethodPost, servers, wanted(map[string]any{"networks": []any{}, "imageRef": "x"}),
			http.StatusBadRequest,
		},
		"user data that is no base64": {
			http.MethodPost, servers, wanted(map[string]any{"user_data": "{}"}), http.StatusBadRequest,
		},
		"a trunk of a port in use": {
			http.MethodPost, trunks, map[string]any{"trunk": map[string]any{"port_id": port}}, http.StatusConflict,
		},
		"to delete a trunk in use":      {http.MethodDelete, trunks + "/" + trunk, nil, http.StatusConflict},
		"to delete the port of a trunk": {http.MethodDelete, ports + "/" + port, nil, http.StatusConflict},
		"a server that is not there":    {http.MethodGet, servers + "/x", nil, http.StatusNotFound},
	} {
		if status, response := a.ask(tc.method, tc.address, tc.body); status != tc.want {
			t.Errorf("%s: %d, %v; want %d", name, status, response, tc.want)
		}
	}
	for _, address := range []string{servers + "/" + server, trunks + "/" + trunk, ports + "/" + port} {
		if status, response := a.ask(http.MethodDelete, address, nil); status != http.StatusNoContent {
			t.Errorf("deleting %s: %d, %v", address, status, response)
		}
	}
	for what, count := range c.Count() {
		if count > 0 {
			t.Errorf("%d %s are left", count, what)
		}
	}
}
