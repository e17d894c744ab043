//go:build bench

package bench

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/machine-iac/machine-iac-operator/test/bench/page"
	"github.com/machine-iac/machine-iac-operator/test/process"
)

var looked = flag.Int("looked", 40, "Machines whose instances are looked at")

// lookInterval is the shortest time between two looks that a module may ask for.
const lookInterval = 60 * time.Second

const lookName = "looked"

var looksText = template.Must(template.New("looks").Parse(`
{{.Machines}} kubemark Machines with ` + "`spec.instanceCheck`" + ` added, OpenTofu, 4 runs at a
time ({{.Machine}}). A look reads the instance alone; a drift check plans the module. The last column
is for 500 Machines at 480 seconds, as the cloud modules set it. Each run has its own process
(` + "`--drift-batch=1`" + `); batches cost less.

| | CPU seconds each | CLI starts each | cores, for 500 Machines |
|---|---|---|---|
| look | {{printf "%.3f" .LookCPU}} | {{printf "%.2f" .LookStarts}} | {{printf "%.2f" .Cores}} |
| drift check | {{printf "%.3f" .CheckCPU}} | {{printf "%.2f" .CheckStarts}} | |
| **look / drift check** | **{{printf "%.2f" .Ratio}}** | | |
`))

// TestLooks measures what it costs to look whether instances are still there.
func TestLooks(t *testing.T) {
	l := openLab(t)
	b := startManager(t, l, fmt.Sprintf("--max-concurrent-runs=%d", *parallel), fmt.Sprintf("--max-concurrent-drift-checks=%d", *parallel),
		"--drift-interval=24h", "--drift-batch=1", "--module-dir="+lookedModule(t, l.Path("modules", "kubemark")))
	manifest, err := os.ReadFile(b.Path("modules", "kubemark", "examples", "machineset.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	replaced := strings.NewReplacer("name: hollow", "name: "+lookName, "machineset: hollow", "machineset: "+lookName, "replicas: 3", "replicas: 0", "kind: Kubemark", "kind: Looked")
	if err := b.Apply(contextOf(t), replaced.Replace(string(manifest))); err != nil {
		t.Fatal(err)
	}
	r := &race{bench: b, api: newAPIServer(t, l)}
	set := contender{engine: lookName}
	r.replicas(t, set, *looked)
	r.finish(t, set, creating, *looked)
	// The first round initialises what looks run in.
	r.counted(t, *looked, b.lookedAt, nil)
	// A drift check is a look too, so that none is due for a while after this.
	check := r.counted(t, *looked, func(text string) float64 { return endedRuns(text, "terraform", checking) }, func() { r.begin(t, set, checking, *looked) })
	look := r.counted(t, 2**looked, b.lookedAt, nil)
	text := b.metrics(t)
	if there := series(text, "machine_iac_instance_checks_total", map[string]string{"result": "there"}); there != b.lookedAt(text) {
		t.Errorf("of %v looks %v find the instance", b.lookedAt(text), there)
	}
	writePage(t, page.Section{Title: "What a look costs", Text: filled(t, looksText, map[string]any{
		"Machine": page.Machine(), "Machines": *looked, "LookCPU": look.cpu.Seconds(), "LookStarts": look.starts, "CheckCPU": check.cpu.Seconds(), "CheckStarts": check.starts,
		"Ratio": look.cpu.Seconds() / check.cpu.Seconds(), "Cores": look.cpu.Seconds() * 500 / 480,
	})})
}

// lookedAt returns how many looks there were.
func (*bench) lookedAt(text string) float64 {
	return series(text, "machine_iac_instance_checks_total", map[string]string{"engine": "terraform"})
}

// counted has something begin, waits until a count in the metrics has grown by so many, and returns what each has cost.
func (r *race) counted(t *testing.T, wanted int, count func(metrics string) float64, begin func()) cost {
	t.Helper()
	r.api.settled(t)
	text := r.metrics(t)
	before, had := cost{cpu: process.CPU(r.manager.PID()), starts: starts(text, "terraform")}, count(text)
	began := time.Now()
	if begin != nil {
		begin()
	}
	until(t, scrapeEvery, fmt.Sprintf("%d more are counted", wanted), func(ctx context.Context) (bool, error) {
		_, text, err := r.manager.Scrape(ctx, r.token)
		return count(text)-had >= float64(wanted), err
	})
	spent := cost{wall: time.Since(began)}
	text = r.metrics(t)
	each := count(text) - had
	spent.cpu = time.Duration(float64(process.CPU(r.manager.PID())-before.cpu) / each)
	spent.starts = (starts(text, "terraform") - before.starts) / each
	t.Logf("%.0f counted in %s: %.3f s CPU, %.2f starts each", each, spent.wall.Round(time.Second), spent.cpu.Seconds(), spent.starts)
	return spent
}

// lookedModule returns a folder with the module kubemark under another name, whose instances are looked at.
func lookedModule(t *testing.T, kubemark string) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), lookName)
	if err := os.CopyFS(folder, os.DirFS(kubemark)); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(folder, "module.yaml")
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	begin := fmt.Sprintf("name: %s\nspec:\n  instanceCheck: {intervalSeconds: %d}\n", lookName, int(lookInterval.Seconds()))
	text := strings.NewReplacer("name: kubemark\nspec:\n", begin, "kind: Kubemark", "kind: Looked").Replace(string(content))
	if !strings.Contains(text, begin) {
		t.Fatalf("%s is written in another way than this benchmark expects", file)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return folder
}
