package offline

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/engine/pulumi"
)

// planOf answers what is foreseen as a plan.
func (p *StackPlanner) planOf(seen *pulumi.PlannedValues, report *engine.Report, reads []string) *Plan {
	plan := &Plan{Reads: reads, Report: report, Outputs: foreseenValues(seen.Outputs)}
	for _, one := range seen.Resources {
		if one.Type == unknownType {
			continue
		}
		values := foreseenValues(one.Values)
		if schema, known := p.schemaOf(one.Type); known {
			schema.pruneGiven(values.Unknown, one.Inputs)
		}
		plan.Resources = append(plan.Resources, Resource{Address: one.Address, Type: one.Type, Action: one.Action, Values: values})
	}
	for _, one := range report.Diagnostics {
		if one.Severity != engine.SeverityError {
			plan.Warnings = append(plan.Warnings, one)
		}
	}
	return plan
}

// foreseenValues answers values as a plan has them.
func foreseenValues(values map[string]any) Values {
	var found Values
	found.After, found.Unknown, found.Sensitive = takeApart(values)
	return found
}

// hidden stands in the place of a value that is not shown.
const hidden = "(sensitive)"

// takeApart answers what is known of a value, and true in place of what is not and of what must not show.
func takeApart(value any) (known, unknown, sensitive any) {
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
			k[name], u[name], s[name] = takeApart(inner)
		}
		return k, u, s
	case []any:
		k, u, s := make([]any, len(value)), make([]any, len(value)), make([]any, len(value))
		for n, inner := range value {
			k[n], u[n], s[n] = takeApart(inner)
		}
		return k, u, s
	case float64:
		return json.Number(strconv.FormatFloat(value, 'f', -1, 64)), nil, nil
	}
	return value, nil, nil
}

// schemaOf answers the schema that a type of Pulumi's is bridged from.
func (p *StackPlanner) schemaOf(token string) (block, bool) {
	pkg, rest, _ := strings.Cut(token, ":")
	_, name, found := strings.Cut(rest, ":")
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range p.impostors {
		for kind, schema := range one.standIn.resources {
			if found && plain(kind) == plain(pkg+name) {
				return schema, true
			}
		}
	}
	return block{}, false
}

// plain answers a name as it is spelled by both, the bridge and what it bridges: the former writes capitals in place of underscores.
func plain(name string) string { return strings.ToLower(strings.ReplaceAll(name, "_", "")) }

// property answers the name of what the bridge calls by another: that of a list it writes in the plural.
func property(name string, has func(name string) bool) (string, bool) {
	name = plain(name)
	singular := []string{name, strings.TrimSuffix(name, "s"), strings.TrimSuffix(name, "es")}
	if stem, ok := strings.CutSuffix(name, "ies"); ok {
		singular = append(singular, stem+"y")
	}
	for _, one := range singular {
		if has(one) {
			return one, true
		}
	}
	return "", false
}

// pruneGiven takes out of the marks of what is unknown what [block.prune] does, by what a program gives.
func (b block) pruneGiven(unknown any, given any) {
	attributes, blocks := map[string]attribute{}, map[string]nested{}
	for name, one := range b.attributes {
		attributes[plain(name)] = one
	}
	for name, one := range b.blocks {
		blocks[plain(name)] = one
	}
	marks, _ := unknown.(map[string]any)
	object, _ := given.(map[string]any)
	for name, mark := range marks {
		if at, ok := property(name, func(name string) bool { _, ok := attributes[name]; return ok }); ok {
			one := attributes[at]
			if _, said := object[name]; mark == true && one.optional && !one.computed && !said {
				delete(marks, name)
			}
			continue
		}
		at, ok := property(name, func(name string) bool { _, ok := blocks[name]; return ok })
		if !ok {
			continue
		}
		entries, isList := mark.([]any)
		said, _ := object[name].([]any)
		if !isList {
			entries, said = []any{mark}, []any{object[name]}
		}
		for n, entry := range entries {
			var one any
			if n < len(said) {
				one = said[n]
			}
			blocks[at].pruneGiven(entry, one)
		}
	}
}
