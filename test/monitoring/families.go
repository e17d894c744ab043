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

// Families maps names to series.
type Families map[string]Family

// Family contains all series with one name.
type Family struct {
	// Labels are the names of its labels.
	Labels map[string]bool
	// Values are the values of each label, or nil if only label names are known.
	Values map[string][]string
}

// foreign are series that queries use from other exporters than the manager, with the labels used: kube-state-metrics,
// the kubelets and the operator.
var foreign = Families{
	"kube_node_info":                     family("node"),
	"container_cpu_usage_seconds_total":  family("container"),
	"container_memory_working_set_bytes": family("container"),
	"machine_iac_installation_condition": {
		Labels: map[string]bool{"condition": true},
		Values: map[string][]string{"condition": {"Available", "Progressing", "Degraded"}},
	},
}

// targetLabels are the labels that Prometheus adds to targets of the ServiceMonitor, and "cluster", by which those who
// store the series of several clusters tell them apart.
var targetLabels = []string{"cluster", "job", "namespace", "pod", "instance", "service", "endpoint", "container"}

func family(labels ...string) Family {
	f := Family{Labels: map[string]bool{}}
	for _, label := range labels {
		f.Labels[label] = true
	}
	return f
}

var (
	sample = regexp.MustCompile(
		`^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (?:[-+]?[0-9.]+(?:e[-+]?[0-9]+)?|[-+]?Inf|NaN)$`)
	pair = regexp.MustCompile(`([a-zA-Z_][a-zA-Z0-9_]*)=("(?:[^"\\]|\\.)*")`)
)

// Scraped parses a manager's /metrics.
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

// Documented returns the series in docs/reference/metrics.md.
func Documented(root string) (Families, error) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "reference", "metrics.md"))
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

// own reports whether a series belongs to this project or the Machine API.
func own(name string) bool {
	return strings.HasPrefix(name, "machine_iac_") || strings.HasPrefix(name, "mapi_")
}

// Compare returns a message for each of the project's series that is scraped but not documented, documented but not
// scraped, or has other labels.
func Compare(scraped, documented Families) []string {
	var problems []string
	for _, name := range slices.Sorted(maps.Keys(scraped)) {
		said, ok := documented[name]
		if !ok {
			if own(name) {
				problems = append(problems, fmt.Sprintf("docs/reference/metrics.md has no row for %s", name))
			}
			continue
		}
		for label := range scraped[name].Labels {
			if own(name) && !said.Labels[label] {
				problems = append(problems, fmt.Sprintf(
					"docs/reference/metrics.md does not say that %s has the label %s", name, label))
			}
		}
		for label := range said.Labels {
			if !scraped[name].Labels[label] {
				problems = append(problems, fmt.Sprintf(
					"docs/reference/metrics.md says that %s has the label %s, which it has not", name, label))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(documented)) {
		if _, ok := scraped[name]; !ok {
			problems = append(problems, fmt.Sprintf(
				"docs/reference/metrics.md has a row for %s, which the manager does not show", name))
		}
	}
	slices.Sort(problems)
	return problems
}
