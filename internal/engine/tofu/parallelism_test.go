package tofu

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/machine-iac/machine-iac-operator/internal/engine/batch"
)

// TestABatchHasTwoOperationsForEachMachine reads the flag from the arguments of every operation of the engine.
func TestABatchHasTwoOperationsForEachMachine(t *testing.T) {
	calls := filepath.Join(t.TempDir(), "calls")
	e := newEngine(t, func(o *Options) {
		o.Binary = scripted(t, `echo "$*" >>`+calls+`
echo '{"@level":"info","@message":"done","type":"change_summary","changes":{"operation":"plan"}}'`)
	})
	prepare(t, e, moduleOf("m", ""))
	for machines, want := range map[int]int{0: 10, 1: 10, 5: 10, 6: 12, 30: 60} {
		t.Run(fmt.Sprint(machines), func(t *testing.T) {
			run := RunSpec{ID: fmt.Sprint("r", machines), Module: "m", Backend: Backend{Address: "http://127.0.0.1:1"}}
			if machines > 0 {
				run.Batch = &Batch{Layout: batch.Apart(machines), Folder: batch.Folder}
			}
			w := open(t, e, run)
			if err := os.RemoveAll(calls); err != nil {
				t.Fatal(err)
			}
			for name, operate := range map[string]func() error{
				"plan":       func() error { _, err := w.Plan(t.Context(), PlanOptions{}); return err },
				"look":       func() error { _, err := w.ReadInstances(t.Context(), []string{"x.this"}); return err },
				"apply":      func() error { _, err := w.Apply(t.Context()); return err },
				"apply plan": func() error { _, err := w.ApplyPlan(t.Context()); return err },
				"destroy":    func() error { _, err := w.Destroy(t.Context()); return err },
			} {
				if err := operate(); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			content, err := os.ReadFile(calls)
			if err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(strings.TrimSpace(string(content)), "\n")
			if len(lines) != 5 {
				t.Errorf("got %d calls, want 5:\n%s", len(lines), content)
			}
			for _, line := range lines {
				if flag := fmt.Sprintf(" -parallelism=%d ", want); !strings.Contains(line, flag) {
					t.Errorf("got %q, want%s", line, flag)
				}
			}
		})
	}
}
