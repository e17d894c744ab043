package runs

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// depths returns how many runs of an engine wait and run.
func depths(t *testing.T, metrics *Metrics, engine string, operation Operation) (waiting, running float64) {
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
				found[family.GetName()] = series.GetGauge().GetValue()
			}
		}
	}
	return found["machine_iac_runs_queued"], found["machine_iac_runs_running"]
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
