package controlplane

import (
	"fmt"
	"path/filepath"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// InstallClusterConfig installs OpenShift's CRDs that describe a cluster, such as Infrastructure and Proxy, and
// ClusterOperators.
func (p *ControlPlane) InstallClusterConfig() error { return InstallClusterConfig(p.Config) }

// InstallClusterConfig does the same on any cluster.
func InstallClusterConfig(config *rest.Config) error {
	return installOpenShiftCRDs(config, "the cluster's configuration", "config/v1",
		"0000_00_cluster-version-operator_01_clusteroperators.crd.yaml",
		"0000_03_config-operator_01_proxies.crd.yaml",
		"0000_10_config-operator_01_apiservers-Default.crd.yaml",
		"0000_10_config-operator_01_featuregates.crd.yaml",
		"0000_10_config-operator_01_infrastructures-Default.crd.yaml",
	)
}

// InstallServiceCA installs the CRD by which OpenShift's service CA is known.
func (p *ControlPlane) InstallServiceCA() error {
	return installOpenShiftCRDs(p.Config, "the service CA", "operator/v1", "0000_50_service-ca_02_servicecas.crd.yaml")
}

// InstallControlPlaneMachineSets installs their CRD.
func (p *ControlPlane) InstallControlPlaneMachineSets() error {
	return installOpenShiftCRDs(p.Config, "ControlPlaneMachineSets", "machine/v1",
		"0000_10_control-plane-machine-set_01_controlplanemachinesets-Default.crd.yaml")
}

// InstallAPIServerWithAdherence installs the variant of OpenShift's APIServer CRD with spec.tlsAdherence, which is
// feature-gated.
func (p *ControlPlane) InstallAPIServerWithAdherence() error {
	return installOpenShiftCRDs(p.Config, "the APIServer", "config/v1",
		"0000_10_config-operator_01_apiservers-CustomNoUpgrade.crd.yaml")
}

// InstallMonitoring installs CRDs named like the Prometheus Operator's, which accept any spec.
func (p *ControlPlane) InstallMonitoring() error {
	root, err := repositoryRoot()
	if err != nil {
		return err
	}
	return installCRDs(p.Config, "the Prometheus Operator",
		filepath.Join(root, "test", "controlplane", "testdata", "monitoring.yaml"))
}

// installOpenShiftCRDs installs CRDs from a package of github.com/openshift/api.
func installOpenShiftCRDs(config *rest.Config, of, group string, names ...string) error {
	root, err := repositoryRoot()
	if err != nil {
		return err
	}
	directory, err := apiDirectory(root)
	if err != nil {
		return err
	}
	files := make([]string, len(names))
	for i, name := range names {
		files[i] = filepath.Join(directory, filepath.FromSlash(group), "zz_generated.crd-manifests", name)
	}
	return installCRDs(config, of, files...)
}

func installCRDs(config *rest.Config, of string, files ...string) error {
	if _, err := envtest.InstallCRDs(config,
		envtest.CRDInstallOptions{ErrorIfPathMissing: true, Paths: files}); err != nil {
		return fmt.Errorf("installing the CRDs of %s: %w", of, err)
	}
	return nil
}
