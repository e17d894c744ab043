package iac

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// A manager that is older than the one that wrote a state reports that and starts no engine,
// whatever is requested.
func TestAStateOfANewerFormatIsLeftAlone(t *testing.T) {
	b := newBench(t)
	machine := b.machine()
	b.bring(machine)
	b.annotate(machine, state.Prefix+"record", `{"format":3,"current":"laid out anew"}`)
	head := func() *corev1.Secret {
		key, secret := state.KeyFor(machine.Namespace, machine.UID), &corev1.Secret{}
		if err := b.client.Get(t.Context(), client.ObjectKey{Namespace: key.Namespace, Name: key.Name}, secret); err != nil {
			t.Fatal(err)
		}
		return secret
	}
	before, starts := head().ResourceVersion, b.starts()

	_, existsErr := b.Exists(t.Context(), machine)
	for verb, err := range map[string]error{"Exists": existsErr, "Update": b.Update(t.Context(), machine), "Delete": b.Delete(t.Context(), machine)} {
		uncertain, ok := actuators.AsUncertain(err)
		if !ok || uncertain.Reason != "StateUnreadable" || !strings.Contains(uncertain.Message, "a newer operator wrote it, in format 3, and this one knows formats up to 2: upgrade the operator") {
			t.Errorf("%s returns %v, want that the state is of a newer operator", verb, err)
		}
	}
	if _, busy := b.pool.Status(runs.Key(machine.UID)); busy || b.starts() != starts {
		t.Errorf("the engine was started %d times", b.starts()-starts)
	}
	if head().ResourceVersion != before || b.node(machine) == nil {
		t.Error("the state was written, or the instance is gone")
	}
}
