package backup

import (
	"context"
	"errors"
	"fmt"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/module/store"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state"
	"github.com/machine-iac/machine-iac-operator/internal/state/pulumikeys"
)

const (
	// lockOwner is the owner of locks that imports hold.
	lockOwner = "kubectl machine state import"
	// runPrefix starts the run names of imports.
	runPrefix = "import-"
)

// refusedError means that the write found that a state must not replace the stored one.
type refusedError struct{ error }

// Import imports the items that Check found importable and records the result of each. The write
// checks each of them again. An error means that nothing was written, because the keys could not
// be.
func (t *Target) Import(ctx context.Context, b *Backup, items []Item, now time.Time) error {
	if err := t.restoreKeys(ctx, b, items); err != nil {
		return err
	}
	for i := range items {
		item := &items[i]
		if item.Result != Importable && (item.Result != Unchanged || item.replaces == nil) {
			continue
		}
		err := t.moveOrImport(ctx, b, item, now)
		if why, refused := refusal(err); refused {
			item.refuse("%s", why)
		} else if err != nil {
			item.Result, item.Reason = Failed, err.Error()
		}
	}
	return nil
}

// restoreKeys adds the backup's keys if a state is encrypted with one.
func (t *Target) restoreKeys(ctx context.Context, b *Backup, items []Item) error {
	for i := range items {
		salt, err := pulumikeys.SaltOf(items[i].State.State)
		if err == nil && salt != "" && items[i].Result == Importable && b.Keys != nil {
			_, err := t.Keys.Restore(ctx, b.Keys)
			return err
		}
	}
	return nil
}

// moveOrImport imports one state. It locks a state that is stored under the Machine's former UID,
// and removes it afterwards.
func (t *Target) moveOrImport(ctx context.Context, b *Backup, item *Item, now time.Time) error {
	if item.replaces == nil {
		return t.importOne(ctx, b, item, now)
	}
	lock := state.Lock{Owner: lockOwner, Run: runPrefix + string(uuid.NewUUID()), Operation: "import"}
	left, err := t.States.Get(ctx, *item.replaces)
	if err != nil {
		return err
	}
	options := state.AcquireOptions{Lock: lock,
		Decide: func(_ context.Context, stored *state.Snapshot) (state.Change, error) {
			return state.Change{}, item.mayMove(stored.Serial, stored.Lock, stored.Meta)
		}}
	if left.Lock != nil && left.Lock.Owner == lockOwner {
		options.Break = left.Lock
	}
	session, err := t.States.Acquire(ctx, *item.replaces, options)
	if err != nil {
		return err
	}
	if item.Result == Importable {
		err = t.importOne(ctx, b, item, now)
	}
	if err != nil {
		return errors.Join(err, session.Release(ctx, nil))
	}
	if err := session.Forget(ctx); err != nil {
		return fmt.Errorf("the state is imported, and the one under the UID %s could not be removed: %w; import it once more",
			item.UID, err)
	}
	return nil
}

// importOne imports one state: its module first, then the state, then what its Machine says of the
// instance.
func (t *Target) importOne(ctx context.Context, b *Backup, item *Item, now time.Time) error {
	if err := t.stillThere(ctx, item); err != nil {
		return err
	}
	kept, err := b.module(store.DigestOf(item.Module))
	if err == nil && kept != nil {
		err = t.Modules.Keep(ctx, item.Namespace, kept)
	}
	if err != nil {
		return err
	}
	recorded, err := record.Read(item.Record)
	if err != nil {
		return fmt.Errorf("reading what is recorded beside the state: %w", err)
	}
	own, run := item.machine.UID, runPrefix+string(uuid.NewUUID())
	guard := record.NewPatch().SetIntent(record.Intent{
		Operation: runs.Create, Run: run, Since: now.UTC(), Reason: "the state of its instance is being imported",
	}).SetIdentityUID(item.identity, own).SetModule(item.Module)
	guard.SetPlace(recorded.Place)
	attachments := state.Attachments{}
	for name, content := range item.Attachments {
		attachments[name] = content
	}
	err = t.States.Import(ctx, item.key(), state.ImportOptions{
		Raw: item.State.State, Meta: record.Restored(item.Record, item.identity, own).MetaPatch, Attachments: attachments,
		Labels:      map[string]string{state.LabelMachineUID: string(own)},
		Annotations: map[string]string{state.AnnotationMachine: item.machine.Name},
		Lock:        state.Lock{Owner: lockOwner, Run: run, Operation: "import"}, Guard: guard.MetaPatch,
		Check: func(_ context.Context, stored *state.Snapshot) error {
			if stored.ResourceVersion == "" {
				return nil
			}
			if err := item.mayReplace(stored); err != nil {
				return &refusedError{err}
			}
			return nil
		},
	})
	if err != nil {
		return err
	}
	item.Result = Imported
	return nil
}

// stillThere returns a *refusedError if the Machine of an item has disappeared since the check: its
// state would have no Machine.
func (t *Target) stillThere(ctx context.Context, item *Item) error {
	seen := &machinev1beta1.Machine{}
	err := t.Client.Get(ctx, client.ObjectKeyFromObject(item.machine), seen)
	if apierrors.IsNotFound(err) || err == nil && seen.UID != item.machine.UID {
		return &refusedError{fmt.Errorf("the Machine %s is gone meanwhile", item.machine.Name)}
	}
	return err
}
