//go:build chaos

package chaos

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	root = "../.."
	// most limits the reported violations of a round.
	most = 12
)

// setting returns the value of an environment variable, or a default.
func setting(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	value, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s is %q, which is no number", name, text)
	}
	return value
}

func options(t *testing.T) Options {
	t.Helper()
	only, err := ParseKinds(os.Getenv("FAULTS"))
	if err != nil {
		t.Fatalf("FAULTS: %v", err)
	}
	o := Options{
		Lease:    time.Duration(setting(t, "LEASE", 12)) * time.Second,
		Patience: time.Duration(setting(t, "PATIENCE", 120)) * time.Second,
		Limits: Limits{On: []Workload{Kubemark, OpenStack}, Away: time.Duration(setting(t, "AWAY", 6)) * time.Second,
			Only: only}, Verbose: os.Getenv("VERBOSE") != "",
	}
	if _, err := os.Stat(filepath.Join(root, "bin", "pulumi")); err == nil {
		o.Limits.On = append(o.Limits.On, KubemarkPulumi)
	} else {
		fmt.Println("bin/pulumi is not there: no Machine runs on Pulumi; run 'make tools'")
	}
	return o
}

// TestRounds plays rounds on several clusters in parallel, because rounds mostly wait.
func TestRounds(t *testing.T) {
	log.SetLogger(logr.Discard()) // clients warn of injected faults
	klog.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(t.Context(), os.Interrupt, syscall.SIGTERM) // stop what runs
	defer stop()
	o := options(t)
	first, rounds := setting(t, "SEED", 1), setting(t, "ROUNDS", 20)
	record, err := OpenRecord(os.Getenv("RECORD"))
	if err != nil {
		t.Fatal(err)
	}
	seeds := make(chan uint64, rounds)
	for n := range rounds {
		if seed := uint64(first + n); !record.Passed(seed) {
			seeds <- seed
		}
	}
	close(seeds)
	began, version := time.Now(), managerVersion(t)
	last := began.Add(time.Duration(setting(t, "MINUTES", 24*60)) * time.Minute)
	var mu sync.Mutex
	var lanes sync.WaitGroup
	for range min(setting(t, "LANES", 5), len(seeds)) {
		w := open(t, o)
		lanes.Go(func() {
			for seed := range seeds {
				if ctx.Err() != nil || time.Now().After(last) {
					return
				}
				outcome := w.play(ctx, NewPlan(seed, o.Limits))
				if ctx.Err() != nil {
					return // the round was interrupted and has no result
				}
				mu.Lock()
				if err := record.Add(outcome, version); err != nil {
					t.Error(err)
				}
				logRound(t, w, outcome)
				mu.Unlock()
			}
		})
	}
	lanes.Wait()
	if ctx.Err() != nil {
		t.Fatal("interrupted")
	}
	table := record.Tally().Table()
	fmt.Printf("\n%s\nall took %.0f s\n", table, time.Since(began).Seconds())
	if os.Getenv("WRITE") != "" {
		if err := WriteTable(filepath.Join(root, "docs", "reliability.md"), table); err != nil {
			t.Error(err)
		}
	}
}

// managerVersion returns the manager's version.
func managerVersion(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(),
		filepath.Join(root, "bin", "machine-controllers"), "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// open opens a world and closes it when the test ends. A failed test keeps its logs.
func open(t *testing.T, o Options) *world {
	t.Helper()
	dir, err := os.MkdirTemp("", "machine-iac-chaos-")
	if err != nil {
		t.Fatal(err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil { // the kernel reports resolved folders
		t.Fatal(err)
	}
	w, err := openWorld(t.Context(), root, dir, o)
	t.Cleanup(func() {
		if err := w.close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			fmt.Printf("all logs are kept in %s\n", dir)
		} else if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("a cluster and two managers run after %.1fs, in %s\n", time.Since(w.begun).Seconds(), dir)
	return w
}

func logRound(t *testing.T, w *world, outcome Outcome) {
	fmt.Println(Line(outcome))
	if len(outcome.Violations) == 0 {
		return
	}
	t.Errorf("seed %d failed; play it again with: make chaos ROUNDS=1 SEED=%[1]d", outcome.Plan.Seed)
	for i, v := range outcome.Violations {
		if i == most {
			fmt.Printf("    and %d more\n", len(outcome.Violations)-most)
			break
		}
		fmt.Printf("    %.600s\n", v)
	}
	for _, step := range outcome.Plan.Steps {
		fmt.Printf("      %s\n", step)
	}
	for _, note := range outcome.Notes {
		fmt.Printf("      %.300s\n", note)
	}
	keepLogs(w, outcome.Plan.Seed)
}

// keepLogs copies the managers' logs after a failed round.
func keepLogs(w *world, seed uint64) {
	for _, r := range w.replicas {
		_ = exec.Command("cp", r.log(), fmt.Sprintf("%s.seed-%d", r.log(), seed)).Run() // the full log remains
	}
}
