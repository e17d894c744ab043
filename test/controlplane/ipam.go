package controlplane

import (
	"fmt"
	"path/filepath"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// InstallIPAM installs reduced CRDs of IPAddressClaim and IPAddress: the fields that address providers and their users
// need, with their validation.
func InstallIPAM(config *rest.Config) error {
	root, err := repositoryRoot()
	if err != nil {
		return err
	}
	_, err = envtest.InstallCRDs(config, envtest.CRDInstallOptions{ErrorIfPathMissing: true, Paths: []string{
		filepath.Join(root, "test", "controlplane", "testdata", "ipam.yaml"),
	}})
	if err != nil {
		return fmt.Errorf("installing the CRDs of IP address management: %w", err)
	}
	return nil
}
