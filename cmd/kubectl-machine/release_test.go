package main

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/test/long"
)

// forgets does what the manager does about a Machine that is released, once it has the annotation.
func (w *backupWorld) forgets(t *testing.T, name string) <-chan error {
	done := make(chan error, 1)
	machine := w.get(t, name)
	go func() {
		for w.get(t, name).Annotations[lifecycle.AdoptionAnnotation] != string(lifecycle.AdoptionRelease) {
			select {
			case <-t.Context().Done():
				done <- context.Cause(t.Context())
				return
			case <-time.After(50 * time.Millisecond):
			}
		}
		session, err := w.acquire(t, machine, nil)
		if err != nil {
			done <- err
			return
		}
		raw, err := json.Marshal(v1alpha1.TerraformMachineProviderStatus{
			TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.TerraformMachineProviderStatusKind},
			Conditions: []metav1.Condition{{Type: "Adopted", Status: metav1.ConditionFalse, Reason: "Released", LastTransitionTime: metav1.Now()}},
		})
		now := w.get(t, name)
		now.Status.ProviderStatus = &runtime.RawExtension{Raw: raw}
		done <- errors.Join(err, session.Forget(t.Context()), w.Client.Status().Update(t.Context(), now))
	}()
	return done
}

func TestRelease(t *testing.T) {
	long.Test(t)
	w := newBackupWorld(t)
	folder := filepath.Join(t.TempDir(), "released")
	before := w.stored(t, "kept")
	flags := " -o " + folder + " --manager-namespace " + w.namespace
	for line, want := range map[string]string{
		"release nobody" + flags:                      `there is no state of a Machine "nobody"`,
		"release kept nobody" + flags:                 `there is no state of a Machine "nobody"`,
		"release kept workers-a --timeout 1s" + flags: "the Machine workers-a: a run is in progress (update) that has not ended in time; nothing was changed",
		"release kept workers-b" + flags:              "the Machine workers-b has no state: there is nothing to release; nothing was changed",
		"release kept":                                "name the folder to write to: -o DIR",
		"release" + flags:                             "requires at least 1 arg(s)",
		"release kept --recipient age1" + flags:       "is no recipient",
	} {
		w.expect(t, line, 1, want)
	}
	if _, asked := w.get(t, "kept").Annotations[lifecycle.AdoptionAnnotation]; asked {
		t.Fatal("a refused release has set the annotation")
	}

	check, err := w.acquire(t, w.get(t, "kept"), nil)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		time.Sleep(time.Second)
		ended <- check.Release(context.Background(), nil)
	}()
	done := w.forgets(t, "kept")
	w.expect(t, "release kept"+flags, 0, "machine/kept released; its state is in "+folder, "warning: this holds credentials")
	if err := errors.Join(<-ended, <-done); err != nil {
		t.Fatal(err)
	}
	w.expect(t, "release kept"+flags, 1, `there is no state of a Machine "kept"`)
	w.expect(t, "release stacked --timeout 1s"+flags, 1, "machine/stacked is not released yet: its state is still there", "the manager has not released stacked within 1s")

	// The way back.
	w.expect(t, "state import "+folder+" kept --manager-namespace "+w.namespace, 1, "the Machine kept is released", "remove its annotation machine-iac.io/adoption first")
	machine := w.get(t, "kept")
	delete(machine.Annotations, lifecycle.AdoptionAnnotation)
	if err := w.Client.Update(t.Context(), machine); err != nil {
		t.Fatal(err)
	}
	w.expect(t, "state import "+folder+" kept --manager-namespace "+w.namespace, 0, "Imported")
	if got := w.stored(t, "kept"); got.Serial != before.Serial || string(got.Raw) != string(before.Raw) {
		t.Errorf("the state is %+v, want %+v", got, before)
	}
}
