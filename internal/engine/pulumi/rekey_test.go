package pulumi

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
)

// otherKey is expensive to make, so tests share it.
var otherKey = sync.OnceValues(func() (*Key, error) { return NewKey(context.Background()) })

func twoKeys(t *testing.T) (from, to *Key) {
	t.Helper()
	from, err := theKey()
	if err != nil {
		t.Fatal(err)
	}
	if to, err = otherKey(); err != nil {
		t.Fatal(err)
	}
	return from, to
}

func sealedValue(t *testing.T, key *Key, text string) string {
	t.Helper()
	sealed, err := key.seal(text)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(`{%q:%q,"ciphertext":%q}`, signature, secretSignature, sealed)
}

// encryptedWith is a checkpoint with secrets in inputs, in outputs, in a list, and in what has begun.
func encryptedWith(t *testing.T, key *Key) []byte {
	t.Helper()
	resource := thisResource("p1", `,"inputs":{"token":`+sealedValue(t, key, `"in"`)+`,"asset":{"`+signature+`":"c44067f5952c0a294b673a41bacd8c17","text":"x"}},"count":12345678901234567890`)
	resource = strings.Replace(resource, `"uid":"u1"`, `"uid":"u1","list":["<a>",`+sealedValue(t, key, `"out"`)+`]`, 1)
	pending := fmt.Sprintf(`[{"type":"creating","resource":{"urn":%q,"type":"acme:index:Disk","inputs":{"key":%s}}}]`, urnThis, sealedValue(t, key, `"pending"`))
	return checkpointOf(`{"manifest":{"version":"v3"},"secrets_providers":{"type":"passphrase","state":{"salt":"` + key.salt + `"}},"resources":[` +
		resource + `],"pending_operations":` + pending + `,"metadata":{"y":2}}`)
}

// plain replaces what a key encrypts with what it is.
func plain(t *testing.T, key *Key, checkpoint []byte) string {
	t.Helper()
	text := string(checkpoint)
	for {
		_, rest, found := strings.Cut(text, `"ciphertext":"`)
		if !found {
			return text
		}
		sealed, _, _ := strings.Cut(rest, `"`)
		opened, err := key.open(sealed)
		if err != nil {
			t.Fatal(err)
		}
		text = strings.Replace(text, `"ciphertext":"`+sealed+`"`, `"opened":`+opened, 1)
	}
}

func TestRekeyKeepsEveryValue(t *testing.T) {
	from, to := twoKeys(t)
	old := encryptedWith(t, from)
	got, err := Rekey(old, from, to)
	if err != nil {
		t.Fatal(err)
	}
	if salt, err := SaltOf(got); err != nil || salt != to.salt {
		t.Errorf("its salt is %s, %v, want that of the new key", salt, err)
	}
	if bytes.Contains(got, []byte(from.salt)) {
		t.Error("the old salt is in it still")
	}
	back := encryptedWith(t, to)
	want, err := readCheckpoint([]byte(plain(t, to, back)))
	if err != nil {
		t.Fatal(err)
	}
	have, err := readCheckpoint([]byte(plain(t, to, got)))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(canonical(t, want.Checkpoint["latest"]), canonical(t, have.Checkpoint["latest"])); diff != "" {
		t.Errorf("what is in it differs (-want +got):\n%s", diff)
	}
	if !bytes.Contains(got, []byte(`"features":["x"]`)) {
		t.Errorf("the checkpoint is %s, want what is beside the stack in it", got)
	}
}

// canonical is JSON with its fields in order.
func canonical(t *testing.T, raw []byte) string {
	t.Helper()
	tree, err := (&rekeying{}).tree(bytes.ReplaceAll(raw, []byte(secretSignature), []byte("open")))
	if err != nil {
		t.Fatal(err)
	}
	return string(tree)
}

func TestRekeyWithNothingToDo(t *testing.T) {
	from, to := twoKeys(t)
	for name, checkpoint := range map[string][]byte{
		"it has the new key already": encryptedWith(t, to), "it was never run": emptyCheckpoint("acme"), "it has no secrets provider": checkpointOf(latestOf(stackResource())),
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := Rekey(checkpoint, from, to); err != nil || !bytes.Equal(got, checkpoint) {
				t.Errorf("Rekey() = %s, %v, want the checkpoint as it is", got, err)
			}
		})
	}
}

func TestRekeyRefuses(t *testing.T) {
	from, to := twoKeys(t)
	cut := sealedValue(t, from, `"hunter22"`)
	_, sealed, _ := strings.Cut(cut, `"ciphertext":"`)
	damaged := bytes.Replace(encryptedWith(t, from), []byte(`"text":"x"`), []byte(`"text":`+strings.Replace(cut, sealed, sealed[:10]+`"}`, 1)), 1)
	cases := map[string]struct {
		checkpoint []byte
		from, to   *Key
		want       string
	}{
		"no checkpoint":             {checkpoint: []byte(`{}`), from: from, to: to, want: "not a Pulumi checkpoint"},
		"nothing that can be done":  {checkpoint: encryptedWith(t, to), from: to, to: from},
		"a key that is not its own": {checkpoint: bytes.ReplaceAll(encryptedWith(t, from), []byte(from.salt), []byte("v1:x:y")), from: from, to: to, want: "encrypted with another key"},
		"a value that was cut":      {checkpoint: damaged, from: from, to: to, want: "cannot decrypt"},
		"a cloud's key": {
			checkpoint: checkpointOf(`{"secrets_providers":{"type":"cloud","state":{"url":"awskms://"}}}`), from: from, to: to, want: "change-secrets-provider",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Rekey(tc.checkpoint, tc.from, tc.to)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Rekey() = %v, want %q", err, tc.want)
			}
		})
	}
}

func TestKeysAreNotMixed(t *testing.T) {
	from, to := twoKeys(t)
	if _, err := Adopt(encryptedWith(t, from), encryptedWith(t, to)); err == nil || !strings.Contains(err.Error(), "Rekey") {
		t.Errorf("Adopt() = %v, want an error: nobody could read the checkpoint", err)
	}
	e := newIdle(t, "exit 0")
	_, err := e.Open(t.Context(), idleRun(t, func(r *RunSpec) { r.Checkpoint = encryptedWith(t, to) }))
	if failure.ClassOf(err) != failure.Unknown || !strings.Contains(err.Error(), "Rekey") {
		t.Errorf("Open() = %v, want an error that nobody takes for a bad providerSpec", err)
	}
}

// TestPulumiReadsWhatWasEncryptedAnew makes a Node, encrypts its checkpoint with another key, and goes on with it.
func TestPulumiReadsWhatWasEncryptedAnew(t *testing.T) {
	b := newBench(t, "rekeyed")
	b.create()
	_, to := twoKeys(t)
	anew, err := Rekey(b.last(), b.key, to)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(anew, []byte("hunter22")) || bytes.Equal(anew, b.last()) {
		t.Error("the checkpoint shows a secret, or is what it was")
	}
	b.key, b.saved = to, append(b.saved, anew)
	if report := b.wantPlan("unchanged", small, engine.ActionNoOp); !report.NoChange() {
		t.Errorf("the plan is %+v, want no change: the values are what they were", report)
	}
	before, _ := b.node()
	b.with("update", `{"team":"blue","size":"small"}`, func(f *Workspace) (*engine.Report, error) { return f.Apply(t.Context()) })
	if after, labels := b.node(); after != before || labels["team"] != "blue" {
		t.Errorf("the Node is %s with %v, want %s with the new label", after, labels, before)
	}
	if salt, err := SaltOf(b.last()); err != nil || salt != to.salt {
		t.Errorf("Pulumi has written a checkpoint with the salt %s, %v, want the new one", salt, err)
	}
}
