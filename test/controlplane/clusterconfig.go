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

// InstallControlPlaneMachineSets installs their CRD.
func (p *ControlPlane) InstallControlPlaneMachineSets() error {
	root, err := repositoryRoot()
	if err != nil {
		return err
	}
	directory, err := apiDirectory(root)
	if err != nil {
		return err
	}
	_, err = envtest.InstallCRDs(p.Config, envtest.CRDInstallOptions{ErrorIfPathMissing: true, Paths: []string{
		filepath.Join(directory, "machine", "v1", "zz_generated.crd-manifests", "0000_10_control-plane-machine-set_01_controlplanemachinesets-Default.crd.yaml"),
	}})
	if err != nil {
		return fmt.Errorf("installing the CRD of ControlPlaneMachineSets: %w", err)
	}
	return nil
}
