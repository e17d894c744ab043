package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/machine-iac/machine-iac-operator/internal/modulesource"
)

func TestModulesOfArchivesAreLoadedBesideTheOthers(t *testing.T) {
	packed, err := modulesource.Pack(os.DirFS("../../examples/modules/kubevirt"))
	if err != nil {
		t.Fatal(err)
	}
	archive := filepath.Join(t.TempDir(), "kubevirt.tar.gz")
	if err := os.WriteFile(archive, packed.Archive, 0o600); err != nil {
		t.Fatal(err)
	}
	work := t.TempDir()
	load := func(sources ...string) error {
		catalog, err := loadModules(t.Context(), options{workDir: work, moduleSources: sources})
		if err != nil {
			return err
		}
		for apiVersion, kind := range map[string]string{
			"kubevirt.machine-iac.io/v1alpha1":             "KubevirtMachineProviderSpec",
			"kubemarkproviderconfig.openshift.io/v1alpha1": "KubemarkMachineProviderConfig",
		} {
			if _, err := catalog.Find(apiVersion, kind); err != nil {
				return err
			}
		}
		return nil
	}
	if err := load(packed.FileReference(archive).String()); err != nil {
		t.Errorf("from a file: %v", err)
	}
	if err := load(packed.FileReference(archive).String(), packed.FileReference(archive).String()); err == nil || !strings.Contains(err.Error(), `two modules are called "kubevirt"`) {
		t.Errorf("of one module twice: %v", err)
	}
	// What the cache below the work folder has needs no server.
	reference := "https://localhost:1" + strings.TrimPrefix(packed.FileReference("/kubevirt.tar.gz").String(), "file://")
	_, digest, _ := strings.Cut(reference, "@sha256:")
	if err := os.MkdirAll(filepath.Join(work, "module-sources"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(work, "module-sources", "sha256-"+digest), packed.Archive, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := load(reference); err != nil {
		t.Errorf("from the cache: %v", err)
	}
	if err := load("https://localhost:1/kubevirt.tar.gz"); err == nil || !strings.Contains(err.Error(), "has no digest") {
		t.Errorf("without a digest: %v", err)
	}
}
