package contract

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
)

// endpointSource matches the part after "serviceEndpoint.".
var endpointSource = regexp.MustCompile(`^(aws|ibmcloud|powervs)\.[A-Za-z0-9-]+$`)

// checkSource checks the source of an environment variable's value.
func (m *Metadata) checkSource(path string, variable v1alpha1.EnvironmentVariable) {
	switch variable.From {
	case "":
		return
	case v1alpha1.FromCABundleFile, v1alpha1.FromAzureCloud, v1alpha1.FromAzureResourceManagerHost,
		v1alpha1.FromPrismCentralAddress, v1alpha1.FromPrismCentralPort:
	default:
		service, isEndpoint := strings.CutPrefix(string(variable.From), string(v1alpha1.FromServiceEndpoint))
		if !isEndpoint || !endpointSource.MatchString(service) {
			m.AtField(path, fmt.Sprintf("is %q, which the cluster's configuration does not contain", variable.From),
				"use caBundleFile, azureCloud, azureResourceManagerHost, prismCentralAddress, prismCentralPort or serviceEndpoint.PLATFORM.SERVICE with the platform aws, ibmcloud or powervs")
		}
	}
	if variable.Value != "" {
		m.AtField(path, "is set in addition to a value", "keep one of both")
	}
}
