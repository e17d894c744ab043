package operands

import (
	"fmt"
	"io/fs"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	// Dashboard is the name of the ConfigMap with the dashboard.
	Dashboard = "machine-iac-dashboard"
	// ConsoleNamespace is where OpenShift's console looks for dashboards.
	ConsoleNamespace = "openshift-config-managed"

	partOf        = "machine-iac-operator"
	dashboardFile = monitoring + "/dashboard.json"
	dashboardKey  = "machine-iac.json"
	grafanaLabel  = "grafana_dashboard"              // Grafana's sidecar loads ConfigMaps with it
	consoleLabel  = "console.openshift.io/dashboard" // as OpenShift's console does
)

// dashboard returns the ConfigMap with the dashboard, as the manifests' kustomization creates it.
func (in Inputs) dashboard(manifests fs.FS) (*unstructured.Unstructured, error) {
	content, err := fs.ReadFile(manifests, dashboardFile)
	if err != nil {
		return nil, fmt.Errorf("reading the dashboard: %w", err)
	}
	object := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{dashboardKey: string(content)}}}
	object.SetAPIVersion("v1")
	object.SetKind("ConfigMap")
	object.SetName(Dashboard)
	object.SetNamespace(in.Namespace)
	object.SetLabels(map[string]string{"app.kubernetes.io/name": partOf, grafanaLabel: "1"})
	if in.Console {
		object.SetNamespace(ConsoleNamespace)
		object.SetLabels(map[string]string{"app.kubernetes.io/name": partOf, consoleLabel: "true"})
	}
	return object, nil
}
