package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	configv1 "github.com/openshift/api/config/v1"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/module"
)

// everySource is a module's variables, one from each source.
var everySource = []v1alpha1.EnvironmentVariable{
	{Name: "CONSTANT", Value: "constant"},
	{Name: "AWS_CA_BUNDLE", From: v1alpha1.FromCABundleFile},
	{Name: "ARM_ENVIRONMENT", From: v1alpha1.FromAzureCloud},
	{Name: "ARM_METADATA_HOSTNAME", From: v1alpha1.FromAzureResourceManagerHost},
	{Name: "AWS_ENDPOINT_URL_EC2", From: "serviceEndpoint.aws.ec2"},
	{Name: "AWS_ENDPOINT_URL_STS", From: "serviceEndpoint.aws.sts"},
	{Name: "IBMCLOUD_IS_NG_API_ENDPOINT", From: "serviceEndpoint.ibmcloud.VPC"},
	{Name: "IBMCLOUD_PI_API_ENDPOINT", From: "serviceEndpoint.powervs.Power"},
	{Name: "NUTANIX_ENDPOINT", From: v1alpha1.FromPrismCentralAddress},
	{Name: "NUTANIX_PORT", From: v1alpha1.FromPrismCentralPort},
}

func TestSettingsOfPlatforms(t *testing.T) {
	for name, tc := range map[string]struct {
		platform        configv1.PlatformStatus
		want            module.ClusterValues
		wantEnvironment map[string]string
	}{
		"AWS has endpoints by the names of its services": {
			platform: configv1.PlatformStatus{AWS: &configv1.AWSPlatformStatus{
				Region: "us-iso-east-1", ServiceEndpoints: []configv1.AWSServiceEndpoint{{Name: "ec2", URL: "https://ec2.example"}, {Name: "s3", URL: "https://s3.example"}},
			}},
			want:            module.ClusterValues{"clusterID": "demo-x7k2p", "region": "us-iso-east-1"},
			wantEnvironment: map[string]string{"AWS_ENDPOINT_URL_EC2": "https://ec2.example"},
		},
		"an endpoint of another platform is not taken for AWS's": {
			platform: configv1.PlatformStatus{PowerVS: &configv1.PowerVSPlatformStatus{
				Region: "dal", ServiceEndpoints: []configv1.PowerVSServiceEndpoint{{Name: "Power", URL: "https://power.example"}, {Name: "ec2", URL: "https://ec2.example"}},
			}},
			want:            module.ClusterValues{"clusterID": "demo-x7k2p", "region": "dal"},
			wantEnvironment: map[string]string{"IBMCLOUD_PI_API_ENDPOINT": "https://power.example"},
		},
		"IBM Cloud has a location": {
			platform: configv1.PlatformStatus{IBMCloud: &configv1.IBMCloudPlatformStatus{
				Location: "eu-de", ServiceEndpoints: []configv1.IBMCloudServiceEndpoint{{Name: configv1.IBMCloudServiceVPC, URL: "https://vpc.example"}},
			}},
			want:            module.ClusterValues{"clusterID": "demo-x7k2p", "region": "eu-de"},
			wantEnvironment: map[string]string{"IBMCLOUD_IS_NG_API_ENDPOINT": "https://vpc.example"},
		},
		"Google Cloud has a project": {
			platform: configv1.PlatformStatus{GCP: &configv1.GCPPlatformStatus{Region: "us-central1", ProjectID: "acme"}},
			want:     module.ClusterValues{"clusterID": "demo-x7k2p", "region": "us-central1", "project": "acme"},
		},
		"Azure is public unless it says otherwise, and has one resource group": {
			platform:        configv1.PlatformStatus{Azure: &configv1.AzurePlatformStatus{ResourceGroupName: "demo-rg"}},
			want:            module.ClusterValues{"clusterID": "demo-x7k2p", "resourceGroup": "demo-rg", "networkResourceGroup": "demo-rg"},
			wantEnvironment: map[string]string{"ARM_ENVIRONMENT": "public"},
		},
		"Azure's other clouds are named as tools name them": {
			platform: configv1.PlatformStatus{Azure: &configv1.AzurePlatformStatus{
				ResourceGroupName: "demo-rg", NetworkResourceGroupName: "net-rg", CloudName: configv1.AzureUSGovernmentCloud,
			}},
			want:            module.ClusterValues{"clusterID": "demo-x7k2p", "resourceGroup": "demo-rg", "networkResourceGroup": "net-rg"},
			wantEnvironment: map[string]string{"ARM_ENVIRONMENT": "usgovernment"},
		},
		"Azure Stack Hub is known by its host": {
			platform: configv1.PlatformStatus{Azure: &configv1.AzurePlatformStatus{
				ResourceGroupName: "demo-rg", CloudName: configv1.AzureStackCloud, ARMEndpoint: "https://management.local.azurestack.external/",
			}},
			want:            module.ClusterValues{"clusterID": "demo-x7k2p", "resourceGroup": "demo-rg", "networkResourceGroup": "demo-rg"},
			wantEnvironment: map[string]string{"ARM_METADATA_HOSTNAME": "management.local.azurestack.external"},
		},
		"a platform without settings": {
			platform: configv1.PlatformStatus{Type: configv1.VSpherePlatformType},
			want:     module.ClusterValues{"clusterID": "demo-x7k2p", "platform": "VSphere"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := settingsOf(objects{infrastructure: infrastructure(tc.platform)})
			if diff := cmp.Diff(tc.want, got.ClusterValues); diff != "" {
				t.Errorf("cluster values (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantEnvironment, got.Environment(everySource, "", nil), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("environment (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPrismCentral(t *testing.T) {
	for name, tc := range map[string]struct {
		endpoint configv1.NutanixPrismEndpoint
		want     map[string]string
	}{
		"a name":            {configv1.NutanixPrismEndpoint{Address: "pc.example.com", Port: 9440}, map[string]string{"NUTANIX_ENDPOINT": "pc.example.com", "NUTANIX_PORT": "9440"}},
		"an address":        {configv1.NutanixPrismEndpoint{Address: "192.0.2.1", Port: 443}, map[string]string{"NUTANIX_ENDPOINT": "192.0.2.1", "NUTANIX_PORT": "443"}},
		"IPv6, in brackets": {configv1.NutanixPrismEndpoint{Address: "2001:db8::1"}, map[string]string{"NUTANIX_ENDPOINT": "[2001:db8::1]"}},
		"nothing yet":       {configv1.NutanixPrismEndpoint{Port: 9440}, map[string]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			known := infrastructure(configv1.PlatformStatus{Type: configv1.NutanixPlatformType})
			known.Spec.PlatformSpec.Nutanix = &configv1.NutanixPlatformSpec{PrismCentral: tc.endpoint}
			if diff := cmp.Diff(tc.want, Of(known).Environment(everySource, "", nil)); diff != "" {
				t.Errorf("environment (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSettingsOfNothing(t *testing.T) {
	got := settingsOf(objects{})
	if diff := cmp.Diff(map[string]string{}, got.Environment(everySource, "", nil)); diff != "" || len(got.ClusterValues) > 0 || got.Sensitive() != nil {
		t.Errorf("got %+v and (-want +got):\n%s", got, diff)
	}
}

func TestProxiesAreThoseInForce(t *testing.T) {
	status := configv1.ProxyStatus{HTTPProxy: "http://p:3128", HTTPSProxy: "https://p:3129", NoProxy: ".svc,10.0.0.0/8"}
	settings := settingsOf(objects{proxy: proxy(status, "")})
	for name, tc := range map[string]struct {
		given []string
		want  map[string]string
	}{
		"every module has them, without asking": {
			want: map[string]string{"HTTP_PROXY": "http://p:3128", "HTTPS_PROXY": "https://p:3129", "NO_PROXY": ".svc,10.0.0.0/8"},
		},
		"what is set elsewhere is left alone, however it is written": {
			given: []string{"https_proxy", "NO_PROXY"},
			want:  map[string]string{"HTTP_PROXY": "http://p:3128"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, settings.Environment(nil, "", tc.given)); diff != "" {
				t.Errorf("environment (-want +got):\n%s", diff)
			}
		})
	}
	if got := settings.Sensitive(); len(got) > 0 {
		t.Errorf("sensitive are %q, but these proxies have no password", got)
	}
}

func TestAuthorities(t *testing.T) {
	one, two := authority(t, "one"), authority(t, "two")
	trusting := proxy(configv1.ProxyStatus{}, "user-ca-bundle")
	for name, tc := range map[string]struct {
		found        objects
		want         string
		wantUnusable string
	}{
		"those for the proxy and those for the cloud are both trusted": {
			found: objects{proxy: trusting, trustedCA: configMap(trustedCA, trustedCAKey, "\n"+one), cloudConfig: configMap(cloudConfig, cloudCAKey, two+"\n\n")},
			want:  one + two,
		},
		"a cloud without an authority of its own": {
			found: objects{cloudConfig: configMap(cloudConfig, "cloud.conf", "[Global]")},
		},
		"what is no certificate is reported, and the rest is taken": {
			found:        objects{proxy: trusting, trustedCA: configMap(trustedCA, trustedCAKey, "soon"), cloudConfig: configMap(cloudConfig, cloudCAKey, two)},
			want:         two,
			wantUnusable: "the key ca-bundle.crt of ConfigMap openshift-config-managed/trusted-ca-bundle has no certificate in PEM",
		},
		"authorities that the cluster has not put together yet": {
			found:        objects{proxy: trusting},
			wantUnusable: "the Proxy trusts ConfigMap user-ca-bundle, but there is no ConfigMap openshift-config-managed/trusted-ca-bundle with its authorities",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := settingsOf(tc.found)
			if got.Authorities != tc.want || strings.Join(got.unusable, "\n") != tc.wantUnusable {
				t.Errorf("got %q, unusable %q", got.Authorities, got.unusable)
			}
		})
	}
}

func TestTheFileOfAuthoritiesReachesWhoAsksAndEveryProgram(t *testing.T) {
	want := map[string]string{"SSL_CERT_FILE": "/ca.pem", "AWS_CA_BUNDLE": "/ca.pem"}
	if diff := cmp.Diff(want, Settings{}.Environment(everySource, "/ca.pem", nil)); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"AWS_CA_BUNDLE": "/ca.pem"}, Settings{}.Environment(everySource, "/ca.pem", []string{"SSL_CERT_FILE"})); diff != "" {
		t.Errorf("beside a file that is set elsewhere (-want +got):\n%s", diff)
	}
}

func TestPasswordsOfProxiesAreSensitive(t *testing.T) {
	for name, tc := range map[string]struct {
		settings Settings
		want     []string
	}{
		"a password, as it is written and as it is meant": {
			settings: Settings{HTTPProxy: "http://user:p%40ss@proxy:3128", HTTPSProxy: "http://user:p%40ss@proxy:3128"},
			want:     []string{"http://user:p%40ss@proxy:3128", "p%40ss", "p@ss", "user:p%40ss"},
		},
		"an address without a scheme":         {settings: Settings{HTTPSProxy: "user:secret@proxy"}, want: []string{"secret", "user:secret", "user:secret@proxy"}},
		"a name may be as good as a password": {settings: Settings{HTTPSProxy: "https://token@proxy"}, want: []string{"https://token@proxy", "token"}},
		"nobody signs in":                     {settings: Settings{HTTPSProxy: "https://proxy"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.settings.Sensitive(), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("sensitive (-want +got):\n%s", diff)
			}
		})
	}
}
