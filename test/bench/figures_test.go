//go:build bench

package bench

import (
	"bytes"
	"runtime"
	"testing"
	"text/template"
)

// figures are what one run has measured.
type figures struct {
	plain, operator, idle         cost
	managerMiB, childMiB, idleMiB float64
	child                         string
}

// row is one line of the table of costs.
type row struct {
	Name            string
	Wall, CPU, Runs float64
}

var text = template.Must(template.New("page").Parse(`# Benchmarks

Measured by ` + "`make bench`" + `, which writes this page: everything in one run on one machine ({{.Cores}} cores, {{.OS}}, {{.Go}}).
Trust the ratios; seconds are the machine's.

## What a Machine costs

{{.Machines}} Machines of the kubemark module, created and destroyed {{.Rounds}}x, {{.Parallel}} engine runs at a time. The plain loop is
` + "`tofu apply -auto-approve`, `tofu destroy -auto-approve`" + ` over the same module, in one initialised folder with a local state file for each
Machine. CPU seconds are those of the manager or the loop's processes with all their children; the API server's are in neither.
The operator does more for them: it keeps the state in Secrets, writes an intent before each run, and maintains the Machines' status.

| | wall seconds per Machine | CPU seconds per Machine | CLI starts per Machine |
|---|---|---|---|
{{range .Rows}}| {{.Name}} | {{printf "%.3f" .Wall}} | {{printf "%.3f" .CPU}} | {{printf "%.2f" .Runs}} |
{{end}}| **operator / plain loop** | **{{printf "%.2f" .WallRatio}}** | **{{printf "%.2f" .CPURatio}}** | |

Memory at its peak: the manager {{printf "%.0f" .ManagerMiB}} MiB, its largest child ({{.Child}}) {{printf "%.0f" .ChildMiB}} MiB.

## What idling costs

{{.Idle}} Machines run and nothing happens for {{.IdleFor}}, no drift check falling due: **{{printf "%.0f" .IdleStarts}} processes started**, {{printf "%.2f" .IdleCPU}} CPU seconds a minute,
{{printf "%.0f" .IdleMiB}} MiB at the peak of the manager's life until then.
`))

func (f *figures) print(t *testing.T) {
	t.Helper()
	count := float64(*machines * *rounds)
	line := func(name string, c cost) row {
		return row{Name: name, Wall: c.wall.Seconds() / count, CPU: c.cpu.Seconds() / count, Runs: c.starts / count}
	}
	var out bytes.Buffer
	err := text.Execute(&out, map[string]any{
		"Cores": runtime.NumCPU(), "OS": runtime.GOOS + "/" + runtime.GOARCH, "Go": runtime.Version(),
		"Machines": *machines, "Rounds": *rounds, "Parallel": *parallel,
		"Rows":       []row{line("plain loop", f.plain), line("operator", f.operator)},
		"WallRatio":  f.operator.wall.Seconds() / f.plain.wall.Seconds(),
		"CPURatio":   f.operator.cpu.Seconds() / f.plain.cpu.Seconds(),
		"ManagerMiB": f.managerMiB, "Child": f.child, "ChildMiB": f.childMiB,
		"Idle": *idle, "IdleFor": *idleFor, "IdleStarts": f.idle.starts, "IdleCPU": f.idle.cpu.Minutes() / f.idle.wall.Minutes() * 60, "IdleMiB": f.idleMiB,
	})
	if err != nil {
		t.Fatal(err)
	}
	writePage(t, out.String())
	if f.operator.cpu > f.plain.cpu {
		t.Errorf("a Machine costs %.2f times the plain loop's CPU, want at most once", f.operator.cpu.Seconds()/f.plain.cpu.Seconds())
	}
}
