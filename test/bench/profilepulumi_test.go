//go:build bench

package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	pprof "github.com/google/pprof/profile"

	"github.com/machine-iac/machine-iac-operator/test/process"
)

// pulumiParts are what the CLI of Pulumi spends its time on.
var pulumiParts = []part{
	{"collecting garbage", []string{"runtime.gcBgMarkWorker", "runtime.gcAssistAlloc", "runtime.bgsweep", "runtime.gcStart", "runtime.gcMarkDone"}},
	{"deriving the key", []string{"pbkdf2.Key"}},
	{"asking for the key", []string{"secrets/cloud."}},
	{"checkpoints", []string{"backend.(*SnapshotManager)", "pkg/v3/resource/stack.", "backend/diy.", "engine.(*Journal"}},
	{"events", []string{"backend/display.", "engine.(*eventEmitter)", "backend.(*localWriter)", "engine.makeStepEvent"}},
	{"calls of plugins", []string{"resource/plugin.", "sdk/v3/proto/go."}},
	{"calls by plugins", []string{"grpc.(*Server)", "http2Server"}},
	{"plan and steps", []string{"resource/deploy", "pkg/v3/engine."}},
	{"reading the program", []string{"workspace.LoadProject", "cmd/pulumi/config.", "workspace.GetPluginPath"}},
	{"initialising the CLI", []string{"main.main"}},
}

// profiling is what the CLI spends on being profiled.
var profiling = part{"being profiled", []string{"runtime.traceAdvance", "runtime.(*trace", "runtime/trace.", "cmdutil.InitProfiling", "cmdutil.CloseProfiling"}}

// profilePulumi writes a program that starts the CLI, which writes a profile while there is a file that says so.
func (p *profiler) profilePulumi(t *testing.T, program, real string) {
	t.Helper()
	script := fmt.Sprintf("#!/bin/sh\nif [ -e '%s' ]; then exec '%s' --profiling '%s'/engines/p \"$@\"; fi\nexec '%s' \"$@\"\n", p.switchFile(), real, p.dir, real)
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil { //nolint:gosec // it is a program
		t.Fatal(err)
	}
}

func (p *profiler) switchFile() string { return filepath.Join(p.dir, "profile-pulumi") }

// pulumi has every Machine of a stack go through every operation twice: once to measure what processes spend, and once to see on what the CLI
// spends its part, since that takes more while it is looked at.
func (p *profiler) pulumi(t *testing.T, c contender) *costTable {
	t.Helper()
	table := newCostTable()
	spent := map[operation]map[string]pulumiCost{}
	for _, o := range operations {
		spent[o] = p.pulumiProcesses(t, c, o)
	}
	if err := os.WriteFile(p.switchFile(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, o := range operations {
		p.clear(t)
		p.operate(t, c, o, *each)
		samples := p.write(t, readProfiles(t, filepath.Join(p.dir, "engines", "*.cpu")), "pulumi-"+string(o))
		table.add(o, pulumiCLI, spent[o][pulumiCLI].all, without(samples, profiling), pulumiParts)
		for _, name := range pulumiProcesses[1:] {
			table.add(o, name, spent[o][name].all, nil, nil)
		}
		table.add(o, "manager", spent[o]["manager"].all, spent[o]["manager"].samples, managerParts)
	}
	if err := os.Remove(p.switchFile()); err != nil {
		t.Fatal(err)
	}
	return table
}

// pulumiProcesses measures what each process of an operation spends.
func (p *profiler) pulumiProcesses(t *testing.T, c contender, o operation) map[string]pulumiCost {
	t.Helper()
	ctx, stop := context.WithCancel(contextOf(t))
	defer stop()
	manager := p.profileManager(ctx, t)
	before, beforeAll := p.split(), process.CPU(p.manager.PID())
	processes := newMeter(p.manager.PID())
	p.operate(t, c, o, *each)
	seen := processes.end(pulumiProcess)
	after, afterAll := p.split(), process.CPU(p.manager.PID())
	stop()
	spent := map[string]pulumiCost{"manager": {all: after.manager - before.manager, samples: p.write(t, manager(), "manager-pulumi-"+string(o))}}
	rest := afterAll - beforeAll - spent["manager"].all
	for _, name := range pulumiProcesses[:len(pulumiProcesses)-1] {
		spent[name] = pulumiCost{all: seen[name]}
		rest -= seen[name]
	}
	spent[pulumiRest] = pulumiCost{all: max(rest, 0)}
	return spent
}

// without returns a profile without the samples of a part.
func without(samples *pprof.Profile, left part) *pprof.Profile {
	kept := samples.Copy()
	kept.Sample = nil
	for _, sample := range samples.Sample {
		if partOf(sample, []part{left}) != left.title {
			kept.Sample = append(kept.Sample, sample)
		}
	}
	return kept
}

// pulumiCost is what a process has spent, and on what.
type pulumiCost struct {
	all     time.Duration
	samples *pprof.Profile
}
