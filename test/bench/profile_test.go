//go:build bench

package bench

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"text/template"
	"time"

	pprof "github.com/google/pprof/profile"

	"github.com/machine-iac/machine-iac-operator/test/bench/page"
	"github.com/machine-iac/machine-iac-operator/test/process"
)

var profiles = flag.String("profiles", "", "folder for CPU profiles of the manager and of the engine, one of each for an operation; empty for none")

// part is one row of the table: samples whose stack has a function with one of these in its name, and is of no part before.
type part struct {
	title string
	has   []string
}

// engineParts are what an engine spends its time on. What comes before its main function, and after, is no part of a profile.
var engineParts = []part{
	{"collecting garbage", []string{"runtime.gcBgMarkWorker", "runtime.gcAssistAlloc", "runtime.bgsweep", "runtime.gcStart", "runtime.gcMarkDone"}},
	{"connecting to providers", []string{"go-plugin.(*Client).Start", "go-plugin.(*Client).Client", "plugins.(*PluginManager)"}},
	{"schema calls", []string{"GetProviderSchema", "getProviderSchema", "ProtoToProviderSchema"}},
	{"other calls of providers", []string{"plugin.(*GRPCProvider)", "plugin6.(*GRPCProvider)", "google.golang.org/grpc."}},
	{"backend round trips", []string{"remote-state/http", "states/remote.", "states/statemgr.", "states/statefile.", "clistate."}},
	{"apply", []string{"tofu.(*Context).Apply", "tofu.(*Context).apply"}},
	{"plan", []string{"tofu.(*Context).Plan", "tofu.(*Context).plan", "tofu.(*Context).Refresh"}},
	{"validate", []string{"tofu.(*Context).Validate"}},
	{"reading the module", []string{"configs.(*Parser)", "configload.", "configs.", "command.(*Meta).loadConfig"}},
	{"walking graphs", []string{"dag.(*Walker)", "tofu.(*Graph)", "lang.(*Scope)"}},
	{"initialising the CLI", []string{"main.realMain"}},
}

// managerParts are what the manager spends its time on.
var managerParts = []part{
	{"collecting garbage", []string{"runtime.gcBgMarkWorker", "runtime.gcAssistAlloc", "runtime.bgsweep", "runtime.gcStart", "runtime.gcMarkDone"}},
	{"metrics that this measures by", []string{"promhttp."}},
	{"webhooks", []string{"webhook/admission."}},
	{"starting processes", []string{"os/exec.(*Cmd).Start", "os.StartProcess", "syscall.forkExec", "provider.Start", "provider.(*Process)"}},
	{"folders of processes in /proc", []string{"workdir.signalIn"}},
	{"folders of runs", []string{"(*Workspace).fill", "(*Workspace).Close", "tofu.(*Workspace).linkModule"}},
	{"output of engines", []string{"tofu.(*stream)", "pulumi.(*reader)", "redact."}},
	{"state in Secrets", []string{"internal/state.", "internal/state/"}},
	{"modules and inputs", []string{"internal/module", "internal/render", "internal/desired"}},
	{"requests to the API server", []string{"client-go/rest.", "controller-runtime/pkg/client."}},
	{"watches", []string{"client-go/tools/cache.", "apimachinery/pkg/watch.", "net/http.(*http2", "net/http.(*persistConn)", "golang.org/x/net/http2."}},
	{"reconciles", []string{"internal/controller.(*Controller", "actuators/iac"}},
}

// profiler collects what one operation costs, process by process.
type profiler struct {
	*race
	dir   string
	pprof string
}

var profileText = template.Must(template.New("profile").Parse(`
CPU milliseconds per Machine, for {{.Each}} kubemark Machines, {{.Parallel}} runs at a time, from the first
reconcile to the settled status ({{.Machine}}). Each run has its own process (` + "`--apply-batch=1`,\n`--drift-batch=1`" + `).
` + "`make profile`" + ` writes this table, and into dist/profile what the processes spend it on.

| process |{{range .Operations}} {{.}} |{{end}}
|---|{{range .Operations}}---|{{end}}
{{range .Rows}}{{.}}
{{end}}`))

// TestProfile measures where the CPU time of operations goes, from reconcile to settle.
func TestProfile(t *testing.T) {
	if *profiles == "" {
		t.Skip("no folder for profiles is given; 'make profile' gives one")
	}
	p := newProfiler(t)
	c := contenders[0]
	for _, c := range contenders {
		p.addSet(t, c.engine, c.examples)
		p.operate(t, c, creating, *parallel) // modules are initialised once, keys are made once
		p.operate(t, c, destroying, *parallel)
	}
	table := newCostTable()
	for _, o := range operations {
		p.one(t, c, o, table)
	}
	names := []string{"create", "update", "check", "destroy"}
	var details, totals []string
	for _, engine := range []struct {
		name string
		rows []string
	}{{"OpenTofu: ", table.rows()}, {"Pulumi: ", p.pulumi(t, contenders[1]).rows()}} {
		for _, row := range engine.rows {
			row = "| " + engine.name + strings.TrimPrefix(row, "| ")
			details = append(details, row)
			if total := strings.Replace(row, " "+inAll+" |", "", 1); total != row {
				totals = append(totals, total)
			}
		}
	}
	text := fmt.Sprintf("| process | part | %s |\n|---|---|---|---|---|---|\n%s\n", strings.Join(names, " | "), strings.Join(details, "\n"))
	if err := os.WriteFile(filepath.Join(p.dir, "table.md"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	writePage(t, page.Section{Title: "Where the time goes", Text: filled(t, profileText, map[string]any{
		"Each": *each, "Parallel": *parallel, "Machine": page.Machine(), "Operations": names, "Rows": totals,
	})})
}

// newProfiler starts a manager that serves profiles, and whose engines write theirs.
func newProfiler(t *testing.T) *profiler {
	t.Helper()
	dir, err := filepath.Abs(*profiles)
	if err != nil {
		t.Fatal(err)
	}
	l := openLab(t)
	p := &profiler{dir: dir, pprof: freeAddress(t)}
	logs := newCallLogs(t, l)
	script := fmt.Sprintf("#!/bin/sh\nTOFU_CPU_PROFILE='%s'/engines/$$ exec '%s' \"$@\"\n", dir, l.Path("bin", "tofu"))
	if err := os.WriteFile(logs.program("tofu"), []byte(script), 0o700); err != nil { //nolint:gosec // it is a program
		t.Fatal(err)
	}
	p.profilePulumi(t, logs.program("pulumi"), l.Path("bin", "pulumi"))
	p.clear(t)
	p.race = &race{logs: logs, api: newAPIServer(t, l), bench: startManager(t, l,
		fmt.Sprintf("--max-concurrent-runs=%d", *parallel), fmt.Sprintf("--max-concurrent-drift-checks=%d", *parallel), "--drift-interval=24h", "--apply-batch=1", "--drift-batch=1",
		"--engine-path="+logs.program("tofu"), "--pulumi="+logs.program("pulumi"), "--pprof-bind-address="+p.pprof,
		"--sandbox=off")} // engines write their profiles beside their folders
	return p
}

// clear makes the folder for the profiles of an operation's engines empty.
func (p *profiler) clear(t *testing.T) {
	t.Helper()
	engines := filepath.Join(p.dir, "engines")
	if err := os.RemoveAll(engines); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(engines, 0o755); err != nil { //nolint:gosec // engines may be another user's
		t.Fatal(err)
	}
}

// one has every Machine go through an operation, and adds what that cost to the table.
func (p *profiler) one(t *testing.T, c contender, o operation, into *costTable) {
	t.Helper()
	p.clear(t)
	ctx, stop := context.WithCancel(contextOf(t))
	defer stop()
	manager := p.profileManager(ctx, t)
	before := p.split()
	p.operate(t, c, o, *each)
	after := p.split()
	stop()
	managers := p.write(t, manager(), "manager-"+string(o))
	engines := p.write(t, readProfiles(t, filepath.Join(p.dir, "engines", "*")), "engine-"+string(o))
	into.add(o, "engine", after.engines-before.engines, engines, engineParts)
	into.add(o, "provider", after.providers-before.providers, nil, nil)
	into.add(o, "manager", after.manager-before.manager, managers, managerParts)
}

// spent is the CPU time of a manager, of its warm providers, and of all else that it has started.
type spent struct{ manager, providers, engines time.Duration }

func (p *profiler) split() spent {
	all := process.Tree(p.manager.PID())
	if len(all) == 0 {
		return spent{}
	}
	s := spent{manager: all[0].Own, engines: all[0].CPU - all[0].Own}
	for _, one := range all[1:] {
		if strings.HasPrefix(one.Program(), "terraform-provider-") {
			s.providers += one.CPU
		} else {
			s.engines += one.CPU
		}
	}
	return s
}

// profileManager profiles the manager in short stretches until ctx ends. The function that it returns waits for the last, and returns all.
func (p *profiler) profileManager(ctx context.Context, t *testing.T) (wait func() []*pprof.Profile) {
	t.Helper()
	done := make(chan []*pprof.Profile, 1)
	whole := contextOf(t)
	go func() {
		var all []*pprof.Profile
		for ctx.Err() == nil {
			text, err := fetch(whole, p.pprof, "/debug/pprof/profile?seconds=2")
			var one *pprof.Profile
			if err == nil {
				one, err = pprof.Parse(strings.NewReader(text))
			}
			if err != nil {
				t.Errorf("profiling the manager: %v", err)
				break
			}
			all = append(all, one)
		}
		done <- all
	}()
	return func() []*pprof.Profile { return <-done }
}

// readProfiles reads the profiles that a pattern names. Those of engines that were cut off are left out.
func readProfiles(t *testing.T, pattern string) []*pprof.Profile {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	var all []*pprof.Profile
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if one, err := pprof.Parse(bytes.NewReader(content)); err == nil {
			all = append(all, one)
		}
	}
	return all
}

// write merges profiles into a file.
func (p *profiler) write(t *testing.T, all []*pprof.Profile, name string) *pprof.Profile {
	t.Helper()
	if len(all) == 0 {
		t.Fatalf("there is no profile for %s", name)
	}
	merged, err := pprof.Merge(all)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := merged.Write(&out); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(p.dir, name+".pprof"), out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return merged
}
