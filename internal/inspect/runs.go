package inspect

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/inspect/print"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// RunPhase is how far a Machine's run has come.
type RunPhase string

// The phases of a run, the most urgent first.
const (
	// RunRunning holds the state's lock, or is about to take it.
	RunRunning RunPhase = "Running"
	// RunWaiting has begun, and waits for its turn in a queue of the cluster.
	RunWaiting RunPhase = "Waiting"
	// RunQueued waits for a place.
	RunQueued RunPhase = "Queued"
	// RunActive waited when its Machine was last looked at, and may run since: the state's lock may not be read.
	RunActive RunPhase = "QueuedOrRunning"
	// RunUnsettled began and has not ended in order; the next run finds out what it did.
	RunUnsettled RunPhase = "Unsettled"
	// RunNone is no run.
	RunNone RunPhase = ""
)

var runOrder = []RunPhase{RunRunning, RunWaiting, RunActive, RunQueued, RunUnsettled, RunNone}

// MachineRun is what is known of a Machine's runs.
type MachineRun struct {
	Namespace string    `json:"namespace"`
	Machine   string    `json:"machine"`
	UID       types.UID `json:"machineUID"`
	Phase     RunPhase  `json:"phase,omitempty"`
	// Operation is create, update, drift or destroy; empty where there is no run.
	Operation string `json:"operation,omitempty"`
	// Since is when the run began, or was queued while it waits.
	Since *metav1.Time `json:"since,omitempty"`
	// Owner is the manager process that the run is of.
	Owner string `json:"owner,omitempty"`
	// Reason says why a run that has begun does what it does.
	Reason string `json:"reason,omitempty"`
	// WaitsFor says what a run waits for, other than a worker.
	WaitsFor string `json:"waitsFor,omitempty"`
	// Last is the last run that ended; not known without the state.
	Last *LastRun `json:"last,omitempty"`
	// Problem says what cannot be read.
	Problem string `json:"problem,omitempty"`
}

// LastRun is a run that ended.
type LastRun struct {
	Operation string      `json:"operation"`
	Run       string      `json:"run"`
	Began     metav1.Time `json:"began"`
	Ended     metav1.Time `json:"ended"`
	// Result is Succeeded, Failed, Interrupted, or Undecided where nothing was found and something may be.
	Result string `json:"result"`
	// Message says why it failed, Reason why it was begun.
	Message string `json:"message,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

// RunList is the result of Runs.
type RunList struct {
	Items []MachineRun `json:"items"`

	listing
}

// Runs returns the runs of Machines, those that are active first; only these where the others are not wanted.
func Runs(f *Facts, activeOnly bool) *RunList {
	heads := map[types.UID]*state.Head{}
	for i := range f.States {
		heads[types.UID(f.States[i].Labels[state.LabelMachineUID])] = &f.States[i]
	}
	list := &RunList{Items: []MachineRun{}, listing: listing{f.Namespace, f.Now}}
	for i := range f.Machines {
		run := runOf(&f.Machines[i], heads[f.Machines[i].UID], f.StatesKnown)
		if !activeOnly || run.Phase != RunNone {
			list.Items = append(list.Items, run)
		}
	}
	slices.SortStableFunc(list.Items, func(a, b MachineRun) int {
		return cmp.Or(cmp.Compare(slices.Index(runOrder, a.Phase), slices.Index(runOrder, b.Phase)), timeOf(a.Since).Compare(timeOf(b.Since)))
	})
	return list
}

func timeOf(at *metav1.Time) time.Time {
	if at == nil {
		return time.Time{}
	}
	return at.Time
}

// runOf takes a running run from the state, which is up to date, and a queued one from the Machine's status.
func runOf(machine *machinev1beta1.Machine, head *state.Head, known bool) MachineRun {
	run := MachineRun{Namespace: machine.Namespace, Machine: machine.Name, UID: machine.UID, Phase: RunNone}
	reported := ProviderStatus(machine).Run
	var intent *Intent
	if head != nil {
		stored := newStored(head)
		intent, run.Problem = stored.Intent, stored.Problem
		if intent != nil {
			run.Reason = intent.Reason
		}
		last, err := ReadLastRun(head.Meta)
		if err != nil {
			run.Problem = strings.TrimPrefix(run.Problem+"; "+err.Error(), "; ")
		}
		run.Last = last
	}
	if reported != nil && run.Last.is(reported) {
		reported = nil // the Machine was not reconciled since
	}
	switch {
	case head != nil && head.Lock != nil:
		since := metav1.NewTime(head.Lock.Since)
		run.Phase, run.Operation, run.Since, run.Owner = RunRunning, head.Lock.Operation, &since, head.Lock.Owner
	case reported != nil && reported.StartedAt != nil:
		run.Phase, run.Operation, run.Since = RunRunning, operationOf(reported), reported.StartedAt
	case reported != nil && known:
		run.Phase, run.Operation, run.Since = RunQueued, operationOf(reported), reported.QueuedAt
	case reported != nil:
		run.Phase, run.Operation, run.Since = RunActive, operationOf(reported), reported.QueuedAt
	case intent != nil:
		run.Phase, run.Operation, run.Since = RunUnsettled, intent.Operation, &intent.Since
	}
	run.noteWait(reported)
	return run
}

// noteWait notes what a run waits for, which the Machine's status alone says. One that has begun waits in the cluster.
func (r *MachineRun) noteWait(reported *v1alpha1.RunStatus) {
	if reported == nil || reported.WaitsFor == "" || operationOf(reported) != r.Operation {
		return
	}
	begun := reported.StartedAt != nil
	switch {
	case begun && r.Phase == RunRunning:
		r.Phase, r.WaitsFor = RunWaiting, reported.WaitsFor
	case !begun && (r.Phase == RunQueued || r.Phase == RunActive):
		r.WaitsFor = reported.WaitsFor
	}
}

// ReadLastRun returns the last run that a state records; nil for none.
func ReadLastRun(meta map[string]string) (*LastRun, error) {
	last, err := record.ReadLastRun(meta)
	if last == nil {
		return nil, err
	}
	return &LastRun{
		Operation: string(last.Operation), Run: last.Run, Began: metav1.NewTime(last.Began), Ended: metav1.NewTime(last.Ended),
		Result: last.Result, Message: last.Message, Reason: last.Reason,
	}, err
}

// is reports whether the run in a status is this one, which has ended.
func (r *LastRun) is(reported *v1alpha1.RunStatus) bool {
	return r != nil && reported.QueuedAt != nil && r.Operation == operationOf(reported) && !r.Began.Before(reported.QueuedAt)
}

// operationOf returns the operation as states have it.
func operationOf(reported *v1alpha1.RunStatus) string {
	if reported.Operation == v1alpha1.RunDriftCheck {
		return "drift"
	}
	return strings.ToLower(string(reported.Operation))
}

// Objects implements print.Report.
func (l *RunList) Objects() []metav1.PartialObjectMetadata {
	var objects []metav1.PartialObjectMetadata
	for i := range l.Items {
		objects = append(objects, print.MachineReference(l.Items[i].Namespace, l.Items[i].Machine))
	}
	return objects
}

// Rows implements print.Table.
func (l *RunList) Rows(wide bool) [][]string {
	rows := [][]string{{"MACHINE", "RUN", "PHASE", "SINCE", "LAST", "RESULT", "ENDED", "TOOK", "DETAILS"}}
	for i := range l.Items {
		r := &l.Items[i]
		row := []string{
			r.Machine, cmp.Or(r.Operation, "-"), cmp.Or(string(r.Phase), "-"), print.AgeOf(r.Since, l.now), "-", "-", "-", "-", r.Problem,
		}
		if last := r.Last; last != nil {
			row[4], row[5], row[6], row[7] = last.Operation, last.Result, print.Age(last.Ended.Time, l.now), took(last)
			row[8] = strings.TrimPrefix(r.Problem+"; "+last.Message, "; ")
		}
		if r.WaitsFor != "" {
			row[8] = strings.TrimPrefix(r.Problem+"; "+r.WaitsFor, "; ")
		}
		if strings.Trim(row[8], "; ") == "" {
			row[8] = r.why()
		}
		row[8] = print.Cut(strings.TrimSuffix(row[8], "; "), wide)
		rows = append(rows, row)
	}
	return rows
}

// why returns the reason of the run that goes on, or else of the last one.
func (r *MachineRun) why() string {
	if r.Reason == "" && r.Last != nil {
		return r.Last.Reason
	}
	return r.Reason
}

func took(last *LastRun) string {
	return last.Ended.Sub(last.Began.Time).Round(100 * time.Millisecond).String()
}

// String describes the run in a line.
func (r *LastRun) String() string {
	return fmt.Sprintf("%s, %s, began %s, took %s", r.Operation, r.Result, r.Began.UTC().Format(time.RFC3339), took(r))
}
