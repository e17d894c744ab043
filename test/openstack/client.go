package openstack

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"time"
)

const (
	clientTimeout = time.Minute
	// microversion is the first that accepts tags when a server is created.
	microversion = "2.67"
)

// Client calls the cloud's API as another actuator would.
type Client struct {
	address, token string
	http           *http.Client
}

// Login returns a client that is logged in with the current password.
func (c *Cloud) Login(ctx context.Context) (*Client, error) {
	trusted := c.server.Client() // trusts the cloud's certificate
	trusted.Timeout = clientTimeout
	logged := &Client{address: c.server.URL, http: trusted}
	_, err := logged.Send(ctx, http.MethodPost, "/identity/v3/auth/tokens", map[string]any{
		"auth": map[string]any{"identity": map[string]any{"password": map[string]any{
			"user": map[string]any{"name": Username, "password": c.password()},
		}}}})
	return logged, err
}

func (c *Cloud) password() string {
	c.services.mu.Lock()
	defer c.services.mu.Unlock()
	for _, one := range c.services.logins {
		if one.Username == Username {
			return one.Password
		}
	}
	return Password
}

func (c *Client) Send(ctx context.Context, method, path string, content any) (map[string]any, error) {
	raw, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, method, c.address+path, bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	request.Header.Set("X-Auth-Token", c.token)
	request.Header.Set("X-OpenStack-Nova-API-Version", microversion)
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close() //nolint:errcheck // it was only read
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	if response.StatusCode >= http.StatusBadRequest {
		return nil, fmt.Errorf("%s %s: %s: %s", method, path, response.Status, body)
	}
	if token := response.Header.Get("X-Subject-Token"); token != "" {
		c.token = token
	}
	read := map[string]any{}
	if len(body) > 0 {
		err = json.Unmarshal(body, &read)
	}
	return read, err
}

// ID sends a request and returns the ID of the object in the response, or of a list's first object.
func (c *Client) ID(ctx context.Context, method, path string, content any) (string, error) {
	response, err := c.Send(ctx, method, path, content)
	if err != nil {
		return "", err
	}
	for _, value := range response {
		if listed, ok := value.([]any); ok && len(listed) > 0 {
			value = listed[0]
		}
		if found, ok := value.(map[string]any); ok {
			return object(found).text("id"), nil
		}
	}
	return "", fmt.Errorf("%s %s: the response has no object: %v", method, path, response)
}

// MakeServer creates a server with a port, a trunk and a boot volume, named as OpenShift's actuator names them, and
// returns its ID. fields are added to the request.
func (c *Client) MakeServer(ctx context.Context, name string, fields map[string]any) (string, error) {
	port, err := c.makePort(ctx, name+"-0")
	if err != nil {
		return "", err
	}
	volume, err := c.ID(ctx, http.MethodPost, "/volume/v3/"+project+"/volumes",
		map[string]any{"volume": map[string]any{"name": name + "-root", "size": 100}})
	if err != nil {
		return "", err
	}
	flavor, err := c.ID(ctx, http.MethodGet, "/compute/v2.1/flavors/detail", nil)
	if err != nil {
		return "", err
	}
	server := map[string]any{
		"name": name, "flavorRef": flavor, "networks": []any{map[string]any{"port": port}},
		"block_device_mapping_v2": []any{map[string]any{
			"source_type": "volume", "destination_type": "volume", "uuid": volume, "boot_index": 0,
			"delete_on_termination": true,
		}},
	}
	maps.Copy(server, fields)
	made, err := c.ID(ctx, http.MethodPost, "/compute/v2.1/servers", map[string]any{"server": server})
	if err != nil {
		return "", err
	}
	_, err = c.Send(ctx, http.MethodGet, "/compute/v2.1/servers/"+made, nil) // reading makes it active
	return made, err
}

func (c *Client) makePort(ctx context.Context, name string) (string, error) {
	network, err := c.ID(ctx, http.MethodGet, "/network/v2.0/networks?name="+Cluster+"-openshift", nil)
	if err != nil {
		return "", err
	}
	port, err := c.ID(ctx, http.MethodPost, "/network/v2.0/ports",
		map[string]any{"port": map[string]any{"name": name, "network_id": network}})
	if err != nil {
		return "", err
	}
	_, err = c.Send(ctx, http.MethodPost, "/network/v2.0/trunks",
		map[string]any{"trunk": map[string]any{"name": name, "port_id": port}})
	return port, err
}

// MakeServerGroup creates a server group, as a MachineSet's first Machine does.
func (c *Client) MakeServerGroup(ctx context.Context, name string) error {
	_, err := c.Send(ctx, http.MethodPost, "/compute/v2.1/os-server-groups", map[string]any{
		"server_group": map[string]any{
			"name": name, "policy": "soft-anti-affinity",
		}})
	return err
}

// Of returns the metadata and tags that OpenShift gives a cluster's server.
func Of(cluster string) map[string]any {
	return map[string]any{
		"metadata": map[string]any{"Name": cluster + "-worker", "openshiftClusterID": cluster},
		"tags":     []any{"openshiftClusterID=" + cluster},
	}
}
