package driver

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
)

const (
	// cloudName is the only cloud in the driver's clouds.yaml.
	cloudName = "openstack"

	keyClouds    = "clouds.yaml"
	keyAuthority = "cacert"

	openstackKind = "OpenstackProviderSpec"
)

// cloud is an entry of clouds.yaml.
type cloud struct {
	AuthType string    `json:"auth_type,omitempty"`
	Auth     cloudAuth `json:"auth"`
	Region   string    `json:"region_name,omitempty"`
	// Verify is false if certificates are not verified.
	Verify *bool `json:"verify,omitempty"`
}

type cloudAuth struct {
	URL                         string `json:"auth_url"`
	Username                    string `json:"username,omitempty"`
	Password                    string `json:"password,omitempty"`
	UserDomainName              string `json:"user_domain_name,omitempty"`
	UserDomainID                string `json:"user_domain_id,omitempty"`
	ProjectName                 string `json:"project_name,omitempty"`
	ProjectID                   string `json:"project_id,omitempty"`
	ProjectDomainName           string `json:"project_domain_name,omitempty"`
	ProjectDomainID             string `json:"project_domain_id,omitempty"`
	ApplicationCredentialID     string `json:"application_credential_id,omitempty"`
	ApplicationCredentialName   string `json:"application_credential_name,omitempty"`
	ApplicationCredentialSecret string `json:"application_credential_secret,omitempty"`
}

// isOpenStack reports whether credentials are Gardener's for OpenStack without a clouds.yaml.
func isOpenStack(data map[string][]byte) bool {
	return len(data["authURL"]) > 0 && len(data[keyClouds]) == 0
}

// openstackCredentials adds what the module reads to Gardener's credentials: a clouds.yaml with one
// cloud, and the CA certificate.
func openstackCredentials(data map[string][]byte, region string) (map[string][]byte, error) {
	text := func(key string) string { return strings.TrimSpace(string(data[key])) }
	if text("clientCert") != "" || text("clientKey") != "" {
		return nil, errors.New("the module for OpenStack does not support the Secret's keys clientCert and clientKey: set " +
			"cloudsSecret to a Secret with a clouds.yaml and other credentials")
	}
	one := cloud{Auth: cloudAuth{URL: text("authURL")}, Region: region}
	userDomain := func() {
		one.Auth.UserDomainName, one.Auth.UserDomainID = text("userDomainName"), text("userDomainID")
		if one.Auth.UserDomainName == "" && one.Auth.UserDomainID == "" {
			one.Auth.UserDomainName, one.Auth.UserDomainID = text("domainName"), text("domainID")
		}
	}
	switch {
	case text("password") != "":
		userDomain()
		one.Auth.Username, one.Auth.Password = text("username"), text("password")
		one.Auth.ProjectName, one.Auth.ProjectID = text("tenantName"), text("tenantID")
		one.Auth.ProjectDomainName, one.Auth.ProjectDomainID = text("domainName"), text("domainID")
	case text("applicationCredentialSecret") != "":
		one.AuthType = "v3applicationcredential"
		one.Auth.ApplicationCredentialSecret = text("applicationCredentialSecret")
		if one.Auth.ApplicationCredentialID = text("applicationCredentialID"); one.Auth.ApplicationCredentialID == "" {
			userDomain()
			one.Auth.ApplicationCredentialName, one.Auth.Username = text("applicationCredentialName"), text("username")
		}
	default:
		return nil, errors.New("the Secret has authURL, but neither password nor applicationCredentialSecret")
	}
	if strings.EqualFold(text("insecure"), "true") {
		one.Verify = new(bool)
	}
	clouds, err := json.Marshal(map[string]any{"clouds": map[string]cloud{cloudName: one}}) // JSON is valid YAML
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", keyClouds, err)
	}
	all := maps.Clone(data)
	all[keyClouds] = clouds
	if authority := data["caCert"]; len(authority) > 0 {
		all[keyAuthority] = authority
	}
	return all, nil
}

// regionOf returns a class's region, which Gardener's Secrets for OpenStack lack.
func regionOf(class *mcm.MachineClass) string {
	if class.NodeTemplate == nil {
		return ""
	}
	return class.NodeTemplate.Region
}

// inRegion returns the part of a Secret's name for a region: classes of several regions may share
// credentials.
func inRegion(region string) string {
	if region == "" {
		return ""
	}
	return "-" + strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(region)), "-")
}

// nameCloud makes a providerSpec for OpenStack use the cloud in the driver's clouds.yaml. Field
// names are matched case-insensitively.
func nameCloud(providerSpec map[string]any) {
	if kind, _ := providerSpec["kind"].(string); !strings.EqualFold(kind, openstackKind) {
		return
	}
	maps.DeleteFunc(providerSpec, func(key string, _ any) bool { return strings.EqualFold(key, "cloudName") })
	providerSpec["cloudName"] = cloudName
}
