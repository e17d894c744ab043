package monitoring

import (
	"maps"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/machine-iac/machine-iac-operator/actuators/orphans"
	"github.com/machine-iac/machine-iac-operator/actuators/reporting"
	"github.com/machine-iac/machine-iac-operator/controllers/drain"
	"github.com/machine-iac/machine-iac-operator/controllers/machine"
	"github.com/machine-iac/machine-iac-operator/controllers/machinehealthcheck"
	"github.com/machine-iac/machine-iac-operator/controllers/machineset"
	"github.com/machine-iac/machine-iac-operator/internal/engine/memory"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
)

// description is how client_golang prints what a collector collects. Constant labels come as name="value".
var (
	description = regexp.MustCompile(`fqName: "([^"]+)".*constLabels: \{([^}]*)\}, variableLabels: \{([^}]*)\}`)
	labelName   = regexp.MustCompile(`([a-z_]+)(?:="[^"]*")?`)
)

// The end-to-end tests compare the page with what a manager really shows; this is sooner.
func TestThePageHasTheSeriesOfEachCollector(t *testing.T) {
	collectors := []prometheus.Collector{
		runs.NewMetrics(), memory.New(memory.Options{}), orphans.New(orphans.Options{}), machine.NewCollector(t.Context(), nil), machineset.NewCollector(t.Context(), nil),
	}
	collectors = append(collectors, reporting.NewMetrics().Collectors()...)
	collectors = append(collectors, machine.NewMetrics().Collectors()...)
	collectors = append(collectors, machinehealthcheck.NewMetrics().Collectors()...)
	collectors = append(collectors, drain.NewMetrics().Collectors()...)

	described := Families{"machine_iac_engine_starts_total": family("engine"), "machine_iac_engine_landlock_version": family()} // the manager's own
	for _, collector := range collectors {
		descriptions := make(chan *prometheus.Desc, 100)
		collector.Describe(descriptions)
		close(descriptions)
		for one := range descriptions {
			parts := description.FindStringSubmatch(one.String())
			if parts == nil {
				t.Fatalf("cannot read %s", one)
			}
			var labels []string
			for _, label := range labelName.FindAllStringSubmatch(parts[2]+","+parts[3], -1) {
				labels = append(labels, label[1])
			}
			described[parts[1]] = family(labels...)
		}
	}
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
