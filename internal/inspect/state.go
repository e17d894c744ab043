package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-iac/machine-iac-operator/internal/inspect/print"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// StoredState is the head of a state.
type StoredState struct {
	Namespace string `json:"namespace"`
	// Machine is the name of the Machine, and UID its UID.
	Machine string    `json:"machine,omitempty"`
	UID     types.UID `json:"machineUID,omitempty"`
	// Phase of the Machine; Gone where there is none, so that the state may be of an instance without a Machine.
	Phase string `json:"phase"`
	// Secret that names the state.
	Secret string `json:"secret"`
	// Serial, Resources, Size (in bytes) and Written are those of the stored state; zero while none is.
	Serial    uint64       `json:"serial,omitempty"`
	Resources int          `json:"resources"`
	Size      int          `json:"size,omitempty"`
	Written   *metav1.Time `json:"written,omitempty"`
	Created   metav1.Time  `json:"created"`
	Module    string       `json:"module,omitempty"`
	// Lock is held by a run.
	Lock *state.Lock `json:"lock,omitempty"`
	// Intent is of a run that began and has not settled.
	Intent *Intent `json:"intent,omitempty"`
	// Problem says why the head cannot be read whole.
	Problem string `json:"problem,omitempty"`
}

// Intent says that a run was about to touch infrastructure.
type Intent struct {
	Operation string      `json:"operation"`
	Run       string      `json:"run"`
	Since     metav1.Time `json:"since"`
	// Reason says why the run does what it does.
	Reason string `json:"reason,omitempty"`
}

// gone is the phase of a Machine that is not there.
const gone = "Gone"

// StateList is the result of States.
type StateList struct {
	Items []StoredState `json:"items"`

	listing
}

// States joins states and their Machines. Where those are limited, states are of them and of Machines that are named, those that are gone
// among them.
func States(f *Facts) (*StateList, error) {
	list := &StateList{Items: []StoredState{}, listing: listing{f.Namespace, f.Now}}
	phases := map[types.UID]string{}
	for i := range f.Machines {
		phases[f.Machines[i].UID] = phase(&f.Machines[i])
	}
	var known []string
	for i := range f.States {
		stored := newStored(&f.States[i])
		stored.Phase = cmp.Or(phases[stored.UID], gone)
		known = append(known, stored.Machine)
		if !f.Limited || stored.Phase != gone || slices.Contains(f.Named, stored.Machine) {
			list.Items = append(list.Items, stored)
		}
	}
	for _, name := range f.Named {
		if !slices.Contains(known, name) {
			return nil, Missing("state of a Machine", name, f.Namespace, known)
		}
	}
	slices.SortFunc(list.Items, func(a, b StoredState) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Machine, b.Machine), cmp.Compare(a.Secret, b.Secret))
	})
	return list, nil
}

func newStored(head *state.Head) StoredState {
	stored := StoredState{
		Namespace: head.Key.Namespace, Secret: head.Key.Name, Machine: head.Meta[metaMachine], UID: types.UID(head.Labels[state.LabelMachineUID]),
		Serial: head.Serial, Resources: head.Managed, Size: head.Size, Created: metav1.NewTime(head.Created), Module: record.ModuleIn(head.Meta), Lock: head.Lock,
	}
	if !head.Written.IsZero() {
		at := metav1.NewTime(head.Written)
		stored.Written = &at
	}
	intent, err := record.ReadIntent(head.Meta)
	if intent != nil {
		stored.Intent = &Intent{string(intent.Operation), intent.Run, metav1.NewTime(intent.Since), intent.Reason}
	}
	if err = errors.Join(head.Problem, err); err != nil {
		stored.Problem = strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	return stored
}

// Objects implements print.Report.
func (l *StateList) Objects() []metav1.PartialObjectMetadata {
	var objects []metav1.PartialObjectMetadata
	for i := range l.Items {
		objects = append(objects, print.MachineReference(l.Items[i].Namespace, l.Items[i].Machine))
	}
	return objects
}

// Rows implements print.Table.
func (l *StateList) Rows(wide bool) [][]string {
	titles := []string{"MACHINE", "PHASE", "RESOURCES", "SERIAL", "SIZE", "WRITTEN", "DETAILS"}
	if wide {
		titles = slices.Insert(titles, 6, "SECRET")
	}
	rows := [][]string{titles}
	for i := range l.Items {
		s := &l.Items[i]
		row := []string{cmp.Or(s.Machine, "-"), s.Phase, strconv.Itoa(s.Resources), "-", "-", "-", print.Cut(strings.Join(s.details(l.now), "; "), wide)}
		if s.Written != nil {
			row[3], row[4], row[5] = strconv.FormatUint(s.Serial, 10), kib(s.Size), print.Age(s.Written.Time, l.now)
		}
		if wide {
			row = slices.Insert(row, 6, s.Secret)
		}
		rows = append(rows, row)
	}
	return rows
}

func (s *StoredState) details(now time.Time) []string {
	var details []string
	if s.Lock != nil {
		details = append(details, fmt.Sprintf("locked to %s for %s", s.Lock.Operation, print.Age(s.Lock.Since, now)))
	}
	if s.Intent != nil && (s.Lock == nil || s.Lock.Run != s.Intent.Run) {
		details = append(details, fmt.Sprintf("a %s began %s ago and has not settled", s.Intent.Operation, print.Age(s.Intent.Since.Time, now)))
	}
	if s.Phase == gone && s.Resources > 0 {
		details = append(details, "its Machine is gone, and what the state lists may still exist")
	}
	if s.Problem != "" {
		details = append(details, s.Problem)
	}
	return details
}

func kib(size int) string {
	return fmt.Sprintf("%.1f KiB", float64(size)/1024)
}

// State reads the state of a Machine, by its name, or by its UID where the Machine is gone.
func (c *Cluster) State(ctx context.Context, machine string) (*state.Snapshot, error) {
	key, err := c.stateKey(ctx, machine)
	if err != nil {
		return nil, err
	}
	snapshot, err := c.store.Get(ctx, key)
	if errors.Is(err, state.ErrNotFound) {
		return nil, &noStateError{machine}
	}
	return snapshot, corrupt(err, machine)
}

// noStateError says that a Machine has no state.
type noStateError struct{ machine string }

// Error implements error.
func (e *noStateError) Error() string {
	return fmt.Sprintf("the Machine %q has no state: no run has begun for it; see 'kubectl machine runs %s'", e.machine, e.machine)
}

// Version reads one version of the state of a Machine as it was stored.
func (c *Cluster) Version(ctx context.Context, machine string, serial uint64) ([]byte, error) {
	key, err := c.stateKey(ctx, machine)
	if err != nil {
		return nil, err
	}
	raw, err := c.store.Version(ctx, key, serial)
	if !errors.Is(err, state.ErrNotFound) {
		return raw, err
	}
	versions, err := c.store.Versions(ctx, key)
	if err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("the state of the Machine %q has no version %d; it has %s", machine, serial, serials(versions))
}

func serials(versions []state.Version) string {
	if len(versions) == 0 {
		return "none"
	}
	var all []string
	for _, version := range versions {
		all = append(all, strconv.FormatUint(version.Serial, 10))
	}
	return strings.Join(all, ", ")
}

// corrupt adds to an error about a damaged state how to fix it.
func corrupt(err error, machine string) error {
	if _, damaged := errors.AsType[*state.CorruptError](err); damaged {
		return fmt.Errorf("%w; 'kubectl machine state pull %s --serial N' reads an earlier version, and docs/contracts/state.md says how to put it back", err, machine)
	}
	return err
}

// stateKey finds a state by its Machine, or where that is gone by the name that the state has kept.
func (c *Cluster) stateKey(ctx context.Context, name string) (state.Key, error) {
	selected, err := c.find(ctx, Selection{Names: []string{name}}, kindMachine)
	if err != nil {
		return state.Key{}, err
	}
	if len(selected.named) == 0 {
		return state.Key{}, fmt.Errorf("%q is no Machine; name one of its Machines, which 'kubectl machine tree %s' shows", name, name)
	}
	if machines := selected.machines(); len(machines) > 0 {
		return state.KeyFor(c.namespace, machines[0].UID), nil
	}
	name = selected.missing[0].name
	heads, err := c.store.List(ctx, c.namespace)
	if err != nil {
		return state.Key{}, err
	}
	var found []state.Key
	var known []string
	for i := range heads {
		known = append(known, heads[i].Meta[metaMachine])
		if heads[i].Meta[metaMachine] == name || heads[i].Labels[state.LabelMachineUID] == name {
			found = append(found, heads[i].Key)
		}
	}
	switch len(found) {
	case 0:
		return state.Key{}, Missing("state of a Machine", name, c.namespace, known)
	case 1:
		return found[0], nil
	}
	return state.Key{}, fmt.Errorf("%d states are of Machines %q that are gone; name one by its Machine's UID, which 'kubectl machine state list -o yaml' prints", len(found), name)
}

// StateNames returns the names of the Machines that have a state, for a shell that completes them.
func (c *Cluster) StateNames(ctx context.Context) ([]string, error) {
	heads, err := c.store.List(ctx, c.namespace)
	var names []string
	for i := range heads {
		names = append(names, heads[i].Meta[metaMachine])
	}
	slices.Sort(names)
	return slices.Compact(names), err
}
