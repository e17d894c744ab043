package iac

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

func unpacked(t *testing.T, packed []byte) string {
	t.Helper()
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestATranscriptKeepsTheEnd(t *testing.T) {
	t.Run("nothing", func(t *testing.T) {
		if packed := (&transcript{}).packed(); packed != nil {
			t.Errorf("it keeps %q", unpacked(t, packed))
		}
	})
	t.Run("a little", func(t *testing.T) {
		kept := &transcript{}
		kept.add("one")
		kept.add("two\n    more")
		if got := unpacked(t, kept.packed()); got != "one\ntwo\n    more\n" {
			t.Errorf("it keeps %q", got)
		}
	})
	t.Run("more than is kept", func(t *testing.T) {
		kept := &transcript{}
		for i := range 10000 {
			kept.add(fmt.Sprintf("message %d", i))
		}
		got := unpacked(t, kept.packed())
		if !strings.HasSuffix(got, "\nmessage 9998\nmessage 9999\n") || !strings.Contains(got[:60], " messages before these are not kept)\nmessage ") || len(got) > maxTranscript+60 {
			t.Errorf("it keeps %d bytes: %q...", len(got), got[:60])
		}
	})
	t.Run("what cannot be packed well", func(t *testing.T) {
		kept := &transcript{}
		for range 300 {
			random := make([]byte, 75)
			_, _ = rand.Read(random)
			kept.add(base64.StdEncoding.EncodeToString(random))
		}
		kept.add("the end")
		packed := kept.packed()
		if len(packed) > maxPackedTranscript || len(packed) < maxPackedTranscript/3 || !strings.HasSuffix(unpacked(t, packed), "\nthe end\n") {
			t.Errorf("it keeps %d bytes", len(packed))
		}
	})
	t.Run("one message that is too big", func(t *testing.T) {
		kept := &transcript{}
		kept.add(strings.Repeat("x", maxTranscript))
		kept.add("the end")
		if got := unpacked(t, kept.packed()); got != "(1 messages before these are not kept)\nthe end\n" {
			t.Errorf("it keeps %q", got)
		}
	})
}

func (b *bench) output(machine *machinev1beta1.Machine) string {
	b.t.Helper()
	snapshot, err := b.store.Get(b.t.Context(), state.KeyFor(machine.Namespace, machine.UID))
	if err != nil {
		b.t.Fatal(err)
	}
	if snapshot.Attachments[attachedOutput] == nil {
		return ""
	}
	return unpacked(b.t, snapshot.Attachments[attachedOutput])
}

func TestWhatTheEnginePrintsIsKeptWithoutSecrets(t *testing.T) {
	b := newBench(t)
	const secret = "this-is-no-token"
	wrong := b.secret("wrong", func(s *corev1.Secret) { s.Data["token"] = []byte(secret) })
	machine := b.machine(func(spec map[string]any) { spec["credentialsSecret"] = map[string]any{"name": wrong.Name} })
	if err := b.drive(b.Create, machine); err == nil {
		t.Fatal("the create does not fail; this shows nothing")
	}
	if got := b.output(machine); !strings.Contains(got, "Error: ") || strings.Contains(got, secret) {
		t.Errorf("after a create that failed:\n%s", got)
	}

	set(machine, b, "credentialsSecret", map[string]any{"name": "kubemark-credentials"})
	b.bring(machine)
	token := &corev1.Secret{}
	if err := b.client.Get(t.Context(), types.NamespacedName{Namespace: b.namespace, Name: "kubemark-credentials"}, token); err != nil {
		t.Fatal(err)
	}
	if got := b.output(machine); !strings.Contains(got, "kubectl_manifest.this: Creation complete") || strings.Contains(got, string(token.Data["token"])) {
		t.Errorf("after a create:\n%s", got)
	}

	b.clock.SetTime(b.clock.Now().Add(2 * time.Hour)) // a drift check falls due
	if err := b.drive(b.Update, machine); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(time.Minute)
	for b.last(machine).Operation != runs.Drift {
		if time.Now().After(deadline) {
			t.Fatal("no drift check ends within a minute")
		}
		time.Sleep(20 * time.Millisecond)
	}
	if got := b.output(machine); strings.Contains(got, "Creation complete") || !strings.Contains(got, "kubectl_manifest.this: Refreshing state...") {
		t.Errorf("after a drift check:\n%s", got)
	}
}

func TestOutputGivesWayToInputs(t *testing.T) {
	b := newBench(t)
	machine := b.machine()
	key := state.KeyFor(machine.Namespace, machine.UID)
	for name, tc := range map[string]struct {
		inputs int
		want   bool
	}{
		"inputs of the usual size": {inputs: 4 << 10, want: true},
		"inputs that fill it":      {inputs: state.MaxAttachmentBytes, want: false},
	} {
		t.Run(name, func(t *testing.T) {
			session, err := b.store.Acquire(t.Context(), key, state.AcquireOptions{
				Lock: state.Lock{Owner: "o", Run: "r", Operation: "create"}, Attachments: state.Attachments{lifecycle.InputsAttachment: make([]byte, tc.inputs), attachedOutput: nil},
			})
			if err != nil {
				t.Fatal(err)
			}
			run := &task{actuator: b.Actuator, machine: machine, session: session}
			run.transcript.add("output")
			run.keepOutput(t.Context())
			if err := session.Release(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			snapshot, err := b.store.Get(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			if _, kept := snapshot.Attachments[attachedOutput]; kept != tc.want || len(snapshot.Attachments[lifecycle.InputsAttachment]) != tc.inputs {
				t.Errorf("kept: %t, beside %d bytes of inputs", kept, len(snapshot.Attachments[lifecycle.InputsAttachment]))
			}
		})
	}
}
