package operator

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// installConfig is the ConfigMap with the installer's configuration. Manuals for kubemark have
// people create one.
var installConfig = client.ObjectKey{Namespace: "kube-system", Name: "cluster-config-v1"}

const installConfigKey = "install-config"

// platformTypes are the platforms whose type is not spelled as the installer's configuration
// spells them.
var platformTypes = []configv1.PlatformType{configv1.AWSPlatformType, configv1.AzurePlatformType,
	configv1.BareMetalPlatformType, configv1.GCPPlatformType, configv1.IBMCloudPlatformType, configv1.LibvirtPlatformType, configv1.NonePlatformType,
	configv1.NutanixPlatformType, configv1.OpenStackPlatformType, configv1.OvirtPlatformType, configv1.PowerVSPlatformType,
	configv1.VSpherePlatformType}

// installedPlatform returns the platform of the installer's configuration, or "" without one, or
// without the right to read it.
func (r *Reconciler) installedPlatform(ctx context.Context) (string, error) {
	found := &corev1.ConfigMap{}
	if _, err := r.read(ctx, installConfig, found); err != nil && !apierrors.IsForbidden(err) {
		return "", err
	}
	config := struct {
		Platform map[string]any `json:"platform"`
	}{}
	if err := yaml.Unmarshal([]byte(found.Data[installConfigKey]), &config); err != nil {
		return "", fmt.Errorf("ConfigMap %s: %s is not YAML; correct or delete it: %w", installConfig, installConfigKey, err)
	}
	if len(config.Platform) != 1 {
		return "", nil
	}
	name := slices.Collect(maps.Keys(config.Platform))[0]
	for _, known := range platformTypes {
		if strings.EqualFold(string(known), name) {
			return string(known), nil
		}
	}
	return name, nil
}
