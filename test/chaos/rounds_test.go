//go:build chaos

package chaos

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

const root = "../.."

// setting returns the value of an environment variable, or what stands for it.
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
		Lease: time.Duration(setting(t, "LEASE", 12)) * time.Second, Patience: time.Duration(setting(t, "PATIENCE", 90)) * time.Second,
		Limits: Limits{On: []Workload{Kubemark, OpenStack}, Away: time.Duration(setting(t, "AWAY", 8)) * time.Second, Only: only}, Verbose: os.Getenv("VERBOSE") != "",
	}
	if _, err := os.Stat(filepath.Join(root, "bin", "pulumi")); err == nil {
		o.Limits.On = append(o.Limits.On, KubemarkPulumi)
	} else {
		fmt.Println("bin/pulumi is not there: no Machine runs on Pulumi; run 'make tools'")
	}
	return o
}

func TestRounds(t *testing.T) {
	log.SetLogger(logr.Discard()) // clients warn of what is part of the rounds
	klog.SetLogger(logr.Discard())
	o := options(t)
	dir, err := os.MkdirTemp("", "machine-iac-chaos-")
	if err != nil {
		t.Fatal(err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil { // as the kernel names a process's folder
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
	fmt.Printf("the cluster and two managers run after %.1fs, in %s\n", time.Since(w.begun).Seconds(), dir)
	tally := playAll(t, w)
	fmt.Printf("\n%s\n", tally.Table())
	if os.Getenv("WRITE") != "" {
		if err := WriteTable(filepath.Join(root, "docs", "reliability.md"), tally.Table()); err != nil {
			t.Error(err)
		}
	}
}

func playAll(t *testing.T, w *world) *Tally {
	tally := &Tally{}
	first := setting(t, "SEED", 1)
	for seed := first; seed < first+setting(t, "ROUNDS", 20); seed++ {
		plan := NewPlan(uint64(seed), w.options.Limits)
		outcome := w.play(t.Context(), plan)
		tally.Add(outcome)
		fmt.Println(Line(outcome))
		if len(outcome.Violations) == 0 {
			continue
		}
		t.Errorf("seed %d failed; play it again with: make chaos ROUNDS=1 SEED=%[1]d", seed)
		for _, v := range outcome.Violations {
			fmt.Printf("    %.600s\n", v)
		}
		for _, step := range plan.Steps {
			fmt.Printf("      %s\n", step)
		}
		for _, note := range outcome.Notes {
			fmt.Printf("      %.300s\n", note)
		}
		keepLogs(w, seed)
	}
	return tally
}

// keepLogs keeps the managers' logs as they were when a round had failed.
func keepLogs(w *world, seed int) {
	for _, r := range w.replicas {
		_ = exec.Command("cp", r.log(), fmt.Sprintf("%s.seed-%d", r.log(), seed)).Run() // the whole log is there too
	}
}
