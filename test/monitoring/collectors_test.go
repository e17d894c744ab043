package monitoring

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/machine-iac/machine-iac-operator/actuators/orphans"
	"github.com/machine-iac/machine-iac-operator/actuators/reporting"
	"github.com/machine-iac/machine-iac-operator/controllers/certificates"
	"github.com/machine-iac/machine-iac-operator/controllers/drain"
	"github.com/machine-iac/machine-iac-operator/controllers/machine"
	"github.com/machine-iac/machine-iac-operator/controllers/machinehealthcheck"
	"github.com/machine-iac/machine-iac-operator/controllers/machineset"
	"github.com/machine-iac/machine-iac-operator/internal/engine/memory"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
)

var update = flag.Bool("update", false, "rewrite the rows of docs/reference/metrics.md")

// description matches client_golang's descriptions of a collector's metrics. Constant labels have the form
// name="value".
var (
	description = regexp.MustCompile(
		`fqName: "([^"]+)", help: ("(?:[^"\\]|\\.)*"),.* constLabels: \{([^}]*)\}, variableLabels: \{([^}]*)\}`)
	labelName = regexp.MustCompile(`([a-z_]+)(?:="[^"]*")?`)
	metricRow = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| [^|]* \\| (histogram: )?[^|]* \\|$")
)

// The end-to-end tests compare the page with what a manager serves. This test fails sooner, and also compares the help
// texts. With -update it rewrites the rows of the page.
func TestThePageHasTheSeriesOfEachCollector(t *testing.T) {
	collectors := []prometheus.Collector{
		runs.NewMetrics(), memory.New(memory.Options{}), orphans.New(orphans.Options{}),
		machine.NewCollector(t.Context(), nil), machineset.NewCollector(t.Context(), nil),
	}
	collectors = append(collectors, reporting.NewMetrics().Collectors()...)
	collectors = append(collectors, machine.NewMetrics().Collectors()...)
	collectors = append(collectors, machinehealthcheck.NewMetrics().Collectors()...)
	collectors = append(collectors, drain.NewMetrics().Collectors()...)
	collectors = append(collectors, certificates.NewMetrics().Collectors()...)

	// the manager's own
	described := Families{"machine_iac_engine_starts_total": family("engine"),
		"machine_iac_engine_landlock_version": family(), "machine_iac_engine_sandbox_required": family()}
	cells := map[string][2]string{}
	for _, collector := range collectors {
		descriptions := make(chan *prometheus.Desc, 100)
		collector.Describe(descriptions)
		close(descriptions)
		for one := range descriptions {
			parts := description.FindStringSubmatch(one.String())
			if parts == nil {
				t.Fatalf("cannot read %s", one)
			}
			help, err := strconv.Unquote(parts[2])
			if err != nil {
				t.Fatal(err)
			}
			var labels []string
			for _, label := range labelName.FindAllStringSubmatch(parts[3]+","+parts[4], -1) {
				labels = append(labels, label[1])
			}
			described[parts[1]], cells[parts[1]] = family(labels...), [2]string{labelCell(labels), help}
		}
	}
	compareRows(t, cells)
	documented, err := Documented(root)
	if err != nil {
		t.Fatal(err)
	}
	for name := range documented {
		base, isBucket := strings.CutSuffix(name, "_bucket")
		if !own(name) {
			delete(documented, name)
		}
		if histogram, ok := described[base]; isBucket && ok {
			delete(described, base)
			described[base+"_sum"], described[base+"_count"] = histogram, histogram
			described[name] = Family{Labels: maps.Clone(histogram.Labels)}
			described[name].Labels["le"] = true
		}
	}
	for _, problem := range Compare(described, documented) {
		t.Error(problem)
	}
}

func labelCell(labels []string) string {
	if len(labels) == 0 {
		return "-"
	}
	return "`" + strings.Join(labels, "`, `") + "`"
}

// compareRows fails the test if a row of the page differs from its metric's labels and help text.
func compareRows(t *testing.T, cells map[string][2]string) {
	page := filepath.Join(root, "docs", "reference", "metrics.md")
	content, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	current := metricRow.ReplaceAllStringFunc(string(content), func(row string) string {
		parts := metricRow.FindStringSubmatch(row)
		if cell, ok := cells[parts[1]]; ok {
			return "| `" + parts[1] + "` | " + cell[0] + " | " + parts[2] + cell[1] + " |"
		}
		return row
	})
	switch {
	case current == string(content):
	case !*update:
		t.Error("docs/reference/metrics.md differs from the metrics; run make generate")
	default:
		if err := os.WriteFile(page, []byte(current), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
