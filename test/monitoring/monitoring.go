// Package monitoring compares the queries in install/monitoring with the series that a manager exposes.
package monitoring

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

type Alert struct {
	Name        string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

type Rules struct {
	Groups []struct {
		Name  string  `json:"name"`
		Rules []Alert `json:"rules"`
	} `json:"groups"`
}

// ReadRules returns the alerts of install/monitoring, and their groups as a Prometheus rule file.
func ReadRules(root string) (Rules, []byte, error) {
	raw, err := os.ReadFile(filepath.Join(root, "install", "monitoring", "prometheus-rule.yaml"))
	if err != nil {
		return Rules{}, nil, err
	}
	var object struct {
		Spec json.RawMessage `json:"spec"`
	}
	if err := yaml.Unmarshal(raw, &object); err != nil {
		return Rules{}, nil, fmt.Errorf("reading the PrometheusRule: %w", err)
	}
	var rules Rules
	if err := yaml.UnmarshalStrict(object.Spec, &rules); err != nil {
		return Rules{}, nil, fmt.Errorf("reading the PrometheusRule: %w", err)
	}
	return rules, object.Spec, nil
}

type Query struct {
	// Where is the query's location, for messages.
	Where string
	Text  string
}

// Queries returns the queries of the alerts and the dashboard in install/monitoring.
func Queries(root string) ([]Query, error) {
	rules, _, err := ReadRules(root)
	if err != nil {
		return nil, err
	}
	var found []Query
	for _, group := range rules.Groups {
		for _, alert := range group.Rules {
			found = append(found, Query{Where: "alert " + alert.Name, Text: alert.Expr})
		}
	}
	dashboard, err := ReadDashboard(root)
	if err != nil {
		return nil, err
	}
	return append(found, dashboard.queries()...), nil
}

// Selection is what one query reads.
type Selection struct {
	Query  Query
	Series []Series `json:"series"`
	// Labels are used for grouping or joining.
	Labels []string `json:"labels"`
	// Added are labels that the query itself adds to its results.
	Added []string `json:"added"`
}

// Series are selected by name and labels.
type Series struct {
	Name     string    `json:"name"`
	Matchers []Matcher `json:"matchers"`
}

type Matcher struct {
	Label string `json:"label"`
	// Type is =, !=, =~ or !~.
	Type  string `json:"type"`
	Value string `json:"value"`
}

// Select parses queries with Prometheus's parser, by running bin/promql-selectors from hack/tools.sh.
func Select(ctx context.Context, root string, queries []Query) ([]Selection, error) {
	texts := make([]string, 0, len(queries))
	for _, query := range queries {
		texts = append(texts, query.Text)
	}
	input, err := json.Marshal(texts)
	if err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, filepath.Join(root, "bin", "promql-selectors"))
	var problem bytes.Buffer
	command.Stdin, command.Stderr = bytes.NewReader(input), &problem
	output, err := command.Output()
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w; build it with 'hack/tools.sh promql-selectors'", err)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, problem.String())
	}
	var found []Selection
	if err := json.Unmarshal(output, &found); err != nil {
		return nil, fmt.Errorf("reading what %s printed: %w", command, err)
	}
	if len(found) != len(queries) {
		return nil, fmt.Errorf("%s read %d of %d queries", command, len(found), len(queries))
	}
	for i := range found {
		found[i].Query = queries[i]
	}
	return found, nil
}
