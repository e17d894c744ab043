package iac

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/internal/desired"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/store"
	"github.com/machine-iac/machine-iac-operator/internal/state"
	"github.com/machine-iac/machine-iac-operator/test/shortdir"
)

// forge stores a content as whoever may write Secrets can: under its true digest, named by the head
// of the Machine's state.
func (b *bench) forge(machine *machinev1beta1.Machine, from *module.Module, change func(module.Files)) (reference string) {
	b.t.Helper()
	files, err := module.ReadFiles(from.Files())
	if err != nil {
		b.t.Fatal(err)
	}
	change(files)
	var packed bytes.Buffer
	if err := module.WriteArchive(&packed, files); err != nil {
		b.t.Fatal(err)
	}
	sum := sha256.Sum256(packed.Bytes())
	reference = from.Name() + "@sha256:" + files.Digest()
	err = b.client.Create(b.t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: b.namespace, Name: "machine-iac-module-" + files.Digest(),
			Labels: map[string]string{store.LabelRole: store.RoleHead, store.LabelName: from.Name()},
			Annotations: map[string]string{
				store.AnnotationReference: reference, "machine-iac.io/archive-sha256": hex.EncodeToString(sum[:]), "machine-iac.io/parts": "1",
			},
		},
		Type: store.SecretType, Data: map[string][]byte{"module.tar.gz": packed.Bytes()},
	})
	if err != nil {
		b.t.Fatal(err)
	}
	head := &corev1.Secret{}
	key := state.KeyFor(machine.Namespace, machine.UID)
	if err := b.client.Get(b.t.Context(), client.ObjectKey{Namespace: key.Namespace, Name: "tfstate-default-" + key.Suffix()}, head); err != nil {
		b.t.Fatal(err)
	}
	metav1.SetMetaDataAnnotation(&head.ObjectMeta, store.AnnotationReference, reference)
	if err := b.client.Update(b.t.Context(), head); err != nil {
		b.t.Fatal(err)
	}
	return reference
}

// leaving returns a change that has each change of the instance run a program, which leaves a file.
func leaving(mark string) func(module.Files) {
	return func(files module.Files) {
		files["more.tf"] = []byte("resource \"terraform_data\" \"more\" {\n  input = timestamp()\n  provisioner \"local-exec\" {\n    command = \"touch " + mark + "\"\n  }\n}\n")
	}
}

func TestAForgedModuleRunsNothing(t *testing.T) {
	b := newBench(t)
	b.unconfined = true // else the sandbox would keep what runs from leaving its file
	b.start(shortdir.New(t), "owner-1")
	machine := b.machine()
	b.bring(machine)
	before := b.node(machine)
	mark := filepath.Join(t.TempDir(), "ran")
	forged := b.forge(machine, loadedAs(t, b, "kubemark"), leaving(mark))

	set(machine, b, "zone", "zone-b")
	if err := b.drive(b.Update, machine); err != nil {
		t.Fatalf("Update: %v", err)
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("a program ran that stored content names")
	}
	if after := b.node(machine); after.UID != before.UID || after.Labels[corev1.LabelTopologyZone] != "zone-b" {
		t.Errorf("labels %v, want the same Node in zone-b by the module that the manager has", after.Labels)
	}
	if events := strings.Join(b.warnings(), "\n"); !strings.Contains(events, "ModuleLost") || !strings.Contains(events, "provisioner") || !strings.Contains(events, shortDigest(forged)) {
		t.Errorf("events %q, want one that names the provisioner", events)
	}
	if got := b.record(machine).Module; got == forged {
		t.Error("the forged module is recorded still")
	}
}

// loadedAs returns a module of the bench by its name.
func loadedAs(t *testing.T, b *bench, name string) *module.Module {
	t.Helper()
	for _, loaded := range b.catalog.Modules() {
		if loaded.Name() == name && loaded.Engine() == b.uses {
			return loaded
		}
	}
	t.Fatalf("there is no module %s", name)
	return nil
}

// moduleKeys writes a key and returns it.
func moduleKeys(t *testing.T, text string) *store.Keys {
	t.Helper()
	name := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(name, []byte(strings.Repeat(text, 32)), 0o600); err != nil {
		t.Fatal(err)
	}
	keys, err := store.ReadKeys(name)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func TestAModuleThatNobodySignedChangesNoInstance(t *testing.T) {
	b := newBench(t)
	b.moduleKeys = moduleKeys(t, "a")
	b.start(shortdir.New(t), "owner-2")
	machine := b.machine()
	b.bring(machine)
	before := b.node(machine)
	forged := b.forge(machine, loadedAs(t, b, "kubemark"), func(files module.Files) { // which keeps every rule
		files["main.tf"] = []byte(strings.Replace(string(files["main.tf"]), `"kubernetes.io/os"                 = "linux"`, `"kubernetes.io/os" = "linux"`+"\n"+`"example.com/made-by" = "forged"`, 1))
	})
	set(machine, b, "zone", "zone-b")
	err := b.drive(b.Update, machine)
	if !isReason(err, machinev1beta1.UpdateMachineError) || !strings.Contains(err.Error(), "kubectl machine module sign") {
		t.Fatalf("Update: %v, want an error that names the fix", err)
	}
	if now := conditionOf(machine, moduleCurrent); now.Reason != "ModuleUnproven" || !strings.Contains(now.Message, shortDigest(forged)) {
		t.Errorf("condition %+v, want ModuleUnproven", now)
	}
	if after := b.node(machine); after.UID != before.UID || after.Labels[madeBy] != "" || after.Labels[corev1.LabelTopologyZone] == "zone-b" {
		t.Errorf("labels %v, want nothing changed", after.Labels)
	}
	if err := b.drive(b.Delete, machine); err != nil || b.node(machine) != nil {
		t.Errorf("Delete: %v, want the instance gone, by the module that the manager has", err)
	}
}

func TestAModuleIsSignedAndServesAfterAnUpgrade(t *testing.T) {
	b := newBench(t)
	b.loaded = []*module.Module{labelling(t, "older")}
	b.start(shortdir.New(t), "owner-2") // without a key: what is stored is not signed
	machine := b.machine()
	b.bring(machine)
	b.moduleKeys = moduleKeys(t, "a")
	b.start(shortdir.New(t), "owner-3")
	if _, err := b.orphans().Check(t.Context()); err != nil { // which the manager does as soon as it leads
		t.Fatal(err)
	}
	b.upgrade(labelling(t, "newer"), "owner-4")
	set(machine, b, "zone", "zone-b")
	if err := b.drive(b.Update, machine); err != nil {
		t.Fatalf("Update: %v", err)
	}
	if after := b.node(machine); after.Labels[madeBy] != "older" || after.Labels[corev1.LabelTopologyZone] != "zone-b" {
		t.Errorf("labels %v, want zone-b, by the older module", after.Labels)
	}
	b.moduleKeys = moduleKeys(t, "b")
	b.updates = desired.ModuleUpdatesInPlace
	b.start(shortdir.New(t), "owner-5")
	for range 2 {
		if err := b.drive(b.Update, machine); err != nil {
			t.Fatalf("Update in place, where another key has signed: %v", err)
		}
	}
	if after := b.node(machine); after.Labels[madeBy] != "newer" {
		t.Errorf("labels %v, want them by the newer module, which the Machine may get", after.Labels)
	}
}

func TestAForgedStateConcernsItsMachineAlone(t *testing.T) {
	b := newBench(t)
	machine, other := b.machine(), b.machine()
	b.bring(machine)
	b.bring(other)

	b.leads.proven.Store(new("nobody"))
	b.annotate(machine, state.Prefix+"epoch", `{"lease":"lease","transitions":1000000000000000000,"holder":"nobody"}`)
	set(machine, b, "zone", "zone-b")
	if err := b.drive(b.Update, machine); err != nil || b.node(machine).Labels[corev1.LabelTopologyZone] != "zone-b" {
		t.Errorf("with an epoch that cannot be: %v, want zone-b", err)
	}
	if events := strings.Join(b.warnings(), "\n"); !strings.Contains(events, "StateForged") || !strings.Contains(events, "epoch 1000000000000000000 of Lease lease") {
		t.Errorf("events %q, want one that says so", events)
	}

	key, head := state.KeyFor(machine.Namespace, machine.UID), &corev1.Secret{}
	if err := b.client.Get(t.Context(), client.ObjectKey{Namespace: key.Namespace, Name: key.Name}, head); err != nil {
		t.Fatal(err)
	}
	b.annotate(machine, state.Prefix+"record", `{"format":1,"current":{"serial":1,"lineage":"l","sha256":"s","blob":{"name":"x","chunks":900000000}}}`)
	for _, zone := range []*machinev1beta1.Machine{machine, other} {
		set(zone, b, "zone", "zone-c")
	}
	if err := b.drive(b.Update, machine); err == nil || !strings.Contains(err.Error(), key.String()) || !strings.Contains(err.Error(), "900000000") {
		t.Errorf("with a record that cannot be: %v, want an error that names the Secret", err)
	}
	if err := b.drive(b.Update, other); err != nil || b.node(other).Labels[corev1.LabelTopologyZone] != "zone-c" {
		t.Errorf("the other Machine: %v, want zone-c", err)
	}
	b.annotate(machine, state.Prefix+"record", head.Annotations[state.Prefix+"record"])
	if err := b.drive(b.Update, machine); err != nil || b.node(machine).Labels[corev1.LabelTopologyZone] != "zone-c" {
		t.Errorf("with its record: %v, want zone-c", err)
	}
	b.annotate(machine, state.Prefix+"intent", `{"operation":"create","run":"x","since":"9999-01-01T00:00:00Z","died":"9999-01-01T00:00:00Z","looked":true}`)
	b.annotate(machine, state.Prefix+"drift-check", `{"at":"9999-01-01T00:00:00Z","verdict":"Missing"}`)
	if err := b.drive(b.Delete, machine); err != nil || b.node(machine) != nil {
		t.Errorf("Delete, with times that are yet to come: %v, want the instance gone", err)
	}
}
