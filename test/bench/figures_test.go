//go:build bench

package bench

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"text/template"

	"github.com/machine-iac/machine-iac-operator/test/bench/page"
)

// figures are what one run has measured.
type figures struct {
	plain    measured
	operator []measured // in the order of ways
	idle     cost
	idleMiB  float64
}

// row is one line of the table of costs.
type row struct {
	Name            string
	Wall, CPU, Runs float64
	// Ratio says that the figures are shares of the plain loop's.
	Ratio bool
}

var costText = template.Must(template.New("cost").Parse(`
{{.Machines}} kubemark Machines are created, checked for drift and destroyed {{.Rounds}}x,
{{.Parallel}} engine runs at a time ({{.Machine}}). The plain loop is
` + "`tofu apply -auto-approve`, `tofu plan` and `tofu destroy -auto-approve`" + ` over the same
module, in one initialised folder with a state file per Machine. Waiting runs of the operator share
processes (` + "`--apply-batch`, `--drift-batch`" + `), so there are fewer CLI starts than runs.

| create and destroy | wall seconds per Machine | CPU seconds per Machine | CLI starts per Machine |
|---|---|---|---|
{{range .Life}}{{template "row" .}}{{end}}
| check | wall seconds per Machine | CPU seconds per Machine | CLI starts per Machine |
|---|---|---|---|
{{range .Checks}}{{template "row" .}}{{end}}
Memory at its peak: {{.Peaks}}.
{{define "row"}}{{if .Ratio}}| **{{.Name}} / plain loop** | **{{printf "%.2f" .Wall}}** | **{{printf "%.2f" .CPU}}** | |
{{else}}| {{.Name}} | {{printf "%.3f" .Wall}} | {{printf "%.3f" .CPU}} | {{printf "%.2f" .Runs}} |
{{end}}{{end}}`))

var idleText = template.Must(template.New("idle").Parse(`
{{.Idle}} Machines run unchanged for {{.IdleFor}} without due drift checks ({{.Machine}}):
**{{printf "%.0f" .IdleStarts}} processes started**, {{printf "%.2f" .IdleCPU}} CPU seconds a
minute, manager peak {{printf "%.0f" .IdleMiB}} MiB.
`))

func (f *figures) print(t *testing.T) {
	t.Helper()
	var peaks []string
	for _, m := range f.operator {
		peaks = append(peaks, fmt.Sprintf("%s: the manager %.0f MiB, its largest child (%s) %.0f MiB", m.title, m.managerMiB, m.largest.name, m.largest.mib))
	}
	values := map[string]any{
		"Machine": page.Machine(), "Machines": *machines, "Rounds": *rounds, "Parallel": *parallel,
		"Life": f.rows(func(m measured) cost { return m.life }), "Checks": f.rows(func(m measured) cost { return m.check }), "Peaks": strings.Join(peaks, "; "),
	}
	sections := []page.Section{{Title: "What a Machine costs", Text: filled(t, costText, values)}}
	if *idle > 0 {
		sections = append(sections, page.Section{Title: "What idling costs", Text: filled(t, idleText, map[string]any{
			"Machine": page.Machine(), "Idle": *idle, "IdleFor": *idleFor, "IdleStarts": f.idle.starts,
			"IdleCPU": f.idle.cpu.Minutes() / f.idle.wall.Minutes() * 60, "IdleMiB": f.idleMiB,
		})})
	}
	writePage(t, sections...)
	for _, m := range f.operator {
		if m.life.cpu > f.plain.life.cpu {
			t.Errorf("%s: a Machine costs %.2f times the plain loop's CPU, want at most once", m.title, ratio(m.life.cpu, f.plain.life.cpu))
		}
	}
}

// rows returns a cost of the plain loop and of each way, and their ratios.
func (f *figures) rows(of func(measured) cost) []row {
	count := float64(*machines * *rounds)
	line := func(name string, c cost) row {
		return row{Name: name, Wall: c.wall.Seconds() / count, CPU: c.cpu.Seconds() / count, Runs: c.starts / count}
	}
	plain := of(f.plain)
	rows := []row{line("plain loop", plain)}
	for _, m := range f.operator {
		rows = append(rows, line(m.title, of(m)))
	}
	for _, m := range f.operator {
		c := of(m)
		rows = append(rows, row{Name: m.title, Wall: ratio(c.wall, plain.wall), CPU: ratio(c.cpu, plain.cpu), Ratio: true})
	}
	return rows
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
