package contract

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/machine-iac/machine-iac-operator/internal/module"
)

// actionForms match the names of permissions on each cloud.
var actionForms = map[string]*regexp.Regexp{
	"AWS":   regexp.MustCompile(`^[a-z0-9-]+:[A-Za-z0-9]+$`),
	"Azure": regexp.MustCompile(`^[A-Za-z]+\.[A-Za-z]+(/[A-Za-z]+)+$`),
	"GCP":   regexp.MustCompile(`^[a-z]+\.[A-Za-z]+\.[A-Za-z]+$`),
}

// checkRights checks the permissions that the credentials need.
func (m *Metadata) checkRights() {
	for n, rights := range m.Spec.Rights {
		at := fmt.Sprintf("spec.rights[%d]", n)
		form, known := actionForms[rights.Provider]
		if !known {
			m.AtField(at+".provider", fmt.Sprintf("is %q", rights.Provider), "write AWS, Azure or GCP")
			continue
		}
		if len(rights.Actions) == 0 {
			m.AtField(at+".actions", "is empty", "list the permissions that the module needs, or remove the entry")
		}
		for i, action := range rights.Actions {
			if !form.MatchString(action) {
				m.AtField(fmt.Sprintf("%s.actions[%d]", at, i),
					fmt.Sprintf("is %q, which is not an action of %s", action, rights.Provider), "write one action, without wildcards")
			}
			if slices.Contains(rights.Actions[:i], action) {
				m.AtField(fmt.Sprintf("%s.actions[%d]", at, i), fmt.Sprintf("names %s twice", action), "keep one")
			}
		}
	}
}

// ReadRights returns the permissions of module.yaml with their conditions parsed. It reports and
// skips those whose condition cannot be evaluated before a run.
func ReadRights(meta *Metadata, variables map[string]module.Variable) []module.Right {
	known := maps.Clone(variables)
	delete(known, module.VariableUserData)
	own := &Report{}
	c := validationCheck{variables: known, found: own, context: module.EvalContext(UnknownValues(known))}
	var read []module.Right
	for n, rights := range meta.Spec.Rights {
		right := module.Right{ModuleRights: rights}
		if rights.When != "" {
			right.Condition = c.rightsCondition(rights.When)
		}
		for _, breach := range own.breaches {
			meta.AtField(fmt.Sprintf("spec.rights[%d].when", n), breach.Problem, breach.Fix)
		}
		if len(own.breaches) == 0 {
			read = append(read, right)
		}
		own.breaches = nil
	}
	return read
}

// rightsCondition parses a condition and reports errors.
func (c validationCheck) rightsCondition(text string) hclsyntax.Expression {
	expression, diags := hclsyntax.ParseExpression([]byte(text), module.MetadataFile, hcl.InitialPos)
	if diags.HasErrors() {
		c.found.diagnostics(module.MetadataFile, "", diags)
		return nil
	}
	if !OnlyVariables(expression.Variables()) {
		c.found.At(expression.Range(), "", "refers to no variable, or to something else",
			"refer only to var.provider_spec, var.machine and var.cluster, or remove it")
	} else if c.expression("", expression) {
		c.result("", expression, cty.Bool, "use an expression that returns true or false")
	}
	return expression
}
