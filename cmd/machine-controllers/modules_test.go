package main

import (
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/machine-iac/machine-iac-operator/internal/module/source"
)

func TestModulesOfArchivesAreLoadedBesideTheOthers(t *testing.T) {
	packed, err := source.Pack(os.DirFS("../../examples/modules/kubevirt"))
	if err != nil {
		t.Fatal(err)
	}
	archive := filepath.Join(t.TempDir(), "kubevirt.tar.gz")
	if err := os.WriteFile(archive, packed.Archive, 0o600); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	pushed, err := packed.Push(t.Context(), "oci://"+strings.TrimPrefix(server.URL, "http://")+"/kubevirt:v1", source.Options{})
	if err != nil {
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
	if err := load(pushed.String()); err != nil {
		t.Errorf("from a registry: %v", err)
	}
	if err := load(pushed.String(), packed.FileReference(archive).String()); err == nil || !strings.Contains(err.Error(), `two modules are called "kubevirt"`) {
		t.Errorf("of one module twice: %v", err)
	}
	server.Close()
	if err := load(pushed.String()); err != nil {
		t.Errorf("after a restart, without the registry: %v", err)
	}
	if err := load("oci://registry.example.com/kubevirt:v1"); err == nil || !strings.Contains(err.Error(), "has no digest") {
		t.Errorf("without a digest: %v", err)
	}
}
