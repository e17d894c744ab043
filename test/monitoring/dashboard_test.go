package monitoring

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/machine-iac/machine-iac-operator/test/long"
)

// An external label such as cluster is missing within the cluster, where its variable is empty.
func TestEachQueryOfTheDashboardIsOfTheChosenClusterAndNamespace(t *testing.T) {
	long.Test(t)
	dashboard, err := ReadDashboard(root)
	if err != nil {
		t.Fatal(err)
	}
	selections, err := Select(t.Context(), root, dashboard.queries())
	if err != nil {
		t.Fatal(err)
	}
	for _, selection := range selections {
		for _, series := range selection.Series {
			for _, want := range []Matcher{{"cluster", "=", "$cluster"}, {"namespace", "=~", "$namespace"}} {
				if !slices.Contains(series.Matchers, want) {
					t.Errorf("%s: %s is not selected by %v", selection.Query.Where, series.Name, want)
				}
			}
		}
	}
}

// recorded are two clusters with two installations in one of them, each with two replicas: the labels of a series by
// its value in the first and in the second replica.
var recorded = map[string][2]string{
	`mapi_machine_items{cluster="east", namespace="a"}`:                                                     {"3", "3"},
	`mapi_machine_items{cluster="east", namespace="b"}`:                                                     {"4", "4"},
	`mapi_machine_items{cluster="west", namespace="a"}`:                                                     {"100", "100"},
	`mapi_machine_items{namespace="a"}`:                                                                     {"7", "7"},
	`mapi_machine_created_timestamp_seconds{cluster="east", namespace="a", name="m", phase="Provisioning"}`: {"1", "1"},
	`mapi_machine_created_timestamp_seconds{cluster="east", namespace="b", name="m", phase="Provisioning"}`: {"1", "1"},
	`machine_iac_runs_queued{cluster="east", namespace="a", operation="create"}`:                            {"2", "0"},
	`machine_iac_runs_queued{cluster="east", namespace="b", operation="drift"}`:                             {"5", "0"},
	`machine_iac_machines_drifted{cluster="east", namespace="a", result="changed"}`:                         {"1", "0"},
	`machine_iac_machines_drifted{cluster="east", namespace="b", result="changed"}`:                         {"1", "0"},
	`machine_iac_orphaned_states{cluster="east", namespace="a"}`:                                            {"1", "0"},
	`machine_iac_orphaned_states{cluster="east", namespace="b"}`:                                            {"2", "0"},
	`machine_iac_orphaned_instances{cluster="east", namespace="a"}`:                                         {"0", "0"},
	`machine_iac_orphaned_instances{cluster="east", namespace="b"}`:                                         {"4", "0"},
	`leader_election_master_status{cluster="east", namespace="a", name="machine-iac-controllers-leader"}`:   {"1", "0"},
	`leader_election_master_status{cluster="east", namespace="b", name="machine-iac-controllers-leader"}`:   {"0", "0"},
	`machine_iac_installation_condition{cluster="east", namespace="b", condition="Degraded"}`:               {"1", "0"},
	`machine_iac_memory_limit_bytes{cluster="east", namespace="a"}`:                                         {"1000", "1000"},
	`machine_iac_memory_limit_bytes{cluster="east", namespace="b"}`:                                         {"0", "0"},
	`machine_iac_machines_module_held{cluster="east", namespace="a"}`:                                       {"1", "0"},
	`machine_iac_machines_module_held{cluster="east", namespace="b"}`:                                       {"1", "0"},
	`mapi_machinehealthcheck_short_circuit{cluster="east", namespace="b", name="workers"}`:                  {"1", "0"},
	`mapi_machinehealthcheck_short_circuit{cluster="east", namespace="a", name="workers"}`:                  {"0", "0"},
}

// TestTheDashboardAddsInstallationsUp evaluates queries over recorded series: replicas of one installation show the
// same, and installations add up.
func TestTheDashboardAddsInstallationsUp(t *testing.T) {
	long.Test(t)
	type samples = []map[string]any
	one := func(value float64) samples { return samples{{"labels": "{}", "value": value}} }
	cases := []struct {
		panel, refID, cluster, namespace string
		want                             samples
	}{
		{"Machines", "A", "east", ".+", one(7)},
		{"Machines", "A", "east", "b", one(4)},
		{"Machines", "A", "west", ".+", one(100)},
		{"Machines", "A", "", ".+", one(7)},
		{"Not Running", "A", "east", ".+", one(2)},
		{"Runs waiting", "A", "east", "a", one(2)},
		{"Drifted", "A", "east", ".+", one(2)},
		{"Orphans", "A", "east", ".+", one(7)},
		{"Replicas that lead", "A", "east", ".+", one(0)},
		{"Replicas that lead", "A", "east", "a", one(1)},
		{"Conditions of the operator", "A", "east", ".+", samples{{"labels": `{namespace="b", condition="Degraded"}`, "value": 1}}},
		{"Memory", "C", "east", ".+", samples{{"labels": `{namespace="a"}`, "value": 1000}}},
		{"Drifted Machines", "A", "east", ".+", samples{{"labels": `{result="changed"}`, "value": 2}}},
		{"Orphans and Machines that keep a module", "C", "east", ".+", one(2)},
		{"MachineHealthChecks", "B", "east", ".+", samples{{"labels": `{namespace="b", name="workers"}`, "value": 1}}},
	}
	var series, expressions []map[string]any
	for labels, values := range recorded {
		for replica, value := range values {
			pod := []string{`, pod="0"}`, `, pod="1"}`}[replica]
			series = append(series, map[string]any{"series": strings.TrimSuffix(labels, "}") + pod, "values": value + "x5"})
		}
	}
	dashboard, err := ReadDashboard(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range cases {
		chosen := strings.NewReplacer("$cluster", tc.cluster, "$namespace", tc.namespace, "$__rate_interval", "5m")
		expressions = append(expressions, map[string]any{
			"expr": chosen.Replace(dashboard.query(t, tc.panel, tc.refID)), "eval_time": "5m", "exp_samples": tc.want,
		})
	}
	content, err := yaml.Marshal(map[string]any{"evaluation_interval": "1m", "tests": []map[string]any{
		{"interval": "1m", "input_series": series, "promql_expr_test": expressions},
	}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "dashboard.yaml")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	promtool := exec.CommandContext(t.Context(), filepath.Join(root, "bin", "promtool"), "test", "rules", file)
	if output, err := promtool.CombinedOutput(); err != nil {
		t.Errorf("%v; 'hack/tools.sh promtool' builds it\n%s", err, output)
	}
}

// query returns a query of a panel.
func (d Dashboard) query(t *testing.T, title, refID string) string {
	t.Helper()
	for _, panel := range d.Panels {
		for _, target := range panel.Targets {
			if panel.Title == title && target.RefID == refID {
				return target.Expr
			}
		}
	}
	t.Fatalf("the panel %q has no query %s", title, refID)
	return ""
}
