package inspect

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/state"
	"github.com/machine-iac/machine-iac-operator/test/golden"
	"github.com/machine-iac/machine-iac-operator/test/printing"
)

// withRuns is a cluster with a run in each phase.
func withRuns() *Facts {
	facts := withStates()
	for i := range facts.States {
		head := &facts.States[i]
		switch head.Meta["machine"] {
		case "workers-a":
			head.Meta["last-run"] = `{"operation":"drift","run":"r-0","began":"2026-03-01T11:30:00Z","ended":"2026-03-01T11:30:02.46Z","result":"Succeeded"}`
		case "workers-b": // its destroy runs, and one has failed before
			head.Meta["last-run"] = `{"operation":"destroy","run":"r-0","began":"2026-03-01T11:58:00Z","ended":"2026-03-01T11:59:00Z","result":"Failed","message":"no way to the vCenter; it is tried again"}`
		}
	}
	queued := ago(20 * time.Second)
	withProviderStatus(func(s *v1alpha1.TerraformMachineProviderStatus) {
		s.Run = &v1alpha1.RunStatus{Operation: v1alpha1.RunCreate, QueuedAt: &queued}
	})(&facts.Machines[4])
	edited := facts.Machines[3].DeepCopy()
	edited.Name, edited.UID = "edited", uidOf("edited")
	facts.Machines = append(facts.Machines, *edited)
	return facts
}

func TestRuns(t *testing.T) {
	list := Runs(withRuns(), false)
	for format, extension := range extensions {
		t.Run(format, func(t *testing.T) { golden.Check(t, "testdata/runs."+extension, printing.As(t, format, list)) })
	}
	t.Run("that are active", func(t *testing.T) {
		var got []string
		for _, run := range Runs(withRuns(), true).Items {
			got = append(got, string(run.Phase)+" "+run.Operation+" "+run.Machine)
		}
		if diff := cmp.Diff([]string{"Running destroy workers-b", "Queued create new", "Unsettled create workers-c"}, got); diff != "" {
			t.Errorf("runs (-want +got):\n%s", diff)
		}
	})
	t.Run("where states may not be read", func(t *testing.T) {
		facts := withRuns()
		facts.States, facts.StatesKnown = nil, false
		list := Runs(only(facts, "workers-b", "workers-a"), false)
		if list.Items[0].Phase != RunActive || list.Items[0].Operation != "destroy" || list.Items[0].Since != nil || list.Items[1].Phase != RunNone || list.Items[1].Last != nil {
			t.Errorf("it returns %+v", list)
		}
	})
	t.Run("that are known to have begun, whatever of their states may be read", func(t *testing.T) {
		began := ago(5 * time.Second)
		for _, known := range []bool{true, false} {
			facts := withRuns()
			facts.States, facts.StatesKnown = nil, known
			begun := &only(facts, "new").Machines[0]
			withProviderStatus(func(s *v1alpha1.TerraformMachineProviderStatus) {
				s.Run = &v1alpha1.RunStatus{Operation: v1alpha1.RunCreate, QueuedAt: &began, StartedAt: &began}
			})(begun)
			list := Runs(facts, true)
			if list.Items[0].Phase != RunRunning || !list.Items[0].Since.Equal(&began) {
				t.Errorf("where they are known: %t; it returns %+v", known, list)
			}
			if item := facts.machineItem(begun); !slices.Contains(item.Children[0].Notes, "Create running for 5s") {
				t.Errorf("the tree notes %q", item.Children[0].Notes)
			}
		}
	})
	t.Run("of all namespaces", func(t *testing.T) {
		facts := withRuns()
		facts.Namespace = ""
		if got := printing.As(t, "", Runs(only(facts, "alone"), false)); !strings.HasPrefix(got, "NAMESPACE               MACHINE ") || !strings.Contains(got, "\nopenshift-machine-api   alone ") {
			t.Errorf("it prints\n%s", got)
		}
	})
	t.Run("with the reason of what is unsettled, and of what ended well", func(t *testing.T) {
		facts := withRuns()
		for i := range facts.States {
			facts.States[i].Meta = maps.Clone(facts.States[i].Meta)
			if facts.States[i].Meta["intent"] != "" {
				facts.States[i].Meta["intent"] = `{"operation":"create","run":"r","since":"2026-01-02T03:04:05Z","reason":"nothing was created yet"}`
			}
			if facts.States[i].Meta["last-run"] != "" {
				facts.States[i].Meta["last-run"] = `{"operation":"update","run":"r","began":"2026-01-02T03:04:05Z","ended":"2026-01-02T03:04:06Z","result":"Succeeded","reason":"other inputs"}`
			}
		}
		if got := printing.As(t, "", Runs(facts, false)); !strings.Contains(got, "nothing was created yet") || !strings.Contains(got, "other inputs") {
			t.Errorf("it prints\n%s", got)
		}
	})
	t.Run("a drift check in the words of states", func(t *testing.T) {
		if got := operationOf(&v1alpha1.RunStatus{Operation: v1alpha1.RunDriftCheck}); got != "drift" {
			t.Errorf("it is %q", got)
		}
	})
	t.Run("one that has ended, though the Machine does not say so yet", func(t *testing.T) {
		machine, began := everything().Machines[0], ago(5*time.Second)
		head := &state.Head{Meta: map[string]string{"last-run": `{"operation":"create","run":"r","began":"2026-03-01T11:59:56Z","ended":"2026-03-01T11:59:59Z","result":"Succeeded"}`}}
		for queued, want := range map[time.Duration]RunPhase{5 * time.Second: RunNone, 2 * time.Second: RunRunning} {
			asked := ago(queued)
			withProviderStatus(func(s *v1alpha1.TerraformMachineProviderStatus) {
				s.Run = &v1alpha1.RunStatus{Operation: v1alpha1.RunCreate, QueuedAt: &asked, StartedAt: &began}
			})(&machine)
			if run := runOf(&machine, head, true); run.Phase != want || run.Last == nil {
				t.Errorf("asked for %s ago, it returns %+v", queued, run)
			}
		}
	})
	t.Run("one that waits in the queue of its Job", func(t *testing.T) {
		facts, began := only(withRuns(), "alone"), ago(time.Minute)
		withProviderStatus(func(s *v1alpha1.TerraformMachineProviderStatus) {
			s.Run = &v1alpha1.RunStatus{Operation: v1alpha1.RunUpdate, QueuedAt: &began, StartedAt: &began, WaitsFor: "Job a is in queue"}
		})(&facts.Machines[0])
		head := &state.Head{Lock: &state.Lock{Operation: "update", Since: began.Time}}
		if run := runOf(&facts.Machines[0], head, true); run.Phase != RunWaiting || run.WaitsFor != "Job a is in queue" {
			t.Errorf("it returns %+v", run)
		}
		if got := printing.As(t, "", Runs(facts, false)); !strings.Contains(got, "Waiting") || !strings.Contains(got, "Job a is in queue") {
			t.Errorf("it prints\n%s", got)
		}
		head.Lock.Operation = "destroy" // another one by now
		if run := runOf(&facts.Machines[0], head, true); run.Phase != RunRunning || run.WaitsFor != "" {
			t.Errorf("it returns %+v", run)
		}
	})
	t.Run("one that waits for an infrastructure that throttles", func(t *testing.T) {
		facts, asked := only(withRuns(), "alone"), ago(time.Minute)
		withProviderStatus(func(s *v1alpha1.TerraformMachineProviderStatus) {
			s.Run = &v1alpha1.RunStatus{Operation: v1alpha1.RunUpdate, QueuedAt: &asked, WaitsFor: "throttled"}
		})(&facts.Machines[0])
		if run := runOf(&facts.Machines[0], nil, true); run.Phase != RunQueued || run.WaitsFor != "throttled" {
			t.Errorf("it returns %+v", run)
		}
		begun := &state.Head{Lock: &state.Lock{Operation: "update", Since: asked.Time}}
		if run := runOf(&facts.Machines[0], begun, true); run.Phase != RunRunning || run.WaitsFor != "" {
			t.Errorf("once it runs it returns %+v", run)
		}
	})
	t.Run("a last run that somebody has edited", func(t *testing.T) {
		run := runOf(&everything().Machines[0], &state.Head{Meta: map[string]string{"last-run": "{"}}, true)
		if run.Last != nil || !strings.HasPrefix(run.Problem, "reading annotation machine-iac.io/last-run") {
			t.Errorf("it returns %+v", run)
		}
	})
}
