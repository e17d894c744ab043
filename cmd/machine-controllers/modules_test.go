package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/machine-iac/machine-iac-operator/internal/module/source"
	"github.com/machine-iac/machine-iac-operator/test/long"
)

func TestModulesOfArchivesAreLoadedBesideTheOthers(t *testing.T) {
	long.Test(t)
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

func TestModulesOfARegistryAreSigned(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "cosign.pub")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}), 0o600); err != nil {
		t.Fatal(err)
	}
	packed, err := source.Pack(os.DirFS("../../examples/modules/kubevirt"))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	pushed, err := packed.Push(t.Context(), "oci://"+strings.TrimPrefix(server.URL, "http://")+"/kubevirt:v1", source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	o := options{workDir: t.TempDir(), moduleSources: list{pushed.String()}, moduleSourceKeys: list{file}}
	if _, err := loadModules(t.Context(), o); err == nil || !strings.Contains(err.Error(), "there is no signature") {
		t.Errorf("without a signature: %v", err)
	}
	if err := pushed.Sign(t.Context(), key, source.Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := loadModules(t.Context(), o); err != nil {
		t.Errorf("with a signature: %v", err)
	}
	o.moduleSourceKeys = list{"/none"}
	if _, err := loadModules(t.Context(), o); err == nil || !strings.Contains(err.Error(), "--module-source-key: reading the key /none") {
		t.Errorf("without the key: %v", err)
	}
}

func TestTheKeyOfStoredModules(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := (&options{moduleKeyFile: file}).readModuleKeys(); err == nil || !strings.Contains(err.Error(), "--module-key-file: ") || !strings.Contains(err.Error(), "it has 5 bytes") {
		t.Errorf("a short key: %v", err)
	}
	o := options{}
	if err := o.readModuleKeys(); err != nil || o.moduleKeys != nil {
		t.Errorf("no key: %v, %v", o.moduleKeys, err)
	}
}

func TestTheKeyOfStates(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	write := func(content string) {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("short\n")
	if err := (&options{stateKeyFile: file}).readStateKeys(); err == nil || !strings.Contains(err.Error(), "--state-key-file: ") || !strings.Contains(err.Error(), "it has 5 bytes") {
		t.Errorf("a short key: %v", err)
	}
	write(strings.Repeat("k", 32))
	for encrypts, o := range map[bool]*options{true: {stateKeyFile: file, stateEncryption: true}, false: {stateKeyFile: file}} {
		if err := o.readStateKeys(); err != nil || o.stateKeys == nil || o.stateKeys.Encrypts() != encrypts {
			t.Errorf("encryption %v: %v, %v", encrypts, o.stateKeys, err)
		}
	}
	o := options{stateEncryption: true}
	if err := o.readStateKeys(); err != nil || o.stateKeys != nil {
		t.Errorf("no key: %v, %v", o.stateKeys, err)
	}
}
