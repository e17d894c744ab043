//go:build bench

package bench

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"
	"text/template"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/yaml"

	"github.com/machine-iac/machine-iac-operator/test/bench/page"
)

var admissions = flag.Int("admissions", 1000, "MachineSets that are asked about in each way while admission is measured")

// admissionBound is what admission of a MachineSet may take at the median.
const admissionBound = 10 * time.Millisecond

// admissionRounds take turns, so that what else the machine does meets all ways alike.
const admissionRounds = 4

// admissionFigures are what TestAdmission has measured, each sorted.
type admissionFigures struct {
	without, accepted, refused []time.Duration
}

// TestAdmission measures what the webhooks add to the creation of a MachineSet: through the API server, served by the manager over TLS.
func TestAdmission(t *testing.T) {
	b := open(t, openLab(t))
	server := newAPIServer(t, b.Lab)
	good := exampleOf(t, b)
	bad := exampleOf(t, b, func(fields map[string]any) {
		fields["cpu"], fields["memory"], fields["zone"], fields["pods"], fields["region"] = "four", "plenty", "a/b", 0, "a/b"
	})
	const warmUp = 50
	var result admissionFigures
	for range admissionRounds {
		b.webhooks(t, server, bad, true)
		server.tries(t, good, warmUp, true)
		result.accepted = append(result.accepted, server.tries(t, good, *admissions/admissionRounds, true)...)
		result.refused = append(result.refused, server.tries(t, bad, *admissions/admissionRounds, false)...)
		b.webhooks(t, server, bad, false)
		server.tries(t, good, warmUp, true)
		result.without = append(result.without, server.tries(t, good, *admissions/admissionRounds, true)...)
	}
	result.write(t)
}

// exampleOf returns the module's example, with changes to its providerSpec, as JSON.
func exampleOf(t *testing.T, b *bench, changes ...func(map[string]any)) []byte {
	t.Helper()
	manifest, err := os.ReadFile(b.Path("modules", "kubemark", "examples", "machineset.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var object any
	if err := yaml.Unmarshal(manifest, &object); err != nil {
		t.Fatal(err)
	}
	fields := object
	for _, name := range []string{"spec", "template", "spec", "providerSpec", "value"} {
		fields = fields.(map[string]any)[name]
	}
	for _, change := range changes {
		change(fields.(map[string]any))
	}
	raw, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// webhooks registers the webhooks or takes them off, and waits until that shows in what becomes of a MachineSet that is wrong.
func (b *bench) webhooks(t *testing.T, server *apiServer, bad []byte, wanted bool) {
	t.Helper()
	change := b.RemoveWebhooks
	if wanted {
		change = b.InstallWebhooks
	}
	if err := change(contextOf(t)); err != nil {
		t.Fatal(err)
	}
	until(t, 100*time.Millisecond, "the API server has noticed", func(ctx context.Context) (bool, error) {
		err := server.try(ctx, bad)
		if refused := apierrors.IsForbidden(err); refused || err == nil {
			return refused == wanted, nil
		}
		return false, err
	})
}

// try asks the API server to create a MachineSet, and to store nothing.
func (s *apiServer) try(ctx context.Context, set []byte) error {
	return s.rest.Post().RequestURI(apiPath+"/machinesets?dryRun=All").SetHeader("Content-Type", "application/json").Body(set).Do(ctx).Error()
}

// tries does so many times, and returns how long each took.
func (s *apiServer) tries(t *testing.T, set []byte, count int, allowed bool) []time.Duration {
	t.Helper()
	took := make([]time.Duration, 0, count)
	for range count {
		begun := time.Now()
		err := s.try(contextOf(t), set)
		took = append(took, time.Since(begun))
		if allowed && err != nil || !allowed && !apierrors.IsForbidden(err) {
			t.Fatalf("allowed is %v, the API server says %v", allowed, err)
		}
	}
	return took
}

var admissionText = template.Must(template.New("admission").Parse(`
{{.Count}} creates of kubemark's example MachineSet per row, in sequence, with
` + "`dryRun=All`" + ` ({{.Machine}}), measured at the client over one connection.

| | p50 | p99 |
|---|---|---|
{{range .Rows}}{{.}}
{{end}}| **admission adds, at the median** | **{{.Added}}** | |
`))

func (f *admissionFigures) write(t *testing.T) {
	t.Helper()
	row := func(way string, took []time.Duration) string {
		slices.Sort(took)
		return fmt.Sprintf("| %s | %s | %s |", way, millis(quantile(took, 0.5)), millis(quantile(took, 0.99)))
	}
	rows := []string{
		row("without webhooks", f.without), row("with webhooks, accepted", f.accepted), row("with webhooks, refused for five fields", f.refused),
	}
	added := quantile(f.accepted, 0.5) - quantile(f.without, 0.5)
	writePage(t, page.Section{Title: "What admission costs", Text: filled(t, admissionText, map[string]any{
		"Count": len(f.accepted), "Machine": page.Machine(), "Rows": rows, "Added": millis(added),
	})})
	if added >= admissionBound {
		t.Errorf("admission of a MachineSet takes %s at the median, want less than %s", added, admissionBound)
	}
}
