package monitoring

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Families are series by their names.
type Families map[string]Family

// Family is all series of one name.
type Family struct {
	// Labels are the names of the labels that its series have.
	Labels map[string]bool
	// Values are the values of each label; nil where only the names of labels are known.
	Values map[string][]string
}

// foreign are the series that others than the manager show, and the labels of them that queries use: kube-state-metrics, the kubelets and the operator.
var foreign = Families{
	"kube_node_info":                     family("node"),
	"container_cpu_usage_seconds_total":  family("container"),
	"container_memory_working_set_bytes": family("container"),
	"machine_iac_installation_condition": {
		Labels: map[string]bool{"condition": true}, Values: map[string][]string{"condition": {"Available", "Progressing", "Degraded"}},
	},
}

// targetLabels are those that Prometheus itself gives to what it scrapes by the ServiceMonitor.
var targetLabels = []string{"job", "namespace", "pod", "instance", "service", "endpoint", "container"}

func family(labels ...string) Family {
	f := Family{Labels: map[string]bool{}}
	for _, label := range labels {
		f.Labels[label] = true
	}
	return f
}

var (
	sample = regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (?:[-+]?[0-9.]+(?:e[-+]?[0-9]+)?|[-+]?Inf|NaN)$`)
	pair   = regexp.MustCompile(`([a-zA-Z_][a-zA-Z0-9_]*)=("(?:[^"\\]|\\.)*")`)
)

// Scraped returns the series in what a manager shows at /metrics.
func Scraped(text string) (Families, error) {
	found := Families{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		parts := sample.FindStringSubmatch(line)
		if parts == nil {
			return nil, fmt.Errorf("this line is no sample: %s", line)
		}
		one, ok := found[parts[1]]
		if !ok {
			one = Family{Labels: map[string]bool{}, Values: map[string][]string{}}
			found[parts[1]] = one
		}
		for _, label := range pair.FindAllStringSubmatch(parts[2], -1) {
			value, err := strconv.Unquote(label[2])
			if err != nil {
				return nil, fmt.Errorf("reading label %s in %s: %w", label[1], line, err)
			}
			one.Labels[label[1]] = true
			if !slices.Contains(one.Values[label[1]], value) {
				one.Values[label[1]] = append(one.Values[label[1]], value)
			}
		}
	}
	return found, nil
}

var (
	documentedRow = regexp.MustCompile("(?m)^\\| (`[a-z_`, ]+`) \\| ([^|]*) \\| ([^|]*) \\|$")
	quoted        = regexp.MustCompile("`([^`]+)`")
)

// Documented returns the series in the tables of docs/monitoring.md.
func Documented(root string) (Families, error) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "monitoring.md"))
	if err != nil {
		return nil, err
	}
	found := Families{}
	for _, row := range documentedRow.FindAllStringSubmatch(string(page), -1) {
		var labels []string
		for _, label := range quoted.FindAllStringSubmatch(row[2], -1) {
			labels = append(labels, label[1])
		}
		for _, name := range quoted.FindAllStringSubmatch(row[1], -1) {
			if !strings.HasPrefix(row[3], "histogram") {
				found[name[1]] = family(labels...)
				continue
			}
			found[name[1]+"_bucket"] = family(append(slices.Clone(labels), "le")...)
			found[name[1]+"_sum"], found[name[1]+"_count"] = family(labels...), family(labels...)
		}
	}
	return found, nil
}

// own reports whether a series is one of this project's or of the Machine API's.
func own(name string) bool {
	return strings.HasPrefix(name, "machine_iac_") || strings.HasPrefix(name, "mapi_")
}

// Compare returns a message for each series of the project's that is scraped and not documented, and for each that is documented and not
// scraped, or with other labels.
func Compare(scraped, documented Families) []string {
	var problems []string
	for _, name := range slices.Sorted(maps.Keys(scraped)) {
		said, ok := documented[name]
		if !ok {
			if own(name) {
				problems = append(problems, fmt.Sprintf("docs/monitoring.md has no row for %s", name))
			}
			continue
		}
		for label := range scraped[name].Labels {
			if own(name) && !said.Labels[label] {
				problems = append(problems, fmt.Sprintf("docs/monitoring.md does not say that %s has the label %s", name, label))
			}
		}
		for label := range said.Labels {
			if !scraped[name].Labels[label] {
				problems = append(problems, fmt.Sprintf("docs/monitoring.md says that %s has the label %s, which it has not", name, label))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(documented)) {
		if _, ok := scraped[name]; !ok {
			problems = append(problems, fmt.Sprintf("docs/monitoring.md has a row for %s, which the manager does not show", name))
		}
	}
	slices.Sort(problems)
	return problems
}
