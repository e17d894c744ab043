package runs

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	clocktesting "k8s.io/utils/clock/testing"
)

// depths returns how many runs of an engine wait and run.
func depths(t *testing.T, metrics *Metrics, engine string, operation Operation) (waiting, running float64) {
	t.Helper()
	found := gaugesOf(t, metrics, engine, operation)
	return found["machine_iac_runs_queued"], found["machine_iac_runs_running"]
}

// gaugesOf returns what the series of an engine and an operation show, by their names: of
// histograms how often something was observed.
func gaugesOf(t *testing.T, metrics *Metrics, engine string, operation Operation) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(metrics)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]float64{}
	for _, family := range families {
		for _, series := range family.GetMetric() {
			if labels := series.GetLabel(); labels[0].GetValue() == engine && labels[1].GetValue() == string(operation) {
				found[family.GetName()] += series.GetGauge().GetValue() + float64(series.GetHistogram().GetSampleCount())
			}
		}
	}
	return found
}

func TestTheOldestRunThatWaitsIsShown(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC))
	metrics := NewMetrics("one")
	pool := New(Options{Metrics: metrics, Clock: clock})
	oldest := func(engine string, operation Operation) float64 {
		return gaugesOf(t, metrics, engine, operation)["machine_iac_run_oldest_queued_seconds"]
	}
	for _, name := range []string{"a", "b"} {
		r := request(name, "group", Create, &script{})
		r.Engine = "one"
		submit(t, pool, r)
		clock.SetTime(clock.Now().Add(time.Minute))
	}
	if create, update := oldest("one", Create), oldest("one", Update); create != 120 || update != 0 {
		t.Errorf("the oldest create has waited for %v s, the oldest update for %v, want 120 and 0", create, update)
	}
	pool.admit() // starts the first one
	if got := oldest("one", Create); got != 60 {
		t.Errorf("the oldest create that still waits has done so for %v s, want 60", got)
	}
	pool.admit()
	if got := oldest("one", Create); got != 0 {
		t.Errorf("no create waits, and the oldest has done so for %v s", got)
	}
}

func TestTheSeriesOfAnEngineAreThereBeforeItsFirstRun(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(NewMetrics("one"))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, family := range families {
		got[family.GetName()] = len(family.GetMetric())
	}
	operations := len(precedence)
	want := map[string]int{
		"machine_iac_runs_queued": operations, "machine_iac_runs_running": operations, "machine_iac_run_queue_seconds": operations,
		"machine_iac_run_oldest_queued_seconds": operations, "machine_iac_run_duration_seconds": 2 * operations,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("series by name (-want +got):\n%s", diff)
	}
}

func TestRunsAreCountedWhereTheyAreUnderTheirEngine(t *testing.T) {
	metrics := NewMetrics("one", "two")
	pool := New(Options{MaxConcurrent: 1, Metrics: metrics})
	want := func(when, engine string, operation Operation, waiting, running float64) {
		t.Helper()
		if w, r := depths(t, metrics, engine, operation); w != waiting || r != running {
			t.Errorf("%s: %v wait and %v run to %s with engine %s, want %v and %v", when, w, r, operation, engine, waiting, running)
		}
	}
	first := &script{name: "a", log: &journal{}, block: make(chan struct{}), started: make(chan struct{})}
	for name, task := range map[string]*script{"a": first, "b": {name: "b", log: &journal{}}} {
		r := request(name, "group", Create, task)
		if r.Engine = "one"; name == "b" {
			r.Engine, r.Operation = "two", Update
		}
		submit(t, pool, r)
	}
	want("before the start", "one", Create, 1, 0)
	want("before the start", "two", Update, 1, 0)
	stop := start(t, pool)
	<-first.started
	want("while the first runs", "one", Create, 0, 1)
	want("while the first runs", "two", Update, 1, 0)
	replaced := request("b", "group", Destroy, &script{name: "b2", log: &journal{}})
	replaced.Engine = "two"
	submit(t, pool, replaced)
	want("after a destroy took its place", "two", Update, 0, 0)
	want("after a destroy took its place", "two", Destroy, 1, 0)
	close(first.block)
	expectWakes(t, pool, 2)
	want("at the end", "one", Create, 0, 0)
	want("at the end", "two", Destroy, 0, 0)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
}

func TestRunsAreCountedByHowTheyCameToTheirTurn(t *testing.T) {
	metrics := NewMetrics()
	pool := New(Options{MaxConcurrent: 4, MaxPerGroup: 1, Metrics: metrics})
	for _, name := range []string{"a", "b"} {
		submit(t, pool, request(name, "group", Create, &script{}))
		pool.admit()
	}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(metrics)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range families {
		for _, series := range family.GetMetric() {
			if family.GetName() == "machine_iac_run_picks_total" {
				got[series.GetLabel()[2].GetValue()] = series.GetCounter().GetValue()
			}
		}
	}
	if got[pickInOrder] != 1 || got[pickLifted] != 1 {
		t.Errorf("picks %v, want one in turn and one above the cap", got)
	}
}
