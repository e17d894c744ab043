package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/machine-iac/machine-iac-operator/internal/module/source"
	"github.com/machine-iac/machine-iac-operator/internal/module/store"
	"github.com/machine-iac/machine-iac-operator/test/long"
)

// moduleKey writes a key for stored modules.
func moduleKey(t *testing.T) (file string, keys *store.Keys) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "module.key")
	if err := os.WriteFile(file, []byte(strings.Repeat("k", 32)), 0o600); err != nil {
		t.Fatal(err)
	}
	keys, err := store.ReadKeys(file)
	if err != nil {
		t.Fatal(err)
	}
	return file, keys
}

// proven reports whether a manager with the keys would use the module that is stored.
func (w *backupWorld) proven(t *testing.T, keys *store.Keys) bool {
	t.Helper()
	_, err := store.New(w.Client, store.Options{Keys: keys}).Load(t.Context(), w.namespace, store.DigestOf(w.module))
	if err != nil && !store.IsUnproven(err) {
		t.Fatal(err)
	}
	return err == nil
}

func TestAStoredModuleIsSigned(t *testing.T) {
	long.Test(t)
	w := newBackupWorld(t)
	file, keys := moduleKey(t)
	sign := "module sign --module-key-file " + file + " "
	if w.proven(t, keys) {
		t.Error("what nobody has signed is proven")
	}
	w.expect(t, sign+"kubemark", 1, `"kubemark" is no module; write it as NAME@sha256:DIGEST`)
	w.expect(t, sign+"other"+strings.TrimPrefix(w.module, "kubemark"), 1, "is the module kubemark, and not other")
	w.expect(t, sign+"kubemark@sha256:"+strings.Repeat("0", 64), 1, "the module is not in the store")
	w.expect(t, "module sign "+w.module+" --module-key-file /none", 1, "reading the key of modules: stat /none")
	if w.proven(t, keys) {
		t.Error("it was signed nonetheless")
	}
	w.expect(t, sign+w.module, 0, "signed "+w.module)
	if !w.proven(t, keys) {
		t.Error("it is not proven")
	}
}

func TestAModuleOfABackupIsSignedOnRequest(t *testing.T) {
	long.Test(t)
	w := newBackupWorld(t)
	file, keys := moduleKey(t)
	folder := filepath.Join(t.TempDir(), "backup")
	manager := " --manager-namespace " + w.namespace
	w.expect(t, "state export kept -o "+folder+manager, 0, "1 state and 1 module written")
	w.lose(t)
	w.expect(t, "state import "+folder+manager+" kept", 0, "Imported")
	if w.proven(t, keys) {
		t.Error("what nobody has signed is proven")
	}
	w.lose(t)
	w.expect(t, "state import "+folder+manager+" kept --module-key-file "+file, 0, "Imported")
	if !w.proven(t, keys) {
		t.Error("it is not proven")
	}
}

func TestAModuleIsPushedWithASignature(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := newFolder(t, acme)
	file := filepath.Join(dir, "key.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600); err != nil {
		t.Fatal(err)
	}
	target := "oci://" + newRegistry(t) + "/team/acme:v1"
	options := source.Options{SignedBy: []crypto.PublicKey{key.Public()}}
	push := []string{"module", "push", filepath.Join(dir, "acme"), target}
	got := runCommand(t, push...)
	if _, err := source.Fetch(t.Context(), strings.TrimSpace(got.out), options); err == nil || !strings.Contains(err.Error(), "there is no signature") {
		t.Errorf("what nobody has signed: %v", err)
	}
	if got := runCommand(t, append(push, "--sign", "/none")...); got.code != 1 || !strings.Contains(got.err, "reading the key /none") {
		t.Errorf("with a key that is not there it ends with %d and %q", got.code, got.err)
	}
	if got := runCommand(t, append(push, "--sign", file)...); got.code != 0 {
		t.Errorf("it ends with %d and %q", got.code, got.err)
	}
	if _, err := source.Fetch(t.Context(), strings.TrimSpace(got.out), options); err != nil {
		t.Error(err)
	}
}
