package main

import (
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/test/shortdir"
)

func TestFlagsWinOverTheCluster(t *testing.T) {
	cluster := metav1.ObjectMeta{Name: "cluster"}
	openshift := []client.Object{
		&configv1.Infrastructure{ObjectMeta: cluster, Status: configv1.InfrastructureStatus{
			InfrastructureName: "demo-x7k2p", PlatformStatus: &configv1.PlatformStatus{GCP: &configv1.GCPPlatformStatus{Region: "us-central1", ProjectID: "acme"}},
		}},
		&configv1.Proxy{ObjectMeta: cluster, Status: configv1.ProxyStatus{HTTPProxy: "http://cluster", HTTPSProxy: "http://cluster"}},
	}
	for name, tc := range map[string]struct {
		options         options
		objects         []client.Object
		wantValues      module.ClusterValues
		wantEnvironment map[string]string
	}{
		"what no flag says is the cluster's": {
			objects:         openshift,
			wantValues:      module.ClusterValues{"clusterID": "demo-x7k2p", "region": "us-central1", "project": "acme", "architecture": runtime.GOARCH},
			wantEnvironment: map[string]string{"HTTP_PROXY": "http://cluster", "HTTPS_PROXY": "http://cluster"},
		},
		"what a flag says is left alone": {
			options: options{
				clusterID: "mine", givenClusterValues: assignments{"project": "mine", "architecture": "s390x"}, engineEnvironment: assignments{"https_proxy": "http://mine"},
			}, objects: openshift,
			wantValues:      module.ClusterValues{"clusterID": "mine", "region": "us-central1", "project": "mine", "architecture": "s390x"},
			wantEnvironment: map[string]string{"HTTP_PROXY": "http://cluster"},
		},
		"another cluster than OpenShift": {
			wantValues: module.ClusterValues{"clusterID": "", "architecture": runtime.GOARCH}, wantEnvironment: map[string]string{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			scheme, err := newScheme()
			if err != nil {
				t.Fatal(err)
			}
			o := tc.options
			o.workDir = shortdir.New(t)
			own, reader, err := o.readCluster(t.Context(), fake.NewClientBuilder().WithScheme(scheme).WithObjects(tc.objects...).Build())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.wantValues, o.clusterValues()); diff != "" {
				t.Errorf("cluster values (-want +got):\n%s", diff)
			}
			if known, err := reader.Cluster(t.Context()); err != nil || known.Installation != string(own.UID()) {
				t.Errorf("modules are told of the installation %+v, %v", known, err)
			}
			environment, _, err := reader.Environment(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.wantEnvironment, environment); diff != "" {
				t.Errorf("environment (-want +got):\n%s", diff)
			}
		})
	}
}
