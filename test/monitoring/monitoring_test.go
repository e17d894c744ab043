package monitoring

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/machine-iac/machine-iac-operator/test/long"
)

const (
	root     = "../.."
	runbooks = "https://github.com/machine-iac/machine-iac-operator/blob/main/docs/runbooks/"
)

func TestAlertsFireAndStayQuiet(t *testing.T) {
	long.Test(t)
	_, groups, err := ReadRules(root)
	if err != nil {
		t.Fatal(err)
	}
	cases, err := os.ReadFile(filepath.Join("testdata", "alerts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, content := range map[string][]byte{"rules.yaml": groups, "alerts.yaml": cases} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, arguments := range [][]string{
		{"check", "rules", "--lint=all", "--lint-fatal", filepath.Join(dir, "rules.yaml")},
		{"test", "rules", filepath.Join(dir, "alerts.yaml")},
	} {
		command := exec.CommandContext(t.Context(), filepath.Join(root, "bin", "promtool"), arguments...)
		if output, err := command.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v; 'hack/tools.sh promtool' builds it\n%s",
				strings.Join(arguments, " "), err, output)
		}
	}
}

func TestEachAlertIsTestedBothWays(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("testdata", "alerts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Tests []struct {
			Alerts []struct {
				Name     string `json:"alertname"`
				Expected []any  `json:"exp_alerts"`
			} `json:"alert_rule_test"`
		} `json:"tests"`
	}
	if err := yaml.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	fires, quiet := map[string]bool{}, map[string]bool{}
	for _, test := range file.Tests {
		never := map[string]bool{}
		for _, alert := range test.Alerts {
			expects := len(alert.Expected) > 0
			fires[alert.Name] = fires[alert.Name] || expects
			if _, ok := never[alert.Name]; !ok || expects {
				never[alert.Name] = !expects
			}
		}
		for name, is := range never {
			quiet[name] = quiet[name] || is
		}
	}
	for _, alert := range alerts(t) {
		if !fires[alert.Name] || !quiet[alert.Name] {
			t.Errorf("testdata/alerts.yaml needs a case in which %s fires (there is one: %t) and one in which it "+
				"stays quiet (%t)",
				alert.Name, fires[alert.Name], quiet[alert.Name])
		}
	}
}

func TestEachAlertHasItsPage(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(root, "docs", "runbooks", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	left := map[string]bool{}
	for _, page := range pages {
		left[strings.TrimSuffix(filepath.Base(page), ".md")] = true
	}
	for _, alert := range alerts(t) {
		if !left[alert.Name] {
			t.Errorf("docs/runbooks/%s.md is missing", alert.Name)
			continue
		}
		delete(left, alert.Name)
		text, err := os.ReadFile(filepath.Join(root, "docs", "runbooks", alert.Name+".md"))
		if err != nil {
			t.Fatal(err)
		}
		at := 0
		for _, heading := range []string{"# " + alert.Name, "## Meaning", "## Impact", "## Diagnosis", "## Fix"} {
			found := strings.Index(string(text)[at:], heading+"\n")
			if found < 0 {
				t.Errorf("docs/runbooks/%s.md has no %q where it belongs", alert.Name, heading)
				continue
			}
			at += found
		}
	}
	for name := range left {
		t.Errorf("docs/runbooks/%s.md is about no alert", name)
	}
}

func TestAlertsSayWhatTheyAreAbout(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "monitoring.md"))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, alert := range alerts(t) {
		if seen[alert.Name] {
			t.Errorf("there are two alerts %s", alert.Name)
		}
		seen[alert.Name] = true
		if got, want := alert.Annotations["runbook_url"], runbooks+alert.Name+".md"; got != want {
			t.Errorf("%s: runbook_url is %q, want %q", alert.Name, got, want)
		}
		if alert.Annotations["summary"] == "" || alert.Annotations["description"] == "" || len(alert.Annotations) != 3 {
			t.Errorf("%s: want summary, description and runbook_url, got %v", alert.Name, alert.Annotations)
		}
		if severity := alert.Labels["severity"]; !slices.Contains([]string{"info", "warning", "critical"}, severity) {
			t.Errorf("%s has the severity %q", alert.Name, severity)
		}
		row := fmt.Sprintf("| [%s](runbooks/%s.md) | %s | %s | ", alert.Name, alert.Name, alert.For,
			alert.Labels["severity"])
		if !strings.Contains(string(page), "\n"+row) {
			t.Errorf("docs/monitoring.md has no row for the alert that begins with: %s", row)
		}
	}
}

// Users' dashboards and silences depend on machine-api-operator's names, durations and severities.
func TestTheMachineAPIsAlertsAreThere(t *testing.T) {
	got := map[string]string{}
	for _, alert := range alerts(t)[:5] {
		got[alert.Name] = alert.For + " " + alert.Labels["severity"]
	}
	want := map[string]string{
		"MachineWithoutValidNode": "60m warning", "MachineWithNoRunningPhase": "60m warning",
		"MachineNotYetDeleted":                       "360m warning",
		"MachineAPIOperatorMetricsCollectionFailing": "5m warning",
		"MachineHealthCheckUnterminatedShortCircuit": "30m warning",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("alerts of the Machine API (-want +got):\n%s", diff)
	}
}

func TestQueriesReadSeriesThatAreDocumented(t *testing.T) {
	long.Test(t)
	queries, err := Queries(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(queries) < 50 {
		t.Fatalf("only %d queries were found; the test would hold nothing", len(queries))
	}
	selections, err := Select(t.Context(), root, queries)
	if err != nil {
		t.Fatal(err)
	}
	documented, err := Documented(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range Problems(selections, documented) {
		t.Error(problem)
	}
}

func TestTheDashboardIsWhole(t *testing.T) {
	dashboard, err := ReadDashboard(root)
	if err != nil {
		t.Fatal(err)
	}
	if dashboard.UID == "" || dashboard.Title == "" || dashboard.SchemaVersion < 39 {
		t.Errorf("uid %q, title %q, schemaVersion %d", dashboard.UID, dashboard.Title, dashboard.SchemaVersion)
	}
	choices := []Variable{{"datasource", "datasource"}, {"cluster", "query"}, {"namespace", "query"}}
	if diff := cmp.Diff(choices, dashboard.Templating.List); diff != "" {
		t.Errorf("variables (-want +got):\n%s", diff)
	}
	source := Datasource{Type: "prometheus", UID: "${datasource}"}
	ids, taken := map[int]bool{}, map[[2]int]string{}
	for _, panel := range dashboard.Panels {
		if ids[panel.ID] || panel.Title == "" {
			t.Errorf("panel %d %q: want a title and an ID of its own", panel.ID, panel.Title)
		}
		ids[panel.ID] = true
		for x := panel.Grid.X; x < panel.Grid.X+panel.Grid.W; x++ {
			for y := panel.Grid.Y; y < panel.Grid.Y+panel.Grid.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("panel %q is outside of the grid, or overlaps with %q", panel.Title, other)
				}
				taken[[2]int{x, y}] = panel.Title
			}
		}
		if panel.Type == "row" {
			continue
		}
		if panel.Description == "" || panel.Datasource != source || len(panel.Targets) == 0 {
			t.Errorf("panel %q: want a description, queries and the data source %v", panel.Title, source)
		}
		for _, target := range panel.Targets {
			if target.Expr == "" || target.Legend == "" || target.RefID == "" || target.Datasource != source {
				t.Errorf("panel %q, query %q: want a query, a legend and the data source %v",
					panel.Title, target.RefID, source)
			}
		}
	}
}

func TestWhatIsAppliedBelongsTogether(t *testing.T) {
	command := exec.CommandContext(t.Context(), filepath.Join(root, "bin", "kubectl"), "kustomize",
		filepath.Join(root, "install", "monitoring"))
	var problem bytes.Buffer
	command.Stderr = &problem
	output, err := command.Output()
	if err != nil {
		t.Fatalf("kubectl kustomize: %v\n%s", err, problem.String())
	}
	byKind := map[string]map[string]any{}
	var monitors []map[string]any
	for document := range strings.SplitSeq(string(output), "\n---\n") {
		object := map[string]any{}
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			t.Fatal(err)
		}
		if got := object["metadata"].(map[string]any)["namespace"]; got != "openshift-machine-api" {
			t.Errorf("%v is in namespace %v", object["kind"], got)
		}
		byKind[object["kind"].(string)] = object
		if object["kind"] == "ServiceMonitor" {
			monitors = append(monitors, object)
		}
	}
	for _, kind := range []string{"PrometheusRule", "ServiceMonitor", "Role", "RoleBinding", "ConfigMap"} {
		if byKind[kind] == nil {
			t.Fatalf("there is no %s", kind)
		}
	}
	dashboard, err := os.ReadFile(filepath.Join(root, "install", "monitoring", "dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	if data := byKind["ConfigMap"]["data"].(map[string]any)["machine-iac.json"]; data != string(dashboard) {
		t.Error("the ConfigMap does not have the dashboard")
	}
	if len(monitors) != 2 {
		t.Fatalf("%d ServiceMonitors, want one of the manager and one of the operator", len(monitors))
	}
	for _, monitor := range monitors {
		monitorSelects(t, monitor)
	}
}

// monitorSelects expects a ServiceMonitor to select the Service of the manager or of the operator, and its port.
func monitorSelects(t *testing.T, monitor map[string]any) {
	t.Helper()
	var spec struct {
		Selector struct {
			MatchLabels map[string]string `json:"matchLabels"`
		} `json:"selector"`
		Endpoints []struct {
			Port string `json:"port"`
		} `json:"endpoints"`
	}
	raw, err := json.Marshal(monitor["spec"])
	if err == nil {
		err = json.Unmarshal(raw, &spec)
	}
	if err != nil || len(spec.Endpoints) != 1 {
		t.Fatalf("reading the ServiceMonitor: %v, %d endpoints", err, len(spec.Endpoints))
	}
	var documents []string
	for _, file := range []string{
		filepath.Join("controllers", "service.yaml"), filepath.Join("kubernetes", "operator", "service.yaml"),
	} {
		text, err := os.ReadFile(filepath.Join(root, "install", file))
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, strings.Split(string(text), "\n---\n")...)
	}
	for _, document := range documents {
		var service corev1.Service
		if err := yaml.Unmarshal([]byte(document), &service); err != nil {
			t.Fatal(err)
		}
		selected := service.Kind == "Service" && len(spec.Selector.MatchLabels) > 0
		for label, value := range spec.Selector.MatchLabels {
			selected = selected && service.Labels[label] == value
		}
		if selected && slices.ContainsFunc(service.Spec.Ports,
			func(p corev1.ServicePort) bool { return p.Name == spec.Endpoints[0].Port }) {
			return
		}
	}
	t.Errorf("the ServiceMonitor selects no Service that has the port %s", spec.Endpoints[0].Port)
}

// alerts returns all alerts in order.
func alerts(t *testing.T) []Alert {
	t.Helper()
	rules, _, err := ReadRules(root)
	if err != nil {
		t.Fatal(err)
	}
	var all []Alert
	for _, group := range rules.Groups {
		all = append(all, group.Rules...)
	}
	if len(all) < 10 {
		t.Fatalf("only %d alerts were found; the test would hold nothing", len(all))
	}
	return all
}

var (
	pluginCommand = regexp.MustCompile("kubectl machine ([^`#\\n]*)")
	flagSpan      = regexp.MustCompile("`(--[a-z-]+)")
	flagOf        = regexp.MustCompile(`--[a-z-]+`)
	commandName   = regexp.MustCompile(`(?m)^#+ (?:kubectl machine ([a-z -]+))$`)
)

func TestPagesNameRealCommandsAndFlags(t *testing.T) {
	manual := ""
	for _, page := range []string{
		"kubectl-machine.md", "reference/kubectl-machine.md", "preview.md", "reference/flags.md", "troubleshooting.md",
	} {
		text, err := os.ReadFile(filepath.Join(root, "docs", page))
		if err != nil {
			t.Fatal(err)
		}
		manual += string(text)
	}
	commands := []string{"plan"} // documented on another page
	for _, found := range commandName.FindAllStringSubmatch(manual, -1) {
		commands = append(commands, found[1])
	}
	if len(commands) < 8 {
		t.Fatalf("only the commands %q were found; the test would hold nothing", commands)
	}
	for _, alert := range alerts(t) {
		page, err := os.ReadFile(filepath.Join(root, "docs", "runbooks", alert.Name+".md"))
		if err != nil {
			t.Fatal(err)
		}
		flags := flagSpan.FindAllString(string(page), -1)
		for _, found := range pluginCommand.FindAllStringSubmatch(string(page), -1) {
			if !slices.ContainsFunc(commands,
				func(name string) bool { return found[1] == name || strings.HasPrefix(found[1], name+" ") }) {
				t.Errorf("docs/runbooks/%s.md: there is no command %q", alert.Name, "kubectl machine "+found[1])
			}
			for _, flag := range flagOf.FindAllString(found[1], -1) {
				flags = append(flags, "`"+flag)
			}
		}
		for _, flag := range flags {
			if !strings.Contains(manual, flag+"`") && !strings.Contains(manual, flag+" ") {
				t.Errorf("docs/runbooks/%s.md: there is no flag %s", alert.Name, flag)
			}
		}
	}
}
