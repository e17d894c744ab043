package inspect

import (
	"cmp"
	"slices"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/machine-iac/machine-iac-operator/internal/inspect/print"
)

// DriftResult is what the last drift check found.
type DriftResult string

// The results, the most urgent first.
const (
	// DriftMissing is an instance that is gone.
	DriftMissing DriftResult = "Missing"
	// DriftChanged is an instance that is not as it was made.
	DriftChanged DriftResult = "Changed"
	// DriftNotChecked is an instance that no check has seen yet, or no instance.
	DriftNotChecked DriftResult = "NotChecked"
	// DriftIgnored is an instance whose drift policy is Ignore.
	DriftIgnored DriftResult = "Ignored"
	// DriftAsApplied is an instance that is as it was made.
	DriftAsApplied DriftResult = "AsApplied"
)

var driftOrder = []DriftResult{DriftMissing, DriftChanged, DriftNotChecked, DriftIgnored, DriftAsApplied}

// MachineDrift is what is known of how a Machine's instance differs from what it was made as.
type MachineDrift struct {
	Namespace string      `json:"namespace"`
	Machine   string      `json:"machine"`
	Result    DriftResult `json:"result"`
	// Checked is when the last check was.
	Checked *metav1.Time `json:"checked,omitempty"`
	// Since is when a check first found it so.
	Since *metav1.Time `json:"since,omitempty"`
	// Message names what differs, and what comes of it.
	Message string `json:"message,omitempty"`
}

// DriftList is the result of Drift.
type DriftList struct {
	Items []MachineDrift `json:"items"`

	listing
}

// Drift returns what the last checks found, what has drifted first; only this where the rest is not wanted.
func Drift(f *Facts, driftedOnly bool) *DriftList {
	list := &DriftList{Items: []MachineDrift{}, listing: listing{f.Namespace, f.Now}}
	for i := range f.Machines {
		found := driftOf(&f.Machines[i])
		if !driftedOnly || found.Result == DriftMissing || found.Result == DriftChanged {
			list.Items = append(list.Items, found)
		}
	}
	slices.SortStableFunc(list.Items, func(a, b MachineDrift) int {
		return cmp.Compare(slices.Index(driftOrder, a.Result), slices.Index(driftOrder, b.Result))
	})
	return list
}

func driftOf(machine *machinev1beta1.Machine) MachineDrift {
	status := ProviderStatus(machine)
	found := MachineDrift{Namespace: machine.Namespace, Machine: machine.Name, Result: DriftNotChecked, Checked: status.LastDriftCheckTime}
	condition := meta.FindStatusCondition(status.Conditions, drifted)
	if condition == nil {
		return found
	}
	found.Message, found.Since = condition.Message, &condition.LastTransitionTime
	switch {
	case condition.Reason == "InstanceMissing":
		found.Result = DriftMissing
	case condition.Status == metav1.ConditionTrue:
		found.Result = DriftChanged
	case condition.Status == metav1.ConditionFalse:
		found.Result = DriftAsApplied
	default:
		found.Result = DriftIgnored
	}
	return found
}

// Uncheckable returns why the drift of a Machine cannot be checked; empty where it can.
func Uncheckable(machine *machinev1beta1.Machine) string {
	status := ProviderStatus(machine)
	switch {
	case !machine.DeletionTimestamp.IsZero():
		return "it is being deleted"
	case machine.Status.Phase != nil && *machine.Status.Phase == machinev1beta1.PhaseFailed:
		return "it is Failed: " + cmp.Or(ptr.Deref(machine.Status.ErrorMessage, ""), "see its conditions")
	case status.InstanceID == "" || status.LastDriftCheckTime == nil:
		return "it has no instance yet; its conditions say what it waits for"
	}
	return ""
}

// Objects implements print.Report.
func (l *DriftList) Objects() []metav1.PartialObjectMetadata {
	var objects []metav1.PartialObjectMetadata
	for i := range l.Items {
		objects = append(objects, print.MachineReference(l.Items[i].Namespace, l.Items[i].Machine))
	}
	return objects
}

// Rows implements print.Table.
func (l *DriftList) Rows(wide bool) [][]string {
	rows := [][]string{{"MACHINE", "RESULT", "SINCE", "CHECKED", "DETAILS"}}
	for i := range l.Items {
		d := &l.Items[i]
		rows = append(rows, []string{
			d.Machine, string(d.Result), print.AgeOf(d.Since, l.now), print.AgeOf(d.Checked, l.now), print.Cut(d.Message, wide),
		})
	}
	return rows
}
