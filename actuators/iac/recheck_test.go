package iac

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/machine-iac/machine-iac-operator/internal/state"
	"github.com/machine-iac/machine-iac-operator/test/shortdir"
)

// touch changes nothing but the resource version of a Secret.
func (b *bench) touch(name string) {
	b.t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name}}
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"example.com/touched":"yes"}}}`))
	if err := b.client.Patch(b.t.Context(), secret, patch); err != nil {
		b.t.Fatal(err)
	}
}

func TestAMachineIsUnchangedWhileAllIsThatItWasDecidedFrom(t *testing.T) {
	b := newBench(t)
	machine := b.machine(b.userData("bootstrap", nil))
	unchanged := func() bool {
		t.Helper()
		after, unchanged := b.Unchanged(t.Context(), machine)
		if unchanged && (after <= 0 || after > time.Hour) {
			t.Errorf("it is to be reconciled after %s, want an hour at most", after)
		}
		return unchanged
	}
	settle := func() {
		t.Helper()
		if err := b.drive(b.Update, machine); err != nil {
			t.Fatal(err)
		}
		if !unchanged() {
			t.Fatal("it has changed right after an update that found nothing to do")
		}
	}
	if unchanged() {
		t.Error("a Machine without an instance is unchanged")
	}
	b.bring(machine)
	if before := b.starts(); !unchanged() || b.starts() != before {
		t.Error("it has changed right after its update, or an engine was started to find out")
	}
	for _, one := range []struct {
		what   string
		change func()
	}{
		{"its credentials", func() { b.touch("kubemark-credentials"); b.later(10 * time.Second) }},
		{"its user data", func() { b.touch("bootstrap"); b.later(10 * time.Second) }},
		{"its state", func() {
			b.touch(state.KeyFor(machine.Namespace, machine.UID).Name)
			b.later(10 * time.Second)
		}},
		{"the time, by which a drift check is due", func() { b.later(2 * time.Hour) }},
	} {
		settle()
		one.change()
		if unchanged() {
			t.Errorf("it is unchanged after a change of %s", one.what)
		}
	}
}

// A drift check falls due on thousands of Machines, each at its time: none of them may have all
// states listed.
func TestNothingIsReadOfAMachineForWhichSomethingIsDue(t *testing.T) {
	b := newBench(t)
	live, err := client.NewWithWatch(plane.Config, client.Options{Scheme: plane.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	var reads atomic.Int64
	b.client = interceptor.NewClient(live, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			reads.Add(1)
			return c.Get(ctx, key, object, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			reads.Add(1)
			return c.List(ctx, list, options...)
		},
	})
	b.start(shortdir.New(t), "owner-2")
	machine := b.machine()
	b.bring(machine)
	b.later(2 * time.Hour)
	before := reads.Load()
	if _, unchanged := b.Unchanged(t.Context(), machine); unchanged {
		t.Error("it is unchanged although a drift check is due")
	}
	if got := reads.Load() - before; got > 0 {
		t.Errorf("%d reads were made to find that out", got)
	}
}

func TestAMachineIsNotUnchangedWhileSomethingIsDoneAboutIt(t *testing.T) {
	b := newBench(t)
	machine := b.machine()
	b.bring(machine)
	b.later(2 * time.Hour)
	if err := b.Update(t.Context(), machine); err != nil { // which has its drift checked
		t.Fatal(err)
	}
	if _, unchanged := b.Unchanged(t.Context(), machine); unchanged {
		t.Error("it is unchanged while its drift is checked")
	}
	if err := b.Delete(t.Context(), machine); err == nil {
		t.Error("it was deleted at once")
	}
	if _, unchanged := b.Unchanged(t.Context(), machine); unchanged {
		t.Error("it is unchanged while it is being deleted")
	}
}
