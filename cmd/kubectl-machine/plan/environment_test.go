package plan

import (
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/inspect"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/test/controlplane"
	"github.com/machine-iac/machine-iac-operator/test/long"
)

// ownVariables sets the proxies and authorities of the user's environment.
func ownVariables(t *testing.T, own map[string]string) {
	t.Helper()
	for name := range ownAccess() {
		t.Setenv(name, "") // it comes back afterwards
		if err := os.Unsetenv(name); err != nil {
			t.Fatal(err)
		}
	}
	for name, value := range own {
		t.Setenv(name, value)
	}
}

// environmentOf returns the environment that a user reads from a cluster; an administrator where none is named.
func environmentOf(t *testing.T, plane *controlplane.ControlPlane, user string, given map[string]string) *runEnvironment {
	t.Helper()
	config := rest.CopyConfig(plane.Config)
	config.Impersonate.UserName = user
	cluster, err := inspect.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	found, err := newRunEnvironment(t.Context(), cluster, metav1.NamespaceDefault, given)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := found.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(found.dir); !os.IsNotExist(err) {
			t.Errorf("its folder is left behind: %v", err)
		}
	})
	return found
}

func TestEnvironmentIsThatOfARun(t *testing.T) {
	long.Test(t)
	plane, err := controlplane.Start(controlplane.Default)
	if err != nil {
		t.Fatalf("%v; run 'make tools'", err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(); err != nil {
			t.Error(err)
		}
	})
	own := map[string]string{"https_proxy": "http://mine:3128", "NO_PROXY": ".mine", "SSL_CERT_DIR": "/mine"}
	ownVariables(t, own)
	endpoint := []v1alpha1.EnvironmentVariable{{Name: "AWS_ENDPOINT_URL_EC2", From: "serviceEndpoint.aws.ec2"}}
	check := func(t *testing.T, s *runEnvironment, want map[string]string, wantSensitive bool) {
		t.Helper()
		got, sensitive, err := s.Environment(t.Context(), endpoint)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" || slices.Contains(sensitive, "secret") != wantSensitive {
			t.Errorf("it has a secret to keep: %t; the environment (-want +got):\n%s", slices.Contains(sensitive, "secret"), diff)
		}
	}

	t.Run("a cluster that is not OpenShift leaves the user's own", func(t *testing.T) {
		check(t, environmentOf(t, plane, "", nil), own, false)
	})
	t.Run("what the manager is given is used, and none of the user's proxies beside its own", func(t *testing.T) {
		given := map[string]string{"HTTP_PROXY": "http://given:3128"}
		check(t, environmentOf(t, plane, "", given), map[string]string{"HTTP_PROXY": "http://given:3128", "SSL_CERT_DIR": "/mine"}, false)
	})

	if err := plane.InstallClusterConfig(); err != nil {
		t.Fatal(err)
	}
	named := metav1.ObjectMeta{Name: "cluster"}
	objects := []client.Object{
		&configv1.Proxy{ObjectMeta: named, Status: configv1.ProxyStatus{HTTPSProxy: "http://user:secret@proxy:3128"}},
		&configv1.Infrastructure{ObjectMeta: named, Status: configv1.InfrastructureStatus{
			InfrastructureName: "demo-x7k2p", ControlPlaneTopology: configv1.HighlyAvailableTopologyMode, InfrastructureTopology: configv1.HighlyAvailableTopologyMode,
			PlatformStatus: &configv1.PlatformStatus{Type: configv1.AWSPlatformType, AWS: &configv1.AWSPlatformStatus{
				Region: "us-east-1", ServiceEndpoints: []configv1.AWSServiceEndpoint{{Name: "ec2", URL: "https://ec2.example"}},
			}},
		}},
	}
	if err := plane.Create(t.Context(), objects...); err != nil {
		t.Fatal(err)
	}
	configured := map[string]string{"HTTPS_PROXY": "http://user:secret@proxy:3128", "AWS_ENDPOINT_URL_EC2": "https://ec2.example", "SSL_CERT_DIR": "/mine"}
	t.Run("what the cluster sets is used, and none of the user's proxies beside its own", func(t *testing.T) {
		found := environmentOf(t, plane, "", nil)
		check(t, found, configured, true)
		if diff := cmp.Diff(module.ClusterValues{module.ValueClusterID: "demo-x7k2p", module.ValueRegion: "us-east-1", module.ValuePlatform: "AWS"}, found.clusterValues); diff != "" {
			t.Errorf("cluster values (-want +got):\n%s", diff)
		}
	})
	t.Run("what the manager is given has precedence", func(t *testing.T) {
		want := maps.Clone(configured)
		want["AWS_ENDPOINT_URL_EC2"] = "https://given.example"
		check(t, environmentOf(t, plane, "", map[string]string{"AWS_ENDPOINT_URL_EC2": "https://given.example"}), want, true)
	})
	t.Run("a user who may not read it has their own", func(t *testing.T) {
		check(t, environmentOf(t, plane, "viewer", nil), own, false)
	})
}
