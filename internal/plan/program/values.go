package program

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
	"github.com/machine-iac/machine-iac-operator/internal/engine/pulumi"
	"github.com/machine-iac/machine-iac-operator/internal/plan/offline"
	"github.com/machine-iac/machine-iac-operator/internal/plan/stub"
)

// planOf returns a preview of Pulumi's as a plan.
func (p *Planner) planOf(seen *pulumi.PlannedValues, report *engine.Report, reads []string) *offline.Plan {
	plan := &offline.Plan{Reads: reads, Report: report, Outputs: valuesOf(seen.Outputs)}
	for _, one := range seen.Resources {
		if one.Type == unknownType {
			continue
		}
		values := valuesOf(one.Values)
		if schema, known := p.schemaOf(one.Type); known {
			schema.PruneBridged(values.Unknown, one.Inputs)
		}
		plan.Resources = append(plan.Resources, offline.Resource{Address: one.Address, Type: one.Type, Action: one.Action, Values: values})
	}
	for _, one := range report.Diagnostics {
		if one.Severity != failure.SeverityError {
			plan.Warnings = append(plan.Warnings, one)
		}
	}
	return plan
}

// valuesOf returns values as a plan has them.
func valuesOf(values map[string]any) offline.Values {
	var found offline.Values
	found.After, found.Unknown, found.Sensitive = split(values)
	return found
}

// hidden replaces a sensitive value.
const hidden = "(sensitive)"

// split returns what is known of a value, and true in place of what is unknown and of what is sensitive.
func split(value any) (known, unknown, sensitive any) {
	switch {
	case pulumi.IsUnknown(value):
		return nil, true, nil
	case pulumi.IsSecret(value):
		return hidden, nil, true
	}
	switch value := value.(type) {
	case map[string]any:
		k, u, s := map[string]any{}, map[string]any{}, map[string]any{}
		for name, inner := range value {
			k[name], u[name], s[name] = split(inner)
		}
		return k, u, s
	case []any:
		k, u, s := make([]any, len(value)), make([]any, len(value)), make([]any, len(value))
		for n, inner := range value {
			k[n], u[n], s[n] = split(inner)
		}
		return k, u, s
	case float64:
		return json.Number(strconv.FormatFloat(value, 'f', -1, 64)), nil, nil
	}
	return value, nil, nil
}

// schemaOf returns the schema that a type of Pulumi's is bridged from.
func (p *Planner) schemaOf(token string) (stub.Block, bool) {
	pkg, rest, _ := strings.Cut(token, ":")
	_, name, found := strings.Cut(rest, ":")
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range p.binaries {
		for kind, schema := range one.Schemas() {
			if found && stub.BridgedName(kind) == stub.BridgedName(pkg+name) {
				return schema, true
			}
		}
	}
	return stub.Block{}, false
}
