//go:build bench

package bench

import (
	"fmt"
	"testing"
	"text/template"
	"time"

	"github.com/machine-iac/machine-iac-operator/test/bench/page"
)

// controllerFigures are what TestControllers has measured: of the machineset controller alone, and of all together.
type controllerFigures struct {
	alone, together struct{ up, down scaling }
	peakMiB         float64
	latencies       []time.Duration
}

var aloneText = template.Must(template.New("alone").Parse(`
A MachineSet scales from 0 to {{.Count}} and back, with only the machineset controller, the API
server and etcd ({{.Machine}}). "complete": all exist, or none. "reported":
the status says so. Writes are counted at the API server.

| way | complete, s | reported, s | CPU s | writes |
|---|---|---|---|---|
{{range .Rows}}{{.}}
{{end}}`))

var togetherText = template.Must(template.New("together").Parse(`
The same with the machine and drain controllers and a fake engine with instant results. There are no
Nodes to drain. "settled": the last Machine is Provisioned, or gone.

| way | settled, s | CPU s | writes a Machine | of these |
|---|---|---|---|---|
{{range .Rows}}{{.}}
{{end}}
Memory at its peak: {{printf "%.0f" .PeakMiB}} MiB.
`))

var latencyText = template.Must(template.New("latency").Parse(`
{{.Count}} Machines idle, and {{.Touches}} of them get an annotation, about 40 per second
({{.Machine}}). From the write until the Machine's reconcile has the actuator's result: **p50
{{.P50}}, p99 {{.P99}}**.
`))

func (f *controllerFigures) write(t *testing.T) {
	t.Helper()
	up, down := fmt.Sprintf("0 to %d", *replicas), fmt.Sprintf("%d to 0", *replicas)
	writePage(t,
		page.Section{Title: "What a MachineSet costs", Text: filled(t, aloneText, map[string]any{
			"Count": *replicas, "Machine": page.Machine(),
			"Rows": []string{aloneRow(up, f.alone.up), aloneRow(down, f.alone.down)},
		})},
		page.Section{Title: "What the controllers write", Text: filled(t, togetherText, map[string]any{
			"Rows": []string{togetherRow(up, f.together.up), togetherRow(down, f.together.down)}, "PeakMiB": f.peakMiB,
		})},
		page.Section{Title: "How soon a Machine is reconciled", Text: filled(t, latencyText, map[string]any{
			"Count": *replicas, "Touches": len(f.latencies), "Machine": page.Machine(),
			"P50": millis(quantile(f.latencies, 0.5)), "P99": millis(quantile(f.latencies, 0.99)),
		})})
}

func aloneRow(way string, s scaling) string {
	return fmt.Sprintf("| %s | %.2f | %.2f | %.2f | %s |", way, s.there.Seconds(), s.settled.Seconds(), s.cpu.Seconds(), s.writes)
}

func togetherRow(way string, s scaling) string {
	return fmt.Sprintf("| %s | %.2f | %.2f | %.2f | %s |",
		way, s.settled.Seconds(), s.cpu.Seconds(), s.writes.sum()/float64(*replicas), s.writes)
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
