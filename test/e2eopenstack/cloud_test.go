//go:build e2e_openstack

package e2eopenstack_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	. "github.com/onsi/ginkgo/v2"
)

const (
	compute  = "compute"
	image    = "image"
	network  = "network"
	volumev3 = "volumev3"

	requestTimeout = 2 * time.Minute
	// serversInFull is the version that returns a server's tags and server groups.
	serversInFull = "compute 2.71"
)

type cloudsFile struct {
	Clouds map[string]struct {
		Auth struct {
			AuthURL     string `json:"auth_url"`
			Username    string `json:"username"`
			Password    string `json:"password"`
			ProjectName string `json:"project_name"`
		} `json:"auth"`
	} `json:"clouds"`
}

// cloud is a running OpenStack from a user's perspective.
type cloud struct {
	// file is the clouds.yaml, password the user's.
	file, password string
	token          string
	endpoints      map[string]string
	http           http.Client
}

// signIn reads the clouds.yaml of hack/openstack.sh. It never skips: a requested test that did not run must not count
// as passed.
func signIn(ctx context.Context, name string) *cloud {
	GinkgoHelper()
	path := os.Getenv("OS_CLIENT_CONFIG_FILE")
	Expect(path).NotTo(BeEmpty(), "OS_CLIENT_CONFIG_FILE names no clouds.yaml: run the tests by hack/openstack.sh, "+
		"as make e2e-openstack does")
	content, err := os.ReadFile(path)
	Expect(err).NotTo(HaveOccurred())
	file := cloudsFile{}
	Expect(yaml.Unmarshal(content, &file)).To(Succeed())
	auth := file.Clouds[name].Auth
	c := &cloud{file: string(content), password: auth.Password, endpoints: map[string]string{},
		http: http.Client{Timeout: requestTimeout}}
	domain := map[string]any{"name": "Default"}
	c.endpoints["identity"] = auth.AuthURL
	var signedIn struct {
		Token struct {
			Catalog []struct {
				Type      string                 `json:"type"`
				Endpoints []struct{ URL string } `json:"endpoints"`
			} `json:"catalog"`
		} `json:"token"`
	}
	c.do(ctx, http.MethodPost, "identity", "/auth/tokens", map[string]any{"auth": map[string]any{
		"identity": map[string]any{"methods": []string{"password"}, "password": map[string]any{
			"user": map[string]any{"name": auth.Username, "password": auth.Password, "domain": domain},
		}},
		"scope": map[string]any{"project": map[string]any{"name": auth.ProjectName, "domain": domain}},
	}}, &signedIn)
	for _, service := range signedIn.Token.Catalog {
		c.endpoints[service.Type] = service.Endpoints[0].URL
	}
	return c
}

// refusal is an error response.
type refusal struct {
	status  int
	message string
}

func (r *refusal) Error() string { return r.message }

// send sends a request to a service and returns the response's body.
func (c *cloud) send(ctx context.Context, method, service, path string, content any) ([]byte, error) {
	raw, plain := content.([]byte)
	kind := "application/octet-stream"
	if content != nil && !plain {
		var err error
		if raw, err = json.Marshal(content); err != nil {
			return nil, err
		}
		kind = "application/json"
	}
	request, err := http.NewRequestWithContext(ctx, method, c.endpoints[service]+path, bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	request.Header.Set("X-Auth-Token", c.token)
	if content != nil { // Nova rejects a type without content
		request.Header.Set("Content-Type", kind)
	}
	if service == compute {
		request.Header.Set("OpenStack-API-Version", serversInFull)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	if response.StatusCode >= http.StatusBadRequest {
		return nil, &refusal{response.StatusCode,
			fmt.Sprintf("%s %s of %s: %s: %s", method, path, service, response.Status, body)}
	}
	if token := response.Header.Get("X-Subject-Token"); token != "" {
		c.token = token
	}
	return body, nil
}

// do sends a request that must succeed, and decodes the response into result unless nil.
func (c *cloud) do(ctx context.Context, method, service, path string, content, result any) {
	GinkgoHelper()
	body, err := c.send(ctx, method, service, path, content)
	Expect(err).NotTo(HaveOccurred())
	if result != nil {
		Expect(json.Unmarshal(body, result)).To(Succeed())
	}
}

// make creates an object and returns its ID. Request and response use the same key for it.
func (c *cloud) make(ctx context.Context, service, path, kind string, fields map[string]any) string {
	GinkgoHelper()
	made := map[string]struct{ ID string }{}
	c.do(ctx, http.MethodPost, service, path, map[string]any{kind: fields}, &made)
	return made[kind].ID
}

// server is Nova's server.
type server struct {
	ID       string            `json:"id"`
	Name     string            `json:"name"`
	Status   string            `json:"status"`
	Created  string            `json:"created"`
	Zone     string            `json:"OS-EXT-AZ:availability_zone"`
	Metadata map[string]string `json:"metadata"`
	Tags     []string          `json:"tags"`
	Groups   []string          `json:"server_groups"`
	Flavor   struct {
		Name string `json:"original_name"`
	} `json:"flavor"`
	// Image is an object, or "" for a server that boots from a volume.
	Image    any `json:"image"`
	Attached []struct {
		ID string `json:"id"`
	} `json:"os-extended-volumes:volumes_attached"`
}

func (c *cloud) servers(ctx context.Context) []server {
	GinkgoHelper()
	var list struct {
		Servers []server `json:"servers"`
	}
	c.do(ctx, http.MethodGet, compute, "/servers/detail", nil, &list)
	return list.Servers
}

// server returns the only server with a name, or nil.
func (c *cloud) server(ctx context.Context, name string) *server {
	GinkgoHelper()
	var found []server
	for _, each := range c.servers(ctx) {
		if each.Name == name {
			found = append(found, each)
		}
	}
	Expect(len(found)).To(BeNumerically("<=", 1), "servers of the name %s: %v", name, found)
	if len(found) == 0 {
		return nil
	}
	body, err := c.send(ctx, http.MethodGet, compute, "/servers/"+found[0].ID, nil) // lists omit server groups
	if refused := (*refusal)(nil); errors.As(err, &refused) && refused.status == http.StatusNotFound {
		return nil // it was deleted meanwhile
	}
	Expect(err).NotTo(HaveOccurred())
	var alone struct {
		Server server `json:"server"`
	}
	Expect(json.Unmarshal(body, &alone)).To(Succeed())
	return &alone.Server
}

// port is Neutron's port.
type port struct {
	ID             string         `json:"id"`
	Name           string         `json:"name"`
	NetworkID      string         `json:"network_id"`
	SecurityGroups []string       `json:"security_groups"`
	Tags           []string       `json:"tags"`
	Trunk          map[string]any `json:"trunk_details"`
	FixedIPs       []struct {
		SubnetID string `json:"subnet_id"`
		Address  string `json:"ip_address"`
	} `json:"fixed_ips"`
	Pairs []struct {
		Address string `json:"ip_address"`
	} `json:"allowed_address_pairs"`
}

func (p *port) addresses() []string {
	var addresses []string
	for _, fixed := range p.FixedIPs {
		addresses = append(addresses, fixed.Address)
	}
	return addresses
}

func (c *cloud) ports(ctx context.Context, query url.Values) []port {
	GinkgoHelper()
	var list struct {
		Ports []port `json:"ports"`
	}
	c.do(ctx, http.MethodGet, network, "/v2.0/ports?"+query.Encode(), nil, &list)
	return list.Ports
}

func (c *cloud) portsOf(ctx context.Context, s *server) []port {
	GinkgoHelper()
	return c.ports(ctx, url.Values{"device_id": {s.ID}})
}

// names returns the names of a list's objects.
func (c *cloud) names(ctx context.Context, service, path, kinds string) []string {
	GinkgoHelper()
	body := map[string]json.RawMessage{}
	c.do(ctx, http.MethodGet, service, path, nil, &body)
	var list []struct{ Name string }
	Expect(json.Unmarshal(body[kinds], &list)).To(Succeed())
	names := []string{}
	for _, each := range list {
		names = append(names, each.Name)
	}
	return names
}

func (c *cloud) volumes(ctx context.Context) []string {
	GinkgoHelper()
	return c.names(ctx, volumev3, "/volumes", "volumes")
}

func (c *cloud) trunks(ctx context.Context) []string {
	GinkgoHelper()
	return c.names(ctx, network, "/v2.0/trunks", "trunks")
}
