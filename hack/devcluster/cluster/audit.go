package cluster

import (
	"fmt"

	"sigs.k8s.io/yaml"
)

// writeAuditPolicy logs the requests of some users at level Metadata: without the objects.
func writeAuditPolicy(l layout, users []string) error {
	policy := map[string]any{
		"apiVersion": "audit.k8s.io/v1", "kind": "Policy",
		"omitStages": []string{"RequestReceived"},
		"rules":      []any{map[string]any{"level": "Metadata", "users": users}, map[string]any{"level": "None"}},
	}
	data, err := yaml.Marshal(policy)
	if err != nil {
		return fmt.Errorf("encoding the audit policy: %w", err)
	}
	return writeFile(l.auditPolicy(), data)
}

// AuditLog returns the path of the audit log, one JSON event a line. It exists if the API server runs with
// [Options.Audit].
func (c *Cluster) AuditLog() string { return c.layout.auditLog() }
