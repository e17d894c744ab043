package iac

import (
	"bytes"
	"compress/gzip"
	"io"
	"strings"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-iac/machine-iac-operator/actuators/reporting"
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

func (b *bench) output(machine *machinev1beta1.Machine) string {
	b.t.Helper()
	snapshot, err := b.store.Get(b.t.Context(), state.KeyFor(machine.Namespace, machine.UID))
	if err != nil {
		b.t.Fatal(err)
	}
	if snapshot.Attachments[reporting.OutputAttachment] == nil {
		return ""
	}
	return unpacked(b.t, snapshot.Attachments[reporting.OutputAttachment])
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
	if err := b.drive(b.Create, machine); err != nil {
		t.Fatal(err)
	}
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
	deadline := time.Now().Add(patience)
	for b.last(machine).Operation != runs.Drift {
		if time.Now().After(deadline) {
			t.Fatal("no drift check ends in time")
		}
		time.Sleep(pause)
	}
	if got := b.output(machine); strings.Contains(got, "Creation complete") || !strings.Contains(got, "kubectl_manifest.this: Refreshing state...") {
		t.Errorf("after a drift check:\n%s", got)
	}
}

func TestOutputGivesWayToInputs(t *testing.T) {
	parallel(t)
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
				Lock: state.Lock{Owner: "o", Run: "r", Operation: "create"}, Attachments: state.Attachments{lifecycle.InputsAttachment: make([]byte, tc.inputs), reporting.OutputAttachment: nil, reporting.WithheldAttachment: nil},
			})
			if err != nil {
				t.Fatal(err)
			}
			run := &task{run: run{actuator: b.Actuator, machine: machine}, session: session}
			run.transcript.Add("output")
			run.withheld.Add("withheld")
			run.keepOutput(t.Context())
			if err := session.Release(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			snapshot, err := b.store.Get(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			if _, kept := snapshot.Attachments[reporting.WithheldAttachment]; kept != tc.want {
				t.Errorf("what is withheld is kept: %t", kept)
			}
			if _, kept := snapshot.Attachments[reporting.OutputAttachment]; kept != tc.want || len(snapshot.Attachments[lifecycle.InputsAttachment]) != tc.inputs {
				t.Errorf("kept: %t, beside %d bytes of inputs", kept, len(snapshot.Attachments[lifecycle.InputsAttachment]))
			}
		})
	}
}
