//go:build e2e

package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/machine-iac/machine-iac-operator/hack/lab"
	"github.com/machine-iac/machine-iac-operator/test/observe"
)

// madeTwice returns the names of Nodes that were created more than once. A Node has its Machine's name, which is
// unique.
func (w *world) madeTwice() []string {
	var twice []string
	for name, uids := range w.nodes.ByName() {
		if len(uids) > 1 {
			twice = append(twice, fmt.Sprintf("%s: %v", name, uids))
		}
	}
	return twice
}

// engines returns the manager's engines and providers: processes in its work folder, and engines and providers whose
// parent it is.
func (w *world) engines() ([]observe.Process, error) {
	all, err := observe.Processes()
	if err != nil {
		return nil, err
	}
	manager := 0
	if current := w.pod.current(); current != nil {
		manager = current.PID()
	}
	return slices.DeleteFunc(all, func(p observe.Process) bool {
		return p.PID == manager || !p.Within([]string{w.pod.workDir()}, []int{manager})
	}), nil
}

// atRest returns nil if no run left a process or folder. Warm providers do not count.
func (w *world) atRest() error {
	running, err := w.engines()
	if err != nil {
		return err
	}
	running = slices.DeleteFunc(running, observe.Process.Kept)
	if len(running) > 0 {
		return fmt.Errorf("%d processes are left, one is %s", len(running), running[0])
	}
	for _, engine := range machineries {
		entries, err := os.ReadDir(filepath.Join(w.pod.workDir(), engine.work))
		if err != nil {
			return err
		}
		if len(entries) > 0 {
			return fmt.Errorf("%d folders are left in work/%s, one is %s", len(entries), engine.work, entries[0].Name())
		}
	}
	return nil
}

// metrics returns the manager's metrics, as a user with access sees them.
func (w *world) metrics(ctx context.Context) string {
	GinkgoHelper()
	token, err := w.lab.MetricsToken(ctx)
	Expect(err).NotTo(HaveOccurred())
	status, text, err := w.pod.current().Scrape(ctx, token)
	Expect(err).NotTo(HaveOccurred())
	Expect(status).To(Equal(http.StatusOK), text)
	return text
}

// metric returns the sum of a metric's series, and fails if there is none.
func (w *world) metric(ctx context.Context, name string) float64 {
	GinkgoHelper()
	text := w.metrics(ctx)
	Expect(text).To(MatchRegexp(`(?m)^%s[{ ]`, name))
	return lab.Sum(text, name)
}

// updatesStarted counts the updates that were started. Checks of drift, looks and second looks come on their own at any time.
func (w *world) updatesStarted(ctx context.Context) float64 {
	GinkgoHelper()
	const started = "machine_iac_run_queue_seconds_count"
	lines := w.series(ctx, started, label("operation", "update"))
	Expect(lines).NotTo(BeEmpty())
	return lab.Sum(strings.Join(lines, "\n"), started)
}

// label formats a label as in a series.
func label(name, value string) string { return fmt.Sprintf("%s=%q", name, value) }

// series returns the lines of a metric with all these labels.
func (w *world) series(ctx context.Context, name string, labels ...string) []string {
	GinkgoHelper()
	var found []string
	for line := range strings.Lines(w.metrics(ctx)) {
		base, _, _ := strings.Cut(line, " ")
		base, _, _ = strings.Cut(base, "{")
		lacks := func(label string) bool { return !strings.Contains(line, label) }
		if base == name && !slices.ContainsFunc(labels, lacks) {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return found
}

// shows returns the value of the only series with these labels.
func (w *world) shows(ctx context.Context, name string, labels ...string) float64 {
	GinkgoHelper()
	found := w.series(ctx, name, labels...)
	Expect(found).To(HaveLen(1), "%s with %v", name, labels)
	return lab.Sum(found[0], name)
}
