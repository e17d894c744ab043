package backup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/module/store"
	"github.com/machine-iac/machine-iac-operator/internal/state"
	"github.com/machine-iac/machine-iac-operator/internal/state/pulumikeys"
	"github.com/machine-iac/machine-iac-operator/internal/state/statefile"
)

// Result says what becomes of a state.
type Result string

// Results.
const (
	// Importable is a state that may be imported.
	Importable Result = "Importable"
	// Imported is one that was.
	Imported Result = "Imported"
	// Unchanged is one that is stored already.
	Unchanged Result = "Unchanged"
	// Refused is one that may not be imported.
	Refused Result = "Refused"
	// Failed is one whose import did not succeed.
	Failed Result = "Failed"
)

// Item is a state of a backup, and what happens to it.
type Item struct {
	*State
	Result Result
	// Reason says why, for people.
	Reason string
	// Notes say what else is to be known.
	Notes []string
	// Stored is the serial of the stored state, or zero.
	Stored uint64

	machine *machinev1beta1.Machine
	// replaces is the state under the Machine's former UID, which is removed once this one is stored;
	// nil if there is none.
	replaces *state.Key
	// identity is the UID that the instance was created with.
	identity types.UID
}

// Machine returns the Machine that the state is for, or nil.
func (i *Item) Machine() *machinev1beta1.Machine { return i.machine }

// refuse makes an item refused.
func (i *Item) refuse(format string, arguments ...any) {
	i.Result, i.Reason = Refused, fmt.Sprintf(format, arguments...)
}

// Target is a cluster that states are imported into. Its clients must read the API server directly.
type Target struct {
	Source
	Client client.Client
	// Namespace is the only one to import into; empty means all.
	Namespace string
	// Map names the Machines that get states of Machines with other UIDs, by those UIDs.
	Map map[types.UID]string
}

// Check determines for each state of a backup what an import would do. It writes nothing. An error
// means that the cluster is unreadable.
func (t *Target) Check(ctx context.Context, b *Backup) ([]Item, error) {
	machines, heads := &machinev1beta1.MachineList{}, []state.Head(nil)
	if err := t.Client.List(ctx, machines, client.InNamespace(t.Namespace)); err != nil {
		return nil, fmt.Errorf("listing Machines: %w", err)
	}
	heads, err := t.States.List(ctx, t.Namespace)
	if err != nil {
		return nil, err
	}
	for uid := range t.Map {
		if !slices.ContainsFunc(b.States, func(one State) bool { return one.UID == uid }) {
			return nil, fmt.Errorf("--map names the UID %s, but no state in the backup has it; write --map UID=MACHINE", uid)
		}
	}
	items := make([]Item, len(b.States))
	for i := range b.States {
		item := &items[i]
		*item = Item{State: &b.States[i], Result: Importable}
		if t.find(item, machines.Items); item.Result != Importable {
			continue
		}
		item.checkOthers(items[:i], heads)
		if err := t.checkNeeded(ctx, item, b); err != nil {
			return nil, err
		}
		if err := t.checkStored(ctx, item); err != nil {
			return nil, err
		}
	}
	return items, nil
}

// find finds the Machine that a state is for.
func (t *Target) find(item *Item, machines []machinev1beta1.Machine) {
	if t.Namespace != "" && item.Namespace != t.Namespace {
		item.refuse("it is of namespace %s: name that with -n, or -A for all", item.Namespace)
		return
	}
	found := candidatesOf(item.State, machines)
	item.machine = found.same
	mapped := t.Map[item.UID]
	switch {
	case item.machine != nil && mapped != "":
		item.refuse("the Machine %s has this very UID: it needs no --map", item.machine.Name)
	case item.machine != nil:
	case mapped != "" && mapped != item.State.Machine:
		item.refuse("--map names the Machine %s, and the state is of one called %s: the name is an input of its module, so the instance would be replaced; "+
			"make the Machine with the name %s", mapped, item.State.Machine, item.State.Machine)
	case mapped != "" && found.named == nil:
		item.refuse("--map names the Machine %s, and there is none in namespace %s: restore the Machine first", mapped,
			item.Namespace)
	case mapped != "":
		item.machine = found.named
	case found.named != nil && record.RestoredFrom(found.named) == item.UID:
		item.machine = found.named
	case found.named != nil:
		item.refuse("the Machine %s has another UID, %s; where it was made anew for the same instance, import with --map %s=%s",
			found.named.Name, found.named.UID, item.UID, found.named.Name)
	default:
		item.refuse("no Machine in namespace %s has its UID, and none is called %s: restore the Machine first",
			item.Namespace, item.State.Machine)
	}
	if item.Result == Importable {
		item.checkMachine()
	}
}

// candidates are the Machines that a state may be for.
type candidates struct {
	// same has the UID that the state was exported with; named has the name and another UID. Either
	// may be nil.
	same, named *machinev1beta1.Machine
}

func candidatesOf(one *State, machines []machinev1beta1.Machine) candidates {
	var found candidates
	for i := range machines {
		switch machine := &machines[i]; {
		case machine.Namespace != one.Namespace:
		case machine.UID == one.UID:
			found.same = machine
		case machine.Name == one.Machine:
			found.named = machine
		}
	}
	return found
}

// checkMachine checks the Machine that a state is for.
func (i *Item) checkMachine() {
	i.identity = types.UID(i.Record[record.IdentityUIDKey])
	if i.identity == "" {
		i.identity = i.UID
	}
	adoption, _ := lifecycle.AdoptionOf(i.machine)
	switch {
	case adoption == lifecycle.AdoptionRelease:
		i.refuse("the Machine %s is released: the manager would forget the state again; remove its annotation %s first",
			i.machine.Name, lifecycle.AdoptionAnnotation)
	case i.machine.UID != i.UID && record.HasInstanceOfItsOwn(i.machine):
		i.refuse("the Machine %s has an instance of its own, which was made with its UID %s", i.machine.Name, i.machine.UID)
	case i.machine.UID != i.UID:
		i.Notes = append(i.Notes, fmt.Sprintf("the Machine has the UID %s now; its instance keeps %s", i.machine.UID,
			i.identity))
	}
	if i.Result == Importable && !i.machine.DeletionTimestamp.IsZero() {
		i.Notes = append(i.Notes, "the Machine is being deleted: with its state, its instance is destroyed")
	}
}

// checkOthers rejects a state with infrastructure that another state contains as well.
func (i *Item) checkOthers(before []Item, heads []state.Head) {
	if i.Result != Importable {
		return
	}
	key := i.key()
	for at := range before {
		other := &before[at]
		if other.Result == Importable && (other.Lineage == i.Lineage || other.key() == key) {
			i.refuse("the backup has a state of Machine %s with UID %s too, of the same infrastructure or for the same Machine",
				other.State.Machine, other.UID)
			return
		}
	}
	for at := range heads {
		head := &heads[at]
		if head.Key == key || head.Key.Namespace != key.Namespace || !head.Stored || head.Lineage != i.Lineage {
			continue
		}
		if head.Key != state.KeyFor(i.Namespace, i.UID) {
			i.refuse("the state %s of Machine %s with UID %s describes the same infrastructure, and two states must not",
				head.Key, head.Meta[metaMachine], head.Labels[state.LabelMachineUID])
			return
		}
		if err := i.mayMove(head.Serial, head.Lock, head.Meta); err != nil {
			i.refuse("the state is stored under the UID %s as well, and cannot be moved: %s", i.UID, err)
			return
		}
		i.replaces = &head.Key
		i.Notes = append(i.Notes, fmt.Sprintf("the state under the UID %s is moved", i.UID))
	}
}

// mayMove returns why the state under the Machine's former UID must not be removed, or nil.
func (i *Item) mayMove(serial uint64, lock *state.Lock, meta map[string]string) error {
	recorded, err := record.Read(meta)
	orphan, unread := record.ReadOrphan(meta)
	switch {
	case err != nil || unread != nil:
		return errors.Join(err, unread)
	case orphan.Action != "" || orphan.Mark != nil && (orphan.Mark.Begun || !orphan.Mark.Destroy.IsZero()):
		return fmt.Errorf("it is about to be destroyed; to keep it, remove the annotation %s from its Secret, and set --orphan-policy=Retain",
			record.OrphanActionAnnotation)
	case lock != nil && lock.Owner != lockOwner:
		return fmt.Errorf("a run is in progress (%s)", lock.Operation)
	case recorded.Intent != nil:
		return fmt.Errorf("run %s (%s) has not settled", recorded.Intent.Run, recorded.Intent.Operation)
	case serial > i.Serial:
		return fmt.Errorf("it has serial %d and the backup %d; export it again and import that", serial, i.Serial)
	}
	return nil
}

// key returns where the state is stored.
func (i *Item) key() state.Key { return state.KeyFor(i.machine.Namespace, i.machine.UID) }

// checkNeeded checks that everything that the state needs is available.
func (t *Target) checkNeeded(ctx context.Context, item *Item, b *Backup) error {
	if item.Result != Importable {
		return nil
	}
	if err := t.checkKey(ctx, item, b); err != nil {
		return err
	}
	digest := store.DigestOf(item.Module)
	if digest == "" || item.Result != Importable {
		return nil
	}
	kept, err := b.module(digest)
	if err != nil {
		item.refuse("%s", err)
	}
	if kept != nil || err != nil {
		return nil
	}
	_, err = t.Modules.Load(ctx, item.Namespace, digest)
	if store.IsUnproven(err) {
		item.Notes = append(item.Notes, err.Error())
		return nil
	}
	if store.IsMissing(err) {
		item.Notes = append(item.Notes,
			fmt.Sprintf("module %s is neither in the backup nor in the cluster; the manager must have it loaded", item.Module))
		return nil
	}
	return err
}

// checkKey rejects a checkpoint that no key decrypts. It reads the cluster's keys only if the
// backup lacks the key.
func (t *Target) checkKey(ctx context.Context, item *Item, b *Backup) error {
	salt, err := pulumikeys.SaltOf(item.State.State)
	if err != nil {
		item.refuse("its checkpoint cannot be read: %s", err)
		return nil
	}
	if salt == "" || hasKey(b.Keys, salt) {
		return nil
	}
	known, err := t.Keys.Backup(ctx)
	if err == nil && !hasKey(known, salt) {
		item.refuse("the key %s, which its checkpoint is encrypted with, is neither in the backup nor in the Secret %s of the manager's namespace",
			pulumikeys.IDOf(salt), pulumikeys.SecretName)
	}
	return err
}

// checkStored compares an item with the state that is stored.
func (t *Target) checkStored(ctx context.Context, item *Item) error {
	if item.Result != Importable {
		return nil
	}
	stored, err := t.States.Get(ctx, item.key())
	if errors.Is(err, state.ErrNotFound) {
		return nil
	}
	_, encrypted := errors.AsType[*state.EncryptedError](err)
	if _, corrupt := errors.AsType[*state.CorruptError](err); corrupt || encrypted {
		item.refuse("%s", err)
		return nil
	}
	if err != nil {
		return err
	}
	item.Stored = stored.Serial
	switch err := item.mayReplace(stored); {
	case err != nil:
		item.refuse("%s", err)
	case stored.Raw != nil && stored.Serial == item.Serial:
		item.Result, item.Reason = Unchanged, "this state is already stored"
	}
	return nil
}

// mayReplace returns why a state must not replace the stored one, or nil.
func (i *Item) mayReplace(stored *state.Snapshot) error {
	held := stored.Lock
	if held != nil && held.Owner == lockOwner {
		held = nil // an earlier import has left it
	}
	recorded, err := record.Read(stored.Meta)
	switch {
	case held != nil:
		return fmt.Errorf("a run is in progress (%s since %s): wait until it has ended", held.Operation,
			held.Since.UTC().Format("2006-01-02T15:04:05Z"))
	case err != nil:
		return err
	case stored.Deleting:
		return errors.New("its Secret is being deleted: wait until it is gone")
	case stored.Raw == nil && recorded.Intent == nil, recorded.Intent != nil &&
		strings.HasPrefix(recorded.Intent.Run, runPrefix):
		return nil
	case recorded.Intent != nil:
		return fmt.Errorf("run %s (%s) has not settled: wait until the manager has found out what it did; 'kubectl machine runs' shows it", recorded.Intent.Run, recorded.Intent.Operation)
	case stored.Lineage != i.Lineage:
		return fmt.Errorf("its lineage is %q, and that of the stored state %q: they describe different infrastructure",
			i.Lineage, stored.Lineage)
	case stored.Serial > i.Serial:
		return fmt.Errorf("its serial %d is lower than the stored one, %d: the stored state is newer, and an import would lose what was created since", i.Serial, stored.Serial)
	case stored.Serial == i.Serial && Checksum(stored.Raw) != i.SHA256:
		return fmt.Errorf("the stored state has serial %d as well and another content: one of both was edited", i.Serial)
	}
	return nil
}

// refusal returns the message for people if package state rejects a state.
func refusal(err error) (string, bool) {
	if refused, ok := errors.AsType[*statefile.RefusedError](err); ok {
		return refused.Detail, true
	}
	if locked, ok := errors.AsType[*state.LockedError](err); ok {
		return "a run is in progress: " + locked.Lock.Operation, true
	}
	if other, ok := errors.AsType[*refusedError](err); ok {
		return other.Error(), true
	}
	return "", false
}
