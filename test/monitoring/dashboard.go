package monitoring

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Dashboard is the part of a Grafana dashboard that tests read.
type Dashboard struct {
	Title         string `json:"title"`
	UID           string `json:"uid"`
	SchemaVersion int    `json:"schemaVersion"`
	Templating    struct {
		List []Variable `json:"list"`
	} `json:"templating"`
	Panels []Panel `json:"panels"`
}

// Variable is a drop-down at the top of the dashboard.
type Variable struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

// Panel is a graph, a number or a row's title.
type Panel struct {
	ID          int        `json:"id"`
	Type        string     `json:"type"`
	Title       string     `json:"title"`
	Description string     `json:"description"`
	Datasource  Datasource `json:"datasource"`
	Grid        Grid       `json:"gridPos"`
	Targets     []Target   `json:"targets"`
}

// Grid is a panel's position. A dashboard has 24 columns.
type Grid struct {
	X int `json:"x"`
	Y int `json:"y"`
	W int `json:"w"`
	H int `json:"h"`
}

type Target struct {
	RefID      string     `json:"refId"`
	Datasource Datasource `json:"datasource"`
	Expr       string     `json:"expr"`
	Legend     string     `json:"legendFormat"`
}

type Datasource struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

// ReadDashboard reads install/monitoring/dashboard.json.
func ReadDashboard(root string) (Dashboard, error) {
	raw, err := os.ReadFile(filepath.Join(root, "install", "monitoring", "dashboard.json"))
	if err != nil {
		return Dashboard{}, err
	}
	var read Dashboard
	if err := json.NewDecoder(bytes.NewReader(raw)).Decode(&read); err != nil {
		return Dashboard{}, fmt.Errorf("reading dashboard.json: %w", err)
	}
	return read, nil
}

// queries returns all panels' queries, with Grafana's intervals replaced by durations.
func (d Dashboard) queries() []Query {
	var found []Query
	for _, panel := range d.Panels {
		for _, target := range panel.Targets {
			found = append(found, Query{
				Where: fmt.Sprintf("query %s of panel %q", target.RefID, panel.Title),
				Text:  strings.ReplaceAll(target.Expr, "$__rate_interval", "5m"),
			})
		}
	}
	return found
}
