package controlplane

import (
	"fmt"
	"path/filepath"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// InstallClusterConfig installs the CRDs in which OpenShift describes a cluster, Infrastructure and Proxy among them, and that of ClusterOperators.
func (p *ControlPlane) InstallClusterConfig() error { return InstallClusterConfig(p.Config) }

// InstallClusterConfig does the same on any cluster.
func InstallClusterConfig(config *rest.Config) error {
	root, err := repositoryRoot()
	if err != nil {
		return err
	}
	directory, err := apiDirectory(root)
	if err != nil {
		return err
	}
	manifests := filepath.Join(directory, "config", "v1", "zz_generated.crd-manifests")
	_, err = envtest.InstallCRDs(config, envtest.CRDInstallOptions{ErrorIfPathMissing: true, Paths: []string{
		filepath.Join(manifests, "0000_00_cluster-version-operator_01_clusteroperators.crd.yaml"),
		filepath.Join(manifests, "0000_03_config-operator_01_proxies.crd.yaml"),
		filepath.Join(manifests, "0000_10_config-operator_01_apiservers-Default.crd.yaml"),
		filepath.Join(manifests, "0000_10_config-operator_01_featuregates.crd.yaml"),
		filepath.Join(manifests, "0000_10_config-operator_01_infrastructures-Default.crd.yaml"),
	}})
	if err != nil {
		return fmt.Errorf("installing the CRDs of the cluster's configuration: %w", err)
	}
	return nil
}

// InstallAPIServerWithAdherence replaces the CRD of OpenShift's APIServer by the one that has spec.tlsAdherence, which is behind a feature gate.
func (p *ControlPlane) InstallAPIServerWithAdherence() error {
	root, err := repositoryRoot()
	if err != nil {
		return err
	}
	directory, err := apiDirectory(root)
	if err != nil {
		return err
	}
	file := filepath.Join(directory, "config", "v1", "zz_generated.crd-manifests", "0000_10_config-operator_01_apiservers-CustomNoUpgrade.crd.yaml")
	if _, err := envtest.InstallCRDs(p.Config, envtest.CRDInstallOptions{ErrorIfPathMissing: true, Paths: []string{file}}); err != nil {
		return fmt.Errorf("installing the CRD of the APIServer: %w", err)
	}
	return nil
}

// InstallMonitoring installs CRDs by the names of the Prometheus Operator's, which take any spec.
func (p *ControlPlane) InstallMonitoring() error {
	root, err := repositoryRoot()
	if err != nil {
		return err
	}
	file := filepath.Join(root, "test", "controlplane", "testdata", "monitoring.yaml")
	if _, err := envtest.InstallCRDs(p.Config, envtest.CRDInstallOptions{ErrorIfPathMissing: true, Paths: []string{file}}); err != nil {
		return fmt.Errorf("installing the CRDs of the Prometheus Operator: %w", err)
	}
	return nil
}
