package iac

import (
	"context"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/cluster/config"
	"github.com/machine-iac/machine-iac-operator/internal/desired"
	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/load"
	"github.com/machine-iac/machine-iac-operator/internal/render"
	"github.com/machine-iac/machine-iac-operator/modules"
)

// around is a cluster that says something.
type around struct {
	settings config.Settings
	bundle   string

	mu  sync.Mutex
	err error
}

func (a *around) Environment(_ context.Context, variables []v1alpha1.EnvironmentVariable) (map[string]string, []string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.settings.Environment(variables, a.bundle, nil), a.settings.Sensitive(), a.err
}

func (a *around) fail(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.err = err
}

func named(t *testing.T, name string) *module.Module {
	t.Helper()
	loaded, err := load.Modules(modules.FS)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(loaded, func(m *module.Module) bool { return m.Name() == name })
	if i < 0 {
		t.Fatalf("there is no module %s", name)
	}
	return loaded[i]
}

func TestARunSeesWhatTheClusterSays(t *testing.T) {
	cluster := &around{bundle: "/ca.pem", settings: config.Settings{
		HTTPSProxy: "http://user:secret@proxy:3128", NoProxy: ".svc", Authorities: "some",
	}}
	proxied := map[string]string{"HTTPS_PROXY": "http://user:secret@proxy:3128", "NO_PROXY": ".svc", "SSL_CERT_FILE": "/ca.pem"}
	for name, tc := range map[string]struct {
		module      string
		around      desired.EnvironmentReader
		environment map[string]string
		want        map[string]string
	}{
		"a module that asks for nothing has proxies and authorities all the same": {
			module: "kubemark", around: cluster, environment: map[string]string{"KUBE_TOKEN": "t"},
			want: with(proxied, "KUBE_TOKEN", "t"),
		},
		"a module that asks has endpoints as well": {
			module: "aws", around: known(t, configv1.PlatformStatus{AWS: &configv1.AWSPlatformStatus{ServiceEndpoints: []configv1.AWSServiceEndpoint{
				{Name: "ec2", URL: "https://ec2.example"}, {Name: "elasticloadbalancing", URL: "https://elb.example"}, {Name: "s3", URL: "https://s3.example"},
			}}}),
			want: map[string]string{
				"AWS_ENDPOINT_URL_EC2": "https://ec2.example", "AWS_ENDPOINT_URL_ELASTIC_LOAD_BALANCING": "https://elb.example",
				"AWS_ENDPOINT_URL_ELASTIC_LOAD_BALANCING_V2": "https://elb.example",
			},
		},
		"one that does not ask has none": {
			module: "azure", around: known(t, configv1.PlatformStatus{AWS: &configv1.AWSPlatformStatus{ServiceEndpoints: []configv1.AWSServiceEndpoint{
				{Name: "ec2", URL: "https://ec2.example"},
			}}}),
			want: map[string]string{},
		},
		"Azure's cloud": {
			module: "azure", around: known(t, configv1.PlatformStatus{Azure: &configv1.AzurePlatformStatus{CloudName: configv1.AzureChinaCloud}}),
			want: map[string]string{"ARM_ENVIRONMENT": "china"},
		},
		"what is the run's own counts": {
			module: "kubemark", around: cluster, environment: map[string]string{"SSL_CERT_FILE": "/own.pem"},
			want: with(proxied, "SSL_CERT_FILE", "/own.pem"),
		},
		"a cluster that says nothing": {
			module: "kubemark", around: &around{}, environment: map[string]string{"KUBE_TOKEN": "t"},
			want: map[string]string{"KUBE_TOKEN": "t"},
		},
		"nobody to ask": {
			module: "kubemark", environment: map[string]string{"KUBE_TOKEN": "t"},
			want: map[string]string{"KUBE_TOKEN": "t"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			wanted := &desired.State{Module: named(t, tc.module), Inputs: &render.Inputs{Variables: []byte("{}"), Environment: tc.environment, Sensitive: []string{"t"}}}
			reader, err := desired.NewReader(desired.Options{Environment: tc.around})
			if err != nil {
				t.Fatal(err)
			}
			task := &run{actuator: &Actuator{desired: reader}, machine: &machinev1beta1.Machine{}, wanted: wanted, facts: &lifecycle.Facts{}}
			run, err := task.spec(t.Context(), engine.SearchNone)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, run.Environment); diff != "" {
				t.Errorf("environment (-want +got):\n%s", diff)
			}
			if hidden := slices.Contains(run.Sensitive, "secret"); hidden != (tc.around == cluster) || !slices.Contains(run.Sensitive, "t") {
				t.Errorf("sensitive are %q", run.Sensitive)
			}
		})
	}
}

// known returns a cluster on a platform.
func known(t *testing.T, platform configv1.PlatformStatus) *config.Reader {
	t.Helper()
	infrastructure := &configv1.Infrastructure{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}, Status: configv1.InfrastructureStatus{PlatformStatus: &platform}}
	reader, err := config.New(config.Options{
		Client: fake.NewClientBuilder().WithScheme(plane.Scheme).WithObjects(infrastructure).Build(), Dir: t.TempDir(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return reader
}

func with(environment map[string]string, name, value string) map[string]string {
	environment = maps.Clone(environment)
	environment[name] = value
	return environment
}

// A run that began without what the cluster says would not reach its infrastructure, or another's.
func TestNoRunBeginsBeforeTheClusterIsKnown(t *testing.T) {
	cluster := &around{err: errors.New("the API server is away")}
	b := newBenchAround(t, cluster)
	machine := b.machine()
	failed := b.Create(t.Context(), machine)
	for deadline := time.Now().Add(patience); !strings.Contains(failed.Error(), "after 2 failures"); failed = b.Create(t.Context(), machine) {
		if time.Now().After(deadline) {
			t.Fatalf("no run has failed twice in time: %v", failed)
		}
		time.Sleep(pause)
	}
	if !strings.Contains(failed.Error(), "reading how to reach the infrastructure: the API server is away") {
		t.Errorf("Create: %v, want the reason", failed)
	}
	if b.node(machine) != nil || b.starts() > 0 {
		t.Errorf("the engine was started %d times", b.starts())
	}
	cluster.fail(nil)
	// A run that had read the cluster before still fails.
	for deadline := time.Now().Add(patience); failed != nil; failed = b.Create(t.Context(), machine) {
		if time.Now().After(deadline) {
			t.Fatalf("Create: %v, although the cluster is known now", failed)
		}
		time.Sleep(pause)
	}
	if b.node(machine) == nil {
		t.Error("there is no instance, although the cluster is known now")
	}
}

// The proxy and the authority are what OpenShift's objects say, and the vCenter can be reached and
// trusted in no other way.
func TestAnInstanceIsReachedAsTheClusterSays(t *testing.T) {
	if err := plane.InstallClusterConfig(); err != nil {
		t.Fatal(err)
	}
	cluster := metav1.ObjectMeta{Name: "cluster"}
	managed := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "openshift-config-managed"}}
	through := &configv1.Proxy{ObjectMeta: cluster}
	v := newVCenterReached(t, func(b *bench, environment map[string]string) {
		through.Status.HTTPSProxy = environment["HTTPS_PROXY"]
		authority, err := os.ReadFile(environment["SSL_CERT_FILE"])
		if err != nil {
			t.Fatal(err)
		}
		err = plane.Create(t.Context(), managed, through,
			&configv1.Infrastructure{ObjectMeta: cluster, Status: configv1.InfrastructureStatus{
				InfrastructureName: "demo", PlatformStatus: &configv1.PlatformStatus{Type: configv1.VSpherePlatformType},
				ControlPlaneTopology: configv1.HighlyAvailableTopologyMode, InfrastructureTopology: configv1.HighlyAvailableTopologyMode,
			}},
			&corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: managed.Name, Name: "kube-cloud-config"},
				Data:       map[string]string{"ca-bundle.pem": string(authority)},
			})
		if err != nil {
			t.Fatal(err)
		}
		b.authorities = t.TempDir()
		if b.around, err = config.New(config.Options{Client: b.client, Dir: b.authorities, Clock: b.clock}); err != nil {
			t.Fatal(err)
		}
	})
	machine := v.machine()
	v.bring(machine)
	if v.vm(machine) == nil {
		t.Fatal("there is no virtual machine in the folder")
	}
	v.reports(machine)

	through.Status.NoProxy = "nobody.example"
	if err := v.client.Status().Update(t.Context(), through); err != nil {
		t.Fatal(err)
	}
	v.clock.SetTime(v.clock.Now().Add(time.Minute))
	starts := v.starts()
	if err := v.drive(v.Update, machine); err != nil || v.starts() != starts {
		t.Errorf("after a change of how it is reached, Update: %v, %d more starts; want none", err, v.starts()-starts)
	}
	if err := v.drive(v.Delete, machine); err != nil {
		t.Fatal(err)
	}
}
