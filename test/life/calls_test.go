//go:build life

package life

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/machine-iac/machine-iac-operator/hack/lab"
	benchmarks "github.com/machine-iac/machine-iac-operator/test/bench/page"
	"github.com/machine-iac/machine-iac-operator/test/calls"
)

const (
	callsTitle = "Calls of the infrastructure"
	callsText  = "Requests of a Machine of the module's example, alone and as one of three at a time, as `make life`\n" +
		"counts them at the simulations. Logins of the first are apart, and polls of operations are left out.\n" +
		"The goal is at most %d to create, %d to check and %d to destroy.\n\n" +
		"| platform | create | one of 3 | check | one of 3 | destroy | one of 3 | logins |\n|---|---|---|---|---|---|---|---|\n"
	// calm is how long nothing is asked once an operation is over.
	calm = 3 * time.Second
)

// limits are the most calls of a create, a check and a destroy.
type limits struct{ create, check, destroy int }

var goal = limits{12, 6, 8}

// exception is what a platform takes in place of the goal.
type exception struct {
	limits
	why string
}

// counted counts requests while nothing else asks: there are no other Machines and no inventory.
func counted(w *world, t *testing.T) {
	w.scale(t, 0)
	w.emptied(t, w.names)
	defer w.quiet(t)()
	one, three := w.cost(t, 1), w.cost(t, replicas)
	row := []string{w.platform.name}
	most := goal
	if w.platform.above != nil {
		most = w.platform.above.limits
	}
	for i, limit := range []int{most.create, most.check, most.destroy} {
		row = append(row, fmt.Sprint(one.calls[i]), fmt.Sprintf("%.1f", float64(three.calls[i])/replicas))
		if one.calls[i] > limit || three.calls[i] > limit*replicas {
			t.Errorf("create, check and destroy take %v calls, and %v of %d; want at most %+v for each",
				one.calls, three.calls, replicas, most)
		}
	}
	if *quick {
		return
	}
	if err := writeCalls(append(row, fmt.Sprint(one.logins))); err != nil {
		t.Error(err)
	}
}

// quiet has a manager without inventories lead, and returns a function that starts the former one again. Machines that
// are older than its term would be looked up.
func (w *world) quiet(t *testing.T) func() {
	t.Helper()
	before := w.manager
	if err := before.Stop(stopTimeout); err != nil {
		t.Fatal(err)
	}
	var err error
	if w.manager, err = before.Restart(t.Context(), "--inventory-interval=0"); err != nil {
		t.Fatal(err)
	}
	w.until(t, "the manager leads", func(context.Context) error {
		if w.sum(t, "leader_election_master_status") == 0 {
			return errors.New("it does not")
		}
		return nil
	})
	time.Sleep(calm)
	return func() {
		if err := w.manager.Stop(stopTimeout); err != nil {
			t.Error(err)
		}
		w.manager = before
		w.again()
	}
}

// sum adds up a series of the manager's metrics.
func (w *world) sum(t *testing.T, series string) float64 {
	t.Helper()
	token, err := w.lab.MetricsToken(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, text, err := w.manager.Scrape(t.Context(), token)
	if err != nil {
		t.Fatal(err)
	}
	return lab.Sum(text, series)
}

// cost is the calls of a create, a check and a destroy, and the logins of all.
type cost struct {
	calls  [3]int
	logins int
}

// cost has Machines created, checked and destroyed at a time.
func (w *world) cost(t *testing.T, count int) (sum cost) {
	t.Helper()
	var names []string
	for i, operation := range []func(){
		func() { names = w.running(t, count) },
		func() { w.clean(t, names...) },
		func() {
			w.scale(t, 0)
			w.emptied(t, names)
		},
	} {
		if i == 1 {
			w.clean(t, names...) // guests may have reported addresses since
		}
		before := w.settled(t)
		operation()
		after := w.settled(t)
		for _, name := range slices.Sorted(maps.Keys(after)) {
			more := after[name] - before[name]
			switch {
			case more == 0:
				continue
			case strings.HasPrefix(name, calls.Login):
				sum.logins += more
			case !strings.HasPrefix(name, calls.Poll):
				sum.calls[i] += more
			}
			t.Logf("%s of %d: %3d %s", []string{"create", "check", "destroy"}[i], count, more, name)
		}
	}
	return sum
}

func (w *world) emptied(t *testing.T, names []string) {
	t.Helper()
	for _, name := range names {
		w.gone(t, name)
	}
}

// settled returns the calls so far once nothing is asked any more.
func (w *world) settled(t *testing.T) (made map[string]int) {
	t.Helper()
	w.until(t, "nothing is asked", func(ctx context.Context) error {
		before := made
		var err error
		if made, err = w.calls(ctx); err == nil && !maps.Equal(made, before) {
			err = fmt.Errorf("there are %v, and were %v", made, before)
			time.Sleep(calm)
		}
		return err
	})
	return made
}

// writeCalls puts a platform's row into docs/benchmarks.md, and leaves those of other platforms.
func writeCalls(row []string) error {
	file := filepath.Join(root, "docs", "benchmarks.md")
	before, err := benchmarks.Read(file, callsTitle)
	if err != nil {
		return err
	}
	rows := map[string]string{row[0]: "| " + strings.Join(row, " | ") + " |\n"}
	for line := range strings.Lines(before) {
		if cells := strings.Split(line, " | "); len(cells) == len(row) && strings.TrimPrefix(cells[0], "| ") != row[0] {
			rows[strings.TrimPrefix(cells[0], "| ")] = strings.TrimSpace(line) + "\n"
		}
	}
	text, reasons := &strings.Builder{}, &strings.Builder{}
	fmt.Fprintf(text, callsText, goal.create, goal.check, goal.destroy)
	for _, one := range platforms() {
		text.WriteString(rows[one.name])
		if one.above != nil {
			most := one.above.limits
			fmt.Fprintf(reasons, "- %s, at most %d, %d and %d: %s\n", one.name, most.create, most.check, most.destroy, one.above.why)
		}
	}
	return benchmarks.Write(file, benchmarks.Section{Title: callsTitle, Text: text.String() + "\n" + reasons.String()})
}
