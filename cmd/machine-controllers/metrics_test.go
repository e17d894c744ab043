package main

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// TestEachSeriesIsOnThePortOfItsController has a series of each controller of machine-api-operator,
// and one of this project.
func TestEachSeriesIsOnThePortOfItsController(t *testing.T) {
	registry := prometheus.NewRegistry()
	want := map[string]int{
		"mapi_machine_items": 8441, "mapi_machine_phase_transition_seconds": 8441, "mapi_instance_create_failed": 8441,
		"machine_iac_runs": 8441, "mapi_machineset_items": 8442, "mapi_machine_set_status_replicas": 8442,
		"mapi_machinehealthcheck_short_circuit": 8444,
	}
	for name := range want {
		registry.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: "A test's."}))
	}
	got := map[string]int{}
	for port, has := range controllerPorts {
		families, err := only(registry, has).Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range families {
			if other, twice := got[one.GetName()]; twice {
				t.Errorf("%s is on %d and on %d", one.GetName(), other, port)
			}
			got[one.GetName()] = port
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestControllerPortsAuthorize asks each port with and without the right to read metrics.
func TestControllerPortsAuthorize(t *testing.T) {
	p := newFixture(t)
	p.o.controllerPorts, p.o.tls = true, func(*tls.Config) {}
	mgr, err := manager.New(p.config, manager.Options{Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		t.Fatal(err)
	}
	addresses := map[string]string{}
	listen := func(network, address string) (net.Listener, error) {
		listener, err := net.Listen(network, "127.0.0.1:0")
		addresses[address] = listener.Addr().String()
		return listener, err
	}
	if err := addControllerPorts(mgr, hooks{}, p.o, listen); err != nil {
		t.Fatal(err)
	}
	go func() { _ = mgr.Start(t.Context()) }()
	reader, other := p.metricsReader(t, "reader", true), p.metricsReader(t, "other", false)
	for _, port := range []string{":8441", ":8442", ":8444"} {
		if code, _ := scrape(t, addresses[port], other); code != http.StatusForbidden {
			t.Errorf("%s answers %d without the right", port, code)
		}
		code, text := scrape(t, addresses[port], reader)
		if goMetrics := strings.Contains(text, "go_goroutines"); code != http.StatusOK || goMetrics != (port == ":8441") {
			t.Errorf("%s answers %d with the right, and has metrics of Go: %t", port, code, goMetrics)
		}
	}
}

// metricsReader returns the token of a service account that may read metrics, or not.
func (p *fixture) metricsReader(t *testing.T, name string, may bool) string {
	t.Helper()
	named := metav1.ObjectMeta{Name: "metrics-" + name, Namespace: metav1.NamespaceDefault}
	accounts := p.client.CoreV1().ServiceAccounts(named.Namespace)
	if _, err := accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: named}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if may {
		cluster := metav1.ObjectMeta{Name: named.Name}
		role := &rbacv1.ClusterRole{ObjectMeta: cluster, Rules: []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}}}
		binding := &rbacv1.ClusterRoleBinding{ObjectMeta: cluster, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: named.Name},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: named.Name, Namespace: named.Namespace}}}
		if _, err := p.client.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := p.client.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	token, err := accounts.CreateToken(t.Context(), named.Name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return token.Status.Token
}

// scrape gets metrics over TLS from a self-signed server.
func scrape(t *testing.T, address, token string) (code int, text string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+address+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}
