//go:build bench

package bench

import (
	"bytes"
	"testing"
	"text/template"

	"github.com/machine-iac/machine-iac-operator/test/bench/page"
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

var costText = template.Must(template.New("cost").Parse(`{{.Machines}} Machines of the kubemark module, created and destroyed {{.Rounds}}x, {{.Parallel}} engine runs at a time ({{.Machine}}). The plain loop is
` + "`tofu apply -auto-approve`, `tofu destroy -auto-approve`" + ` over the same module, in one initialised folder with a local state file for each
Machine. CPU seconds are those of the manager or the loop's processes with all their children; the API server's are in neither.
The operator does more for them: it keeps the state in Secrets, writes an intent before each run, and maintains the Machines' status.

| | wall seconds per Machine | CPU seconds per Machine | CLI starts per Machine |
|---|---|---|---|
{{range .Rows}}| {{.Name}} | {{printf "%.3f" .Wall}} | {{printf "%.3f" .CPU}} | {{printf "%.2f" .Runs}} |
{{end}}| **operator / plain loop** | **{{printf "%.2f" .WallRatio}}** | **{{printf "%.2f" .CPURatio}}** | |

Memory at its peak: the manager {{printf "%.0f" .ManagerMiB}} MiB, its largest child ({{.Child}}) {{printf "%.0f" .ChildMiB}} MiB.
`))

var idleText = template.Must(template.New("idle").Parse(`{{.Idle}} Machines run, and nothing changes for {{.IdleFor}}, no drift check falling due ({{.Machine}}): **{{printf "%.0f" .IdleStarts}} processes started**,
{{printf "%.2f" .IdleCPU}} CPU seconds a minute, {{printf "%.0f" .IdleMiB}} MiB at the peak of the manager's life until then.
`))

func (f *figures) print(t *testing.T) {
	t.Helper()
	count := float64(*machines * *rounds)
	line := func(name string, c cost) row {
		return row{Name: name, Wall: c.wall.Seconds() / count, CPU: c.cpu.Seconds() / count, Runs: c.starts / count}
	}
	values := map[string]any{
		"Machine": page.Machine(), "Machines": *machines, "Rounds": *rounds, "Parallel": *parallel,
		"Rows":       []row{line("plain loop", f.plain), line("operator", f.operator)},
		"WallRatio":  f.operator.wall.Seconds() / f.plain.wall.Seconds(),
		"CPURatio":   f.operator.cpu.Seconds() / f.plain.cpu.Seconds(),
		"ManagerMiB": f.managerMiB, "Child": f.child, "ChildMiB": f.childMiB,
		"Idle": *idle, "IdleFor": *idleFor, "IdleStarts": f.idle.starts, "IdleCPU": f.idle.cpu.Minutes() / f.idle.wall.Minutes() * 60, "IdleMiB": f.idleMiB,
	}
	writePage(t,
		page.Section{Title: "What a Machine costs", Text: filled(t, costText, values)},
		page.Section{Title: "What idling costs", Text: filled(t, idleText, values)})
	if f.operator.cpu > f.plain.cpu {
		t.Errorf("a Machine costs %.2f times the plain loop's CPU, want at most once", f.operator.cpu.Seconds()/f.plain.cpu.Seconds())
	}
}

// filled returns a text with values put in.
func filled(t *testing.T, text *template.Template, values map[string]any) string {
	t.Helper()
	var out bytes.Buffer
	if err := text.Execute(&out, values); err != nil {
		t.Fatal(err)
	}
	return out.String()
}
