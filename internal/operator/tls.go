package operator

import (
	"crypto/tls"
	"slices"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/machine-iac/machine-iac-operator/internal/operator/operands"
)

// openSSL maps OpenSSL's names of cipher suites in TLS profiles to crypto/tls. It omits those that
// Go lacks or considers insecure.
var openSSL = map[string]string{
	"ECDHE-ECDSA-AES128-GCM-SHA256": "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
	"ECDHE-RSA-AES128-GCM-SHA256":   "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
	"ECDHE-ECDSA-AES256-GCM-SHA384": "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
	"ECDHE-RSA-AES256-GCM-SHA384":   "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
	"ECDHE-ECDSA-CHACHA20-POLY1305": "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
	"ECDHE-RSA-CHACHA20-POLY1305":   "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
	"ECDHE-ECDSA-AES128-SHA":        "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
	"ECDHE-RSA-AES128-SHA":          "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA",
	"ECDHE-ECDSA-AES256-SHA":        "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
	"ECDHE-RSA-AES256-SHA":          "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
}

// tlsOf returns the TLS settings of servers from the cluster's profile. Only with the policy
// StrictAllComponents does the profile apply to every component; those that never followed it
// otherwise use the profile Intermediate.
func tlsOf(spec configv1.APIServerSpec) operands.TLS {
	profile := configv1.TLSProfiles[configv1.TLSProfileIntermediateType]
	if chosen := spec.TLSSecurityProfile; chosen != nil &&
		spec.TLSAdherence == configv1.TLSAdherencePolicyStrictAllComponents {
		if chosen.Type == configv1.TLSProfileCustomType && chosen.Custom != nil {
			profile = &chosen.Custom.TLSProfileSpec
		} else if known, ok := configv1.TLSProfiles[chosen.Type]; ok {
			profile = known
		}
	}
	accepted := operands.TLS{MinVersion: string(profile.MinTLSVersion)}
	if profile.MinTLSVersion == configv1.VersionTLS13 {
		return accepted // Go does not let applications choose its cipher suites
	}
	for _, name := range profile.Ciphers {
		if suite, ok := openSSL[name]; ok &&
			slices.ContainsFunc(tls.CipherSuites(), func(s *tls.CipherSuite) bool { return s.Name == suite }) {
			accepted.CipherSuites = append(accepted.CipherSuites, suite)
		}
	}
	return accepted
}
