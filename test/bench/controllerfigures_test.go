//go:build bench

package bench

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/machine-iac/machine-iac-operator/test/bench/page"
)

// controllerFigures are what TestControllers has measured.
type controllerFigures struct {
	alone []aloneFigures

	// The rest is of all controllers together.
	limit     rate
	up, down  scaling
	peakMiB   float64
	latencies []time.Duration
	means     map[string]float64
}

// aloneFigures are those of the machineset controller alone.
type aloneFigures struct {
	limit    rate
	up, down scaling
	peakMiB  float64
}

var aloneText = template.Must(template.New("alone").Parse(`
A MachineSet scales from 0 to {{.Count}} and back, with only the machineset controller, the API
server and etcd ({{.Machine}}). Machines have no finalizer. "complete": all exist, or none.
"reported": the status says so. Writes are counted at the API server.

| client requests | way | complete, s | reported, s | CPU s | writes | of these |
|---|---|---|---|---|---|---|
{{range .Rows}}{{.}}
{{end}}
Memory at its peak: {{printf "%.0f" .PeakMiB}} MiB.
`))

var togetherText = template.Must(template.New("together").Parse(`
The same with the machine and drain controllers and a fake engine with instant results
({{.Machine}}, client requests {{.Limit}}). There are no Nodes to drain. "settled": the last Machine
is Provisioned, or gone.

| way | settled, s | CPU s | writes | writes a Machine | of these |
|---|---|---|---|---|---|
{{range .Rows}}{{.}}
{{end}}
Memory at its peak: {{printf "%.0f" .PeakMiB}} MiB.
`))

var latencyText = template.Must(template.New("latency").Parse(`
{{.Count}} Machines idle, and {{.Touches}} of them get an annotation, about 40 per second
({{.Machine}}). From the write until the Machine's reconcile has the actuator's result: **p50
{{.P50}}, p99 {{.P99}}**. The write triggers no other controller. Mean reconcile
time:{{range .Means}} {{.}}{{end}} (controller_runtime_reconcile_time_seconds).
`))

func (f *controllerFigures) write(t *testing.T) {
	t.Helper()
	var rows []string
	var peak float64
	for _, a := range f.alone {
		rows = append(rows, aloneRow(a.limit, fmt.Sprintf("0 to %d", *replicas), a.up), aloneRow(a.limit, fmt.Sprintf("%d to 0", *replicas), a.down))
		peak = max(peak, a.peakMiB)
	}
	together := []string{togetherRow(fmt.Sprintf("0 to %d", *replicas), f.up), togetherRow(fmt.Sprintf("%d to 0", *replicas), f.down)}
	var means []string
	for _, controller := range slices.Sorted(maps.Keys(f.means)) {
		means = append(means, fmt.Sprintf("%.2f ms (%s)", f.means[controller]*1000, controller))
	}
	if len(means) > 1 {
		means = []string{strings.Join(means, ", ")}
	}
	writePage(t,
		page.Section{Title: "What a MachineSet costs", Text: filled(t, aloneText, map[string]any{
			"Count": *replicas, "Machine": page.Machine(), "Rows": rows, "PeakMiB": peak,
		})},
		page.Section{Title: "What the controllers write", Text: filled(t, togetherText, map[string]any{
			"Machine": page.Machine(), "Limit": f.limit, "Rows": together, "PeakMiB": f.peakMiB,
		})},
		page.Section{Title: "How soon a Machine is reconciled", Text: filled(t, latencyText, map[string]any{
			"Count": *replicas, "Touches": len(f.latencies), "Machine": page.Machine(), "Means": means,
			"P50": millis(quantile(f.latencies, 0.5)), "P99": millis(quantile(f.latencies, 0.99)),
		})})
}

func aloneRow(limit rate, way string, s scaling) string {
	return fmt.Sprintf("| %s | %s | %.2f | %.2f | %.2f | %.0f | %s |",
		limit, way, s.there.Seconds(), s.settled.Seconds(), s.cpu.Seconds(), s.writes.sum(), s.writes)
}

func togetherRow(way string, s scaling) string {
	return fmt.Sprintf("| %s | %.2f | %.2f | %.0f | %.2f | %s |",
		way, s.settled.Seconds(), s.cpu.Seconds(), s.writes.sum(), s.writes.sum()/float64(*replicas), s.writes)
}

// quantile returns the smallest of sorted durations that q of them do not exceed.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

func millis(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
}
