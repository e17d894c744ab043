package inspect

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-iac/machine-iac-operator/internal/inspect/print"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/state"
	"github.com/machine-iac/machine-iac-operator/internal/state/statefile"
)

// metaMachine is the key of the Machine's name in what is kept with a state.
var metaMachine = strings.TrimPrefix(state.AnnotationMachine, state.Prefix)

// OrphanKind says what kind of orphan it is.
type OrphanKind string

// Kinds of orphans.
const (
	// OrphanState is a state whose Machine is gone.
	OrphanState OrphanKind = "State"
	// OrphanUnsaved is a state that could not be saved and lists what no other state has.
	OrphanUnsaved OrphanKind = "UnsavedState"
	// OrphanInstance is an instance of the cluster that belongs to no Machine and no state, as the last inventory has found.
	OrphanInstance OrphanKind = "Instance"
)

// Orphan is something that nobody owns any more.
type Orphan struct {
	Kind      OrphanKind `json:"kind"`
	Namespace string     `json:"namespace"`
	// Machine is the name of the Machine that it belonged to, UID its UID, MachineSet the name of that Machine's.
	Machine    string    `json:"machine,omitempty"`
	UID        types.UID `json:"machineUID,omitempty"`
	MachineSet string    `json:"machineSet,omitempty"`
	// Secret has the state; empty for an instance.
	Secret string `json:"secret,omitempty"`
	// Instance is the name of an instance without a state, ProviderID its provider ID.
	Instance   string `json:"instance,omitempty"`
	ProviderID string `json:"providerID,omitempty"`
	// ListedBy names the Machine with whose providerSpec an instance without a state was listed.
	ListedBy string `json:"listedBy,omitempty"`
	// Installation is the UID of the operator's installation that an instance without a state bears; Whose says in words which one that is.
	Installation string `json:"installation,omitempty"`
	Whose        string `json:"whose,omitempty"`
	// Since is when the operator first saw it so; nil before it did.
	Since *metav1.Time `json:"since,omitempty"`
	// Resources are what the state lists: what a destroy would remove, and what nothing would know any more without it.
	Resources []statefile.ResourceID `json:"resources"`
	Module    string                 `json:"module,omitempty"`
	// Action is what was requested.
	Action string `json:"action,omitempty"`
	// Claimed says which Machine names its instance, and how; it is not destroyed then.
	Claimed string `json:"claimed,omitempty"`
	// Lock is held by a run.
	Lock *state.Lock `json:"lock,omitempty"`
	// Last is the last run that ended.
	Last *LastRun `json:"last,omitempty"`
	// Problem says what cannot be read, or why what was requested has not been done so far.
	Problem string `json:"problem,omitempty"`

	// version is the resourceVersion of the Secret.
	version    string
	providerID string
}

// Version returns the resourceVersion of the Secret that the orphan was read from.
func (o *Orphan) Version() string { return o.version }

// Name returns what the orphan is called in messages.
func (o *Orphan) Name() string { return cmp.Or(o.Machine, o.Instance, string(o.UID), o.Secret) }

// OrphanList is the result of Orphans.
type OrphanList struct {
	Items []Orphan `json:"items"`
	// Notes say what could not be read.
	Notes []string `json:"-"`

	listing
}

// Orphans reads what nobody owns any more; only what is named where names are given: by the name or the UID of the Machine, or by the Secret.
func Orphans(ctx context.Context, c *Cluster, names []string, now time.Time) (*OrphanList, error) {
	facts, err := c.Read(ctx, Want{States: true}, now)
	if err != nil {
		return nil, err
	}
	unsaved, err := c.States().Orphans(ctx, c.Namespace())
	if err != nil {
		return nil, err
	}
	list := &OrphanList{Items: []Orphan{}, listing: listing{c.Namespace(), now}}
	owned := map[state.Key]bool{}
	for i := range facts.Machines {
		owned[state.KeyFor(facts.Machines[i].Namespace, facts.Machines[i].UID)] = true
	}
	for i := range facts.States {
		if owned[facts.States[i].Key] {
			continue
		}
		one, err := ReadOrphan(ctx, c, facts.States[i].Key)
		if errors.Is(err, state.ErrNotFound) {
			continue // destroyed meanwhile
		}
		if err != nil {
			one = withoutState(&facts.States[i], err)
		}
		one.claim(facts.Machines)
		list.Items = append(list.Items, *one)
	}
	for i := range unsaved {
		list.Items = append(list.Items, newUnsaved(&unsaved[i]))
	}
	if err := list.readInventories(ctx, c); err != nil {
		return nil, err
	}
	slices.SortFunc(list.Items, func(a, b Orphan) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Machine, b.Machine), cmp.Compare(a.Secret+a.ProviderID, b.Secret+b.ProviderID))
	})
	return list, list.only(names, facts)
}

// only leaves the orphans with these names.
func (l *OrphanList) only(names []string, facts *Facts) error {
	if len(names) == 0 {
		return nil
	}
	var known []string
	for i := range l.Items {
		known = append(known, l.Items[i].Name())
	}
	for _, name := range names {
		if slices.ContainsFunc(l.Items, func(o Orphan) bool { return o.is(name) }) {
			continue
		}
		if slices.ContainsFunc(facts.Machines, func(m machinev1beta1.Machine) bool { return m.Name == name || name != "" && string(m.UID) == name }) {
			return fmt.Errorf("the Machine %q exists, and so its state is no orphan; delete the Machine to destroy its instance", name)
		}
		return Missing("orphan", name, l.namespace, known)
	}
	l.Items = slices.DeleteFunc(l.Items, func(o Orphan) bool { return !slices.ContainsFunc(names, o.is) })
	return nil
}

// is reports whether a name names the orphan.
func (o *Orphan) is(name string) bool {
	secret, _ := strings.CutPrefix(name, "secret/")
	return name != "" && slices.Contains([]string{o.Machine, string(o.UID), o.Instance, o.ProviderID, "secret/" + o.Secret}, name) || secret != "" && secret == o.Secret
}

// ReadOrphan reads one state, whatever has become of its Machine; it returns state.ErrNotFound when it is gone.
func ReadOrphan(ctx context.Context, c *Cluster, key state.Key) (*Orphan, error) {
	snapshot, err := c.States().Get(ctx, key)
	if err != nil {
		return nil, err
	}
	one := &Orphan{
		Kind: OrphanState, Namespace: key.Namespace, Secret: key.Name, Machine: snapshot.Meta[metaMachine], UID: types.UID(snapshot.Labels[state.LabelMachineUID]),
		Module: record.ModuleIn(snapshot.Meta), Lock: snapshot.Lock, Resources: []statefile.ResourceID{}, version: snapshot.ResourceVersion,
	}
	said, err := record.ReadOrphan(snapshot.Meta)
	if err != nil {
		one.Problem = err.Error()
	}
	one.Action = said.Action
	if said.MachineSet != nil {
		one.MachineSet = said.MachineSet.Name
	}
	if said.Mark != nil {
		since := metav1.NewTime(said.Mark.Since)
		one.Since, one.Problem = &since, said.Mark.Problem
	}
	if one.Last, err = ReadLastRun(snapshot.Meta); err != nil {
		one.Problem = err.Error()
	}
	return one, one.readResources(snapshot)
}

// readResources reads what a state lists.
func (o *Orphan) readResources(snapshot *state.Snapshot) error {
	if snapshot.Raw == nil {
		return nil
	}
	listed, err := statefile.Compare(nil, snapshot.Raw)
	if err != nil {
		return err
	}
	parsed, err := snapshot.State()
	if err != nil {
		return err
	}
	o.Resources = append(o.Resources, listed.Missing...)
	_ = json.Unmarshal(parsed.Outputs["provider_id"].Value, &o.providerID) // empty where there is none
	return nil
}

// withoutState returns an orphan whose state cannot be read.
func withoutState(head *state.Head, err error) *Orphan {
	return &Orphan{
		Kind: OrphanState, Namespace: head.Key.Namespace, Secret: head.Key.Name, Machine: head.Meta[metaMachine], UID: types.UID(head.Labels[state.LabelMachineUID]),
		Module: record.ModuleIn(head.Meta), Lock: head.Lock, Resources: []statefile.ResourceID{}, Problem: err.Error(),
	}
}

func newUnsaved(kept *state.Orphan) Orphan {
	since := metav1.NewTime(kept.Since)
	one := Orphan{
		Kind: OrphanUnsaved, Namespace: kept.Namespace, Secret: kept.Name, Machine: kept.Machine, UID: kept.MachineUID, Since: &since,
		Resources: kept.Missing, Problem: kept.Reason,
	}
	if kept.Problem != nil {
		one.Problem = kept.Problem.Error()
	}
	return one
}

// claim finds the Machine that names the instance of the orphan.
func (o *Orphan) claim(machines []machinev1beta1.Machine) {
	for i := range machines {
		if named := record.Names(&machines[i], o.UID, o.providerID); named != "" && machines[i].Namespace == o.Namespace {
			o.Claimed = fmt.Sprintf("the Machine %s names its instance: %s", machines[i].Name, named)
		}
	}
}

// Objects implements print.Report.
func (l *OrphanList) Objects() []metav1.PartialObjectMetadata {
	var objects []metav1.PartialObjectMetadata
	for i := range l.Items {
		kind, name := "Secret", l.Items[i].Secret
		if l.Items[i].Kind == OrphanInstance {
			kind, name = "ConfigMap", lifecycle.InventoryConfigMap
		}
		objects = append(objects, print.Reference(corev1.SchemeGroupVersion.WithKind(kind), l.Items[i].Namespace, name))
	}
	return objects
}

// Rows implements print.Table.
func (l *OrphanList) Rows(wide bool) [][]string {
	titles := []string{"NAME", "KIND", "MACHINESET", "SINCE", "RESOURCES", "DETAILS"}
	if wide {
		titles = slices.Insert(titles, 5, "UID", "SECRET")
	}
	rows := [][]string{titles}
	for i := range l.Items {
		o := &l.Items[i]
		row := []string{
			cmp.Or(o.Machine, o.Instance, "-"), string(o.Kind), cmp.Or(o.MachineSet, "-"), print.AgeOf(o.Since, l.now), strconv.Itoa(len(o.Resources)),
			print.Cut(strings.Join(o.details(l.now), "; "), wide),
		}
		if wide {
			row = slices.Insert(row, 5, cmp.Or(string(o.UID), "-"), cmp.Or(o.Secret, "-"))
		}
		rows = append(rows, row)
	}
	return rows
}

func (o *Orphan) details(now time.Time) []string {
	var details []string
	if o.Lock != nil {
		details = append(details, fmt.Sprintf("locked to %s for %s", o.Lock.Operation, print.Age(o.Lock.Since, now)))
	}
	if o.Action != "" {
		details = append(details, o.Action+" is requested")
	}
	for _, text := range []string{o.Problem, o.Claimed, o.Whose, o.ProviderID} {
		if text != "" && text != thisInstallation {
			details = append(details, text)
		}
	}
	if len(o.Resources) > 0 {
		details = append(details, statefile.Names(o.Resources))
	}
	return details
}
