package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/machine-iac/machine-iac-operator/internal/state"
	"github.com/machine-iac/machine-iac-operator/internal/state/pulumikeys"
	"github.com/machine-iac/machine-iac-operator/internal/state/statefile"
	"github.com/machine-iac/machine-iac-operator/test/builder"
	"github.com/machine-iac/machine-iac-operator/test/long"
)

// forget removes all states by force.
func (w *world) forget(t *testing.T) {
	t.Helper()
	states := &corev1.SecretList{}
	if err := w.Client.List(t.Context(), states, client.InNamespace(w.namespace), client.HasLabels{state.LabelRole}); err != nil {
		t.Fatal(err)
	}
	for _, secret := range states.Items {
		if controllerutil.RemoveFinalizer(&secret, state.Finalizer) {
			if err := w.Client.Update(t.Context(), &secret); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Client.Delete(t.Context(), &secret); err != nil {
			t.Fatal(err)
		}
	}
}

// encrypted stores a checkpoint for a new Machine, and one again that was there before; each is encrypted with a salt.
func (w *world) encrypted(t *testing.T, salts ...string) {
	t.Helper()
	machine := builder.Machine()
	if err := w.Create(t.Context(), builder.In(w.namespace, machine)); err != nil {
		t.Fatal(err)
	}
	session, err := w.acquire(t, machine, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, salt := range salts {
		raw := fmt.Appendf(nil, `{"version":3,"checkpoint":{"latest":{"secrets_providers":{"type":"passphrase","state":{"salt":%q}}}}}`, salt)
		body, err := statefile.Checkpoint{Serial: uint64(i + 1), Lineage: "l", Raw: raw}.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if err := session.Put(t.Context(), body); err != nil {
			t.Fatal(err)
		}
	}
	if err := session.Release(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
}

// long has every key replaced long ago.
func (w *world) long(t *testing.T) {
	t.Helper()
	secret := &corev1.Secret{}
	if err := w.Client.Get(t.Context(), types.NamespacedName{Namespace: w.namespace, Name: pulumikeys.SecretName}, secret); err != nil {
		t.Fatal(err)
	}
	for name, value := range secret.Data {
		if strings.HasSuffix(name, ".times") && strings.Contains(string(value), "replaced") {
			secret.Data[name] = []byte(`{"made":"2026-01-01T00:00:00Z","replaced":"2026-01-02T00:00:00Z"}`)
		}
	}
	if err := w.Client.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
}

// TestAKeyIsReplaced goes through the commands of docs/pulumi.md.
func TestAKeyIsReplaced(t *testing.T) {
	long.Test(t)
	w := newWorld(t)
	expect := func(line string, code int, texts ...string) {
		t.Helper()
		got := w.ask(t, line)
		all := got.out + got.err
		for _, text := range texts {
			if !strings.Contains(all, text) {
				t.Errorf("%s prints\n%swant %q in it", line, all, text)
			}
		}
		if got.code != code {
			t.Errorf("%s ends with %d, want %d\n%s", line, got.code, code, all)
		}
	}
	expect("pulumi-key list", 0, "There are no keys in namespace "+w.namespace)
	expect("pulumi-key prune", 0)
	keys, err := pulumikeys.New(w.Client, pulumikeys.Options{Namespace: w.namespace})
	if err != nil {
		t.Fatal(err)
	}
	old, err := keys.Current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	oldID := pulumikeys.IDOf(old.Salt())
	w.encrypted(t, old.Salt())
	w.encrypted(t, "v1:lost:x")
	expect("pulumi-key list", 0, oldID+"   Current   1             0", pulumikeys.IDOf("v1:lost:x")+"   Missing   1 ")
	expect("pulumi-key list -o json --machines-namespace default", 0, `"checkpoints": 0`, `"current": true`)

	expect("pulumi-key rotate", 0, " is the current key now")
	fresh, err := keys.Current(t.Context())
	if err != nil || fresh.Salt() == old.Salt() {
		t.Fatalf("the current key is still the old one, %v", err)
	}
	expect("pulumi-key prune", 1, oldID+" stays: 1 checkpoints and 0 earlier versions")

	// Its next run encrypts it with the new key, and keeps a version with the old one.
	w.forget(t)
	w.encrypted(t, old.Salt(), fresh.Salt())
	expect("pulumi-key prune", 1, oldID+" stays: 0 checkpoints and 1 earlier versions")
	expect("pulumi-key prune --forget-versions", 1, oldID+" stays: it was replaced at "+time.Now().UTC().Format("2006-"), "error: older keys stay")
	w.long(t)
	expect("pulumi-key prune --forget-versions", 0, oldID+" is removed")
	expect("pulumi-key list", 0, pulumikeys.IDOf(fresh.Salt())+"   Current   1 ")

	expect("pulumi-key rotate --as eve", 1, `User "eve" cannot get resource "secrets"`)
	expect("pulumi-key list -o xml", 1, `unable to match a printer suitable for the output format "xml"`)
	expect("pulumi-key list x", 1, "unknown command")
}
