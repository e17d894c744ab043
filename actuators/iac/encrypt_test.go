package iac

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state"
	"github.com/machine-iac/machine-iac-operator/test/shortdir"
)

// stateKeys returns keys, of which the first encrypts.
func stateKeys(t *testing.T, seeds ...string) *state.Keys {
	t.Helper()
	folder := t.TempDir()
	for i, seed := range seeds {
		if err := os.WriteFile(filepath.Join(folder, string(rune('a'+i))), []byte(strings.Repeat(seed, 40)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	keys, err := state.ReadKeys(folder)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// stored returns what of a Machine's state is stored encrypted and what is not, by Secret and key.
func (b *bench) stored(machine *machinev1beta1.Machine) (encrypted, plain []string) {
	b.t.Helper()
	list := &corev1.SecretList{}
	if err := b.client.List(b.t.Context(), list, client.InNamespace(b.namespace), client.MatchingLabels{state.LabelMachineUID: string(machine.UID)}); err != nil {
		b.t.Fatal(err)
	}
	for _, secret := range list.Items {
		for key, content := range secret.Data {
			reader, err := gzip.NewReader(bytes.NewReader(content))
			if err != nil {
				b.t.Fatalf("%s of Secret %s: %v", key, secret.Name, err)
			}
			raw, err := io.ReadAll(reader)
			if err != nil {
				b.t.Fatalf("%s of Secret %s: %v", key, secret.Name, err)
			}
			if state.IsEncrypted(raw) {
				encrypted = append(encrypted, secret.Name+"/"+key)
			} else {
				plain = append(plain, secret.Name+"/"+key)
			}
		}
	}
	return encrypted, plain
}

// expectStored checks that all that is stored of a Machine is encrypted, or that nothing is.
func (b *bench) expectStored(machine *machinev1beta1.Machine, wanted bool) {
	b.t.Helper()
	encrypted, plain := b.stored(machine)
	if wanted && (len(encrypted) < 2 || len(plain) > 0) || !wanted && (len(encrypted) > 0 || len(plain) < 2) {
		b.t.Fatalf("%q are encrypted, and %q are not", encrypted, plain)
	}
}

func TestMachinesWithEncryptedStates(t *testing.T) { eachEngine(t, machinesWithEncryptedStates) }

func machinesWithEncryptedStates(t *testing.T, b *bench) {
	b.stateKeys = stateKeys(t, "k")
	b.start(shortdir.New(t), "owner-2")
	machine := b.machine()
	b.bring(machine)
	b.expectStored(machine, true)

	set(machine, b, "zone", "zone-b")
	for range 2 {
		if err := b.drive(b.Update, machine); err != nil {
			t.Fatalf("Update: %v", err)
		}
	}
	if node := b.node(machine); node.Labels[corev1.LabelTopologyZone] != "zone-b" {
		t.Errorf("labels %v, want zone-b", node.Labels)
	}
	b.expectStored(machine, true)

	if checked := b.checked(machine); checked.Result != record.DriftNone {
		t.Errorf("drift check: %+v, want no drift", checked)
	}
	b.expectStored(machine, true)
	if err := b.drive(b.Delete, machine); err != nil || b.node(machine) != nil {
		t.Errorf("Delete: %v, want the instance gone", err)
	}
}

func TestEncryptionIsSwitchedOnReplacedAndSwitchedOff(t *testing.T) {
	b := newBench(t)
	machine := b.machine()
	b.bring(machine)
	b.expectStored(machine, false)
	before := b.node(machine).UID
	pass := func(owner string, keys *state.Keys) {
		t.Helper()
		b.stateKeys = keys
		b.start(shortdir.New(t), owner)
		if err := b.drive(b.Update, machine); err != nil { // what was written before is read
			t.Fatalf("Update by %s: %v", owner, err)
		}
		states := b.orphans()
		for range 2 { // which the manager does as soon as it leads, and after that
			if _, err := states.Check(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.drive(b.Update, machine); err != nil {
			t.Fatalf("Update by %s: %v", owner, err)
		}
	}
	pass("owner-2", stateKeys(t, "k"))
	b.expectStored(machine, true)
	pass("owner-3", stateKeys(t, "n", "k"))
	pass("owner-4", stateKeys(t, "n"))
	b.expectStored(machine, true)
	pass("owner-5", stateKeys(t, "n").DecryptOnly())
	b.expectStored(machine, false)
	pass("owner-6", nil)
	if b.node(machine).UID != before {
		t.Error("the instance was replaced")
	}
	if err := b.drive(b.Delete, machine); err != nil || b.node(machine) != nil {
		t.Errorf("Delete: %v, want the instance gone", err)
	}
}

// headVersion returns the resource version of the Secret with a Machine's state, which need not be
// readable.
func (b *bench) headVersion(machine *machinev1beta1.Machine) string {
	b.t.Helper()
	key, head := state.KeyFor(machine.Namespace, machine.UID), &corev1.Secret{}
	if err := b.client.Get(b.t.Context(), client.ObjectKey{Namespace: key.Namespace, Name: key.Name}, head); err != nil {
		b.t.Fatal(err)
	}
	return head.ResourceVersion
}

// Nothing is done about a Machine whose state cannot be decrypted, and all goes on once the key is
// back.
func TestAKeyThatIsLost(t *testing.T) {
	b := newBench(t)
	b.stateKeys = stateKeys(t, "k")
	b.start(shortdir.New(t), "owner-2")
	machine := b.machine()
	b.bring(machine)
	version := b.headVersion(machine)
	for fix, keys := range map[string]*state.Keys{
		"it is encrypted, and there is no key: set --state-key-file":                      nil,
		"no key of --state-key-file (1) opens it: add the key that it was encrypted with": stateKeys(t, "x"),
	} {
		b.stateKeys = keys
		b.start(shortdir.New(t), "owner-3")
		starts := b.starts()
		_, existsErr := b.Exists(t.Context(), machine)
		for verb, err := range map[string]error{"Exists": existsErr, "Create": b.Create(t.Context(), machine), "Update": b.Update(t.Context(), machine)} {
			uncertain, ok := actuators.AsUncertain(err)
			if !ok || uncertain.Reason != "StateUnreadable" || !strings.Contains(uncertain.Message, fix) || uncertain.After > time.Minute {
				t.Errorf("%s returns %v, want that the state is encrypted", verb, err)
			}
		}
		if _, err := b.orphans().Check(t.Context()); keys != nil && (err == nil || !strings.Contains(err.Error(), fix)) {
			t.Errorf("the pass over the states returns %v", err)
		}
		if _, busy := b.pool.Status(runs.Key(machine.UID)); busy || b.starts() != starts || b.headVersion(machine) != version || b.node(machine) == nil {
			t.Error("the engine was started, the state was written, or the instance is gone")
		}
	}
	b.stateKeys = stateKeys(t, "k")
	b.start(shortdir.New(t), "owner-4")
	if err := b.drive(b.Update, machine); err != nil {
		t.Errorf("Update: %v", err)
	}
}
