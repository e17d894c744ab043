package config

import (
	"cmp"
	"crypto/x509"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/module"
)

// Keys of the ConfigMaps with certificate authorities.
const (
	trustedCAKey = "ca-bundle.crt"
	cloudCAKey   = "ca-bundle.pem"
)

// Settings are how a cluster's infrastructure is reached. In the zero value, nothing is set.
type Settings struct {
	// ClusterValues are what defaults of providerSpecs are made of, as far as the cluster has them.
	ClusterValues module.ClusterValues
	// Cluster is what modules may know of the cluster.
	Cluster *module.Cluster
	// HTTPProxy, HTTPSProxy and NoProxy are the proxies in force.
	HTTPProxy, HTTPSProxy, NoProxy string
	// Authorities are certificates in PEM that are to be trusted beside the system's.
	Authorities string

	// values has what a variable of a module may be from, but for the file with the authorities.
	values map[v1alpha1.EnvironmentSource]string
	// unusable says what of the objects cannot be used.
	unusable []string
}

// objects are what settings are made of, each nil where the cluster has none.
type objects struct {
	infrastructure *configv1.Infrastructure
	proxy          *configv1.Proxy
	trustedCA      *corev1.ConfigMap
	cloudConfig    *corev1.ConfigMap
}

// Of returns the settings of a cluster that has this Infrastructure, and nothing else that says how
// its infrastructure is reached.
func Of(infrastructure *configv1.Infrastructure) Settings {
	return settingsOf(objects{infrastructure: infrastructure})
}

func settingsOf(found objects) Settings {
	s := Settings{
		ClusterValues: module.ClusterValues{}, Cluster: module.ClusterOf(found.infrastructure), values: map[v1alpha1.EnvironmentSource]string{},
	}
	s.setClusterValue(module.ValuePlatform, s.Cluster.Platform)
	if found.infrastructure != nil {
		s.setClusterValue(module.ValueClusterID, found.infrastructure.Status.InfrastructureName)
		if platform := found.infrastructure.Status.PlatformStatus; platform != nil {
			s.takePlatform(platform)
		}
		if nutanix := found.infrastructure.Spec.PlatformSpec.Nutanix; nutanix != nil {
			s.takePrismCentral(nutanix.PrismCentral)
		}
	}
	if found.proxy != nil {
		// spec may be rejected; status is what the cluster uses, and its noProxy includes the cluster's
		// own networks.
		status := found.proxy.Status
		s.HTTPProxy, s.HTTPSProxy, s.NoProxy = status.HTTPProxy, status.HTTPSProxy, status.NoProxy
		if name := found.proxy.Spec.TrustedCA.Name; name != "" && found.trustedCA == nil {
			s.unusable = append(s.unusable,
				fmt.Sprintf("the Proxy trusts ConfigMap %s, but there is no ConfigMap %s with its authorities", name, trustedCA))
		}
	}
	s.trust(found.trustedCA, trustedCAKey)
	s.trust(found.cloudConfig, cloudCAKey)
	return s
}

// trust adds the certificates of a ConfigMap, which may be nil or without the key.
func (s *Settings) trust(configMap *corev1.ConfigMap, key string) {
	if configMap == nil || strings.TrimSpace(configMap.Data[key]) == "" {
		return
	}
	if !x509.NewCertPool().AppendCertsFromPEM([]byte(configMap.Data[key])) {
		s.unusable = append(s.unusable, fmt.Sprintf("the key %s of ConfigMap %s/%s has no certificate in PEM", key,
			configMap.Namespace, configMap.Name))
		return
	}
	s.Authorities += strings.TrimSpace(configMap.Data[key]) + "\n"
}

func (s *Settings) takePlatform(platform *configv1.PlatformStatus) {
	if aws := platform.AWS; aws != nil {
		s.setClusterValue(module.ValueRegion, aws.Region)
		for _, endpoint := range aws.ServiceEndpoints {
			s.endpoint("aws", endpoint.Name, endpoint.URL)
		}
	}
	if ibm := platform.IBMCloud; ibm != nil {
		s.setClusterValue(module.ValueRegion, ibm.Location)
		for _, endpoint := range ibm.ServiceEndpoints {
			s.endpoint("ibmcloud", string(endpoint.Name), endpoint.URL)
		}
	}
	if power := platform.PowerVS; power != nil {
		s.setClusterValue(module.ValueRegion, power.Region)
		for _, endpoint := range power.ServiceEndpoints {
			s.endpoint("powervs", endpoint.Name, endpoint.URL)
		}
	}
	if gcp := platform.GCP; gcp != nil {
		s.setClusterValue(module.ValueRegion, gcp.Region)
		s.setClusterValue(module.ValueProject, gcp.ProjectID)
	}
	if azure := platform.Azure; azure != nil {
		s.takeAzure(azure)
	}
}

func (s *Settings) setClusterValue(name, value string) {
	if value != "" {
		s.ClusterValues[name] = value
	}
}

func (s *Settings) endpoint(platform, service, address string) {
	s.set(v1alpha1.FromServiceEndpoint+v1alpha1.EnvironmentSource(platform+"."+service), address)
}

func (s *Settings) set(source v1alpha1.EnvironmentSource, value string) {
	if value != "" {
		s.values[source] = value
	}
}

// azureClouds are the names by which tools know the clouds of Azure. An empty one is the public
// cloud's.
var azureClouds = map[configv1.AzureCloudEnvironment]string{
	"":                              "public",
	configv1.AzurePublicCloud:       "public",
	configv1.AzureUSGovernmentCloud: "usgovernment",
	configv1.AzureChinaCloud:        "china",
	configv1.AzureGermanCloud:       "german",
}

func (s *Settings) takeAzure(azure *configv1.AzurePlatformStatus) {
	s.setClusterValue(module.ValueResourceGroup, azure.ResourceGroupName)
	s.setClusterValue(module.ValueNetworkResourceGroup, cmp.Or(azure.NetworkResourceGroupName, azure.ResourceGroupName))
	s.set(v1alpha1.FromAzureCloud, azureClouds[azure.CloudName])
	if endpoint, err := url.Parse(azure.ARMEndpoint); err == nil {
		s.set(v1alpha1.FromAzureResourceManagerHost, endpoint.Host)
	}
}

// takePrismCentral takes where Nutanix is managed. What it says must name a host, and a port that
// there can be.
func (s *Settings) takePrismCentral(endpoint configv1.NutanixPrismEndpoint) {
	address := endpoint.Address
	if ip := net.ParseIP(address); ip != nil && ip.To4() == nil {
		address = "[" + address + "]"
	}
	if address == "" {
		return
	}
	s.set(v1alpha1.FromPrismCentralAddress, address)
	if endpoint.Port > 0 {
		s.set(v1alpha1.FromPrismCentralPort, strconv.Itoa(int(endpoint.Port)))
	}
}

// Environment returns a run's environment from the settings: the proxies and CAs that every program
// uses, and the module's variables that come from the cluster. bundle is the file with the CAs, or
// empty. given are names that are set elsewhere.
func (s Settings) Environment(variables []v1alpha1.EnvironmentVariable, bundle string,
	given []string) map[string]string {
	environment := map[string]string{}
	set := func(name, value string) {
		if value != "" && !strings.ContainsRune(value, 0) &&
			!slices.ContainsFunc(given, func(other string) bool { return strings.EqualFold(other, name) }) {
			environment[name] = value
		}
	}
	for name, value := range map[string]string{
		"HTTP_PROXY": s.HTTPProxy, "HTTPS_PROXY": s.HTTPSProxy, "NO_PROXY": s.NoProxy, "SSL_CERT_FILE": bundle,
	} {
		set(name, value)
	}
	for _, variable := range variables {
		if variable.From == v1alpha1.FromCABundleFile {
			set(variable.Name, bundle)
		} else {
			set(variable.Name, s.values[variable.From])
		}
	}
	return environment
}

// Sensitive returns what must not be shown: proxy URLs with a password, and the passwords.
func (s Settings) Sensitive() []string {
	var values []string
	for _, address := range []string{s.HTTPProxy, s.HTTPSProxy} {
		_, behind, found := strings.Cut(address, "://")
		if !found {
			behind = address
		}
		at := strings.LastIndex(behind, "@")
		if at < 0 {
			continue
		}
		values = append(values, address, behind[:at])
		if _, password, ok := strings.Cut(behind[:at], ":"); ok && password != "" {
			values = append(values, password)
			if plain, err := url.PathUnescape(password); err == nil && plain != password {
				values = append(values, plain)
			}
		}
	}
	slices.Sort(values)
	return slices.Compact(values)
}
