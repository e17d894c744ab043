package inspect

import (
	"cmp"
	"slices"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Verdict is what the last drift check found.
type Verdict string

// The verdicts, those first that a person asks for first.
const (
	// VerdictMissing is an instance that is gone.
	VerdictMissing Verdict = "Missing"
	// VerdictChanged is an instance that is not as it was made.
	VerdictChanged Verdict = "Changed"
	// VerdictUnchecked is an instance that no check has looked at yet, or none.
	VerdictUnchecked Verdict = "NotChecked"
	// VerdictIgnored is an instance whose drift nobody wants to know of.
	VerdictIgnored Verdict = "Ignored"
	// VerdictNone is an instance that is as it was made.
	VerdictNone Verdict = "AsApplied"
)

var verdictOrder = []Verdict{VerdictMissing, VerdictChanged, VerdictUnchecked, VerdictIgnored, VerdictNone}

// MachineDrift is what is known of how a Machine's instance differs from what it was made as.
type MachineDrift struct {
	Namespace string  `json:"namespace"`
	Machine   string  `json:"machine"`
	Verdict   Verdict `json:"verdict"`
	// Checked is when the last check was.
	Checked *metav1.Time `json:"checked,omitempty"`
	// Since is when a check first found it so.
	Since *metav1.Time `json:"since,omitempty"`
	// Message names what differs, and what comes of it.
	Message string `json:"message,omitempty"`
}

// DriftList is what Drift answers.
type DriftList struct {
	Items []MachineDrift `json:"items"`

	namespace string
	now       time.Time
}

// Drift returns what the last checks found, what has drifted first; only this where the rest is not wanted.
func Drift(f *Facts, driftedOnly bool) *DriftList {
	list := &DriftList{Items: []MachineDrift{}, namespace: f.Namespace, now: f.Now}
	for i := range f.Machines {
		found := driftOf(&f.Machines[i])
		if !driftedOnly || found.Verdict == VerdictMissing || found.Verdict == VerdictChanged {
			list.Items = append(list.Items, found)
		}
	}
	slices.SortStableFunc(list.Items, func(a, b MachineDrift) int {
		return cmp.Compare(slices.Index(verdictOrder, a.Verdict), slices.Index(verdictOrder, b.Verdict))
	})
	return list
}

func driftOf(machine *machinev1beta1.Machine) MachineDrift {
	status := providerStatus(machine)
	found := MachineDrift{Namespace: machine.Namespace, Machine: machine.Name, Verdict: VerdictUnchecked, Checked: status.LastDriftCheckTime}
	told := meta.FindStatusCondition(status.Conditions, drifted)
	if told == nil {
		return found
	}
	found.Message, found.Since = told.Message, &told.LastTransitionTime
	switch {
	case told.Reason == "InstanceMissing":
		found.Verdict = VerdictMissing
	case told.Status == metav1.ConditionTrue:
		found.Verdict = VerdictChanged
	case told.Status == metav1.ConditionFalse:
		found.Verdict = VerdictNone
	default:
		found.Verdict = VerdictIgnored
	}
	return found
}

func (l *DriftList) about() []metav1.PartialObjectMetadata {
	var objects []metav1.PartialObjectMetadata
	for i := range l.Items {
		objects = append(objects, machineReference(l.Items[i].Namespace, l.Items[i].Machine))
	}
	return objects
}

func (l *DriftList) allNamespaces() bool { return l.namespace == "" }

func (l *DriftList) table(wide bool) [][]string {
	rows := [][]string{{"MACHINE", "VERDICT", "SINCE", "CHECKED", "DETAILS"}}
	for i := range l.Items {
		d := &l.Items[i]
		rows = append(rows, []string{
			d.Machine, string(d.Verdict), age(timeOf(d.Since), l.now), age(timeOf(d.Checked), l.now), cut(d.Message, wide),
		})
	}
	return rows
}
