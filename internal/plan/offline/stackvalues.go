package offline

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
	"github.com/machine-iac/machine-iac-operator/internal/engine/pulumi"
)

// planOf converts a Pulumi preview.
func (p *StackPlanner) planOf(seen *pulumi.PlannedValues, report *engine.Report, reads []string) *Plan {
	plan := &Plan{Reads: reads, Report: report, Outputs: programValues(seen.Outputs)}
	for _, one := range seen.Resources {
		if one.Type == unknownType {
			continue
		}
		values := programValues(one.Values)
		if schema, known := p.schemaOf(one.Type); known {
			schema.PruneBridged(values.Unknown, one.Inputs)
		}
		plan.Resources = append(plan.Resources, Resource{Address: one.Address, Type: one.Type, Action: one.Action,
			Values: values})
	}
	for _, one := range report.Diagnostics {
		if one.Severity != failure.SeverityError {
			plan.Warnings = append(plan.Warnings, one)
		}
	}
	return plan
}

func programValues(values map[string]any) Values {
	var found Values
	found.After, found.Unknown, found.Sensitive = split(values)
	return found
}

// hidden replaces a sensitive value.
const hidden = "(sensitive)"

// split separates the known part of a value from marks: true in place of unknown and of sensitive values.
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

// schemaOf returns the Terraform schema of a bridged Pulumi type.
func (p *StackPlanner) schemaOf(token string) (block, bool) {
	pkg, rest, _ := strings.Cut(token, ":")
	_, name, found := strings.Cut(rest, ":")
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range p.binaries {
		for kind, schema := range one.Schemas() {
			if found && bridgedName(kind) == bridgedName(pkg+name) {
				return schema, true
			}
		}
	}
	return block{}, false
}
