//go:build bench

package bench

import (
	"fmt"
	"strings"
	"testing"
	"text/template"

	"github.com/machine-iac/machine-iac-operator/test/bench/page"
)

// raceFigures are what the engines have cost.
type raceFigures struct {
	costs map[string]map[operation]cost
	peaks map[string]peak
}

func (f *raceFigures) add(engine string, o operation, spent cost, most peak) {
	if f.costs[engine] == nil {
		f.costs[engine] = map[operation]cost{}
	}
	f.costs[engine][o] = f.costs[engine][o].add(spent)
	known := f.peaks[engine]
	if most.mib > known.mib {
		known.name, known.mib = most.name, most.mib
	}
	known.together = max(known.together, most.together)
	f.peaks[engine] = known
}

var raceText = template.Must(template.New("race").Parse(`
{{.Each}} kubemark Machines per engine, under one manager, {{.Parallel}} runs at a time
({{.Machine}}). Every OpenTofu run has its own process (` + "`--apply-batch=1`, `--drift-batch=1`" + `),
as Pulumi's always do. A check is a drift check. Mean of {{.Rounds}} rounds.

| operation | engine | CPU seconds per Machine | wall seconds per Machine | CPU / {{.First}} | wall / {{.First}} |
|---|---|---|---|---|---|
{{range .Rows}}{{.}}
{{end}}
| engine | largest process | MiB | all processes of {{.Parallel}} runs at once, MiB |
|---|---|---|---|
{{range .Peaks}}{{.}}
{{end}}
The last column counts shared memory once.
`))

var titles = map[operation]string{creating: "create", updating: "update in place", checking: "check", destroying: "destroy"}

func (f *raceFigures) write(t *testing.T) {
	t.Helper()
	var rows, peaks []string
	for _, o := range operations {
		for _, c := range contenders {
			rows = append(rows, f.row(c, o))
		}
	}
	for _, c := range contenders {
		most := f.peaks[c.engine]
		peaks = append(peaks, fmt.Sprintf("| %s | %s | %.0f | %.0f |", c.title, most.name, most.mib, most.together))
	}
	writePage(t, page.Section{Title: "What an engine costs", Text: filled(t, raceText, map[string]any{
		"Each": *each, "Parallel": *parallel, "Rounds": raceRounds, "Machine": page.Machine(), "First": contenders[0].title, "Rows": rows, "Peaks": peaks,
	})})
}

func (f *raceFigures) row(c contender, o operation) string {
	spent, first, count := f.costs[c.engine][o], f.costs[contenders[0].engine][o], float64(*each*raceRounds)
	cells := []string{
		titles[o], c.title, fmt.Sprintf("%.3f", spent.cpu.Seconds()/count), fmt.Sprintf("%.3f", spent.wall.Seconds()/count),
	}
	for _, ratio := range []float64{ratio(spent.cpu, first.cpu), ratio(spent.wall, first.wall)} {
		cells = append(cells, fmt.Sprintf("**%.2f**", ratio))
	}
	return "| " + strings.Join(cells, " | ") + " |"
}
