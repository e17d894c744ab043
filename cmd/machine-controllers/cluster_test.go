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
		wantFacts       module.ClusterValues
		wantEnvironment map[string]string
	}{
		"what no flag says is the cluster's": {
			objects:         openshift,
			wantFacts:       module.ClusterValues{"clusterID": "demo-x7k2p", "region": "us-central1", "project": "acme", "architecture": runtime.GOARCH},
			wantEnvironment: map[string]string{"HTTP_PROXY": "http://cluster", "HTTPS_PROXY": "http://cluster"},
		},
		"what a flag says is left alone": {
			options: options{
				clusterID: "mine", clusterFacts: assignments{"project": "mine", "architecture": "s390x"}, engineEnvironment: assignments{"https_proxy": "http://mine"},
			}, objects: openshift,
			wantFacts:       module.ClusterValues{"clusterID": "mine", "region": "us-central1", "project": "mine", "architecture": "s390x"},
			wantEnvironment: map[string]string{"HTTP_PROXY": "http://cluster"},
		},
		"another cluster than OpenShift": {
			wantFacts: module.ClusterValues{"clusterID": "", "architecture": runtime.GOARCH}, wantEnvironment: map[string]string{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			scheme, err := newScheme()
			if err != nil {
				t.Fatal(err)
			}
			o := tc.options
			o.workDir = t.TempDir()
			reader, err := o.readCluster(t.Context(), fake.NewClientBuilder().WithScheme(scheme).WithObjects(tc.objects...).Build())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.wantFacts, o.facts()); diff != "" {
				t.Errorf("facts (-want +got):\n%s", diff)
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
