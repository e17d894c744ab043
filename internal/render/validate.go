package render

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/hclfuncs"
)

// validator checks the variables of a run with the module's validations, with the same results as
// the engine. A condition that depends on unknown values is not decided.
type validator struct {
	*findings
	module *module.Module
	// spec is the source of the variable provider_spec.
	spec *spec
	*variables
	// context contains the same values, with sensitive variables marked.
	context *hcl.EvalContext
	// budget of the context. Exceeding it is the last finding.
	budget *hclfuncs.Budget
	ended  bool
	// held caches validations that have passed.
	held *Held
}

// variableNames is the order in which variables are checked.
var variableNames = []string{module.VariableMachine, module.VariableProviderSpec, module.VariableUserData}

// validate checks variables with the module's validations. It skips a providerSpec that the module
// does not serve.
func validate(from *module.Module, read *spec, given *variables, held *Held, found *findings) {
	if read.values == nil {
		return
	}
	v := &validator{findings: found, module: from, spec: read, variables: given, held: held}
	v.budget = hclfuncs.NewBudget()
	v.context = module.EvalContextWithin(v.budget, v.marked())
	if limit := v.budget.Admit(v.values[module.VariableProviderSpec], v.values[module.VariableUserData],
		v.values[module.VariableMachine]); limit != nil {
		v.fail(&FieldError{Path: read.at, Problem: "it cannot be evaluated: " + limit.Problem, Fix: limit.Fix})
		return
	}
	for _, name := range variableNames {
		for _, validation := range from.Variable(name).Validations {
			v.check(validation)
		}
	}
	for _, one := range from.Checks() {
		v.advise(one)
	}
	if len(found.errs) == 0 {
		v.compute()
	}
}

// compute reports a local of a stack that cannot be evaluated for these variables: a run would
// fail.
func (v *validator) compute() {
	_, err := v.module.EvalLocals(v.values)
	var failed *module.LocalError
	if !errors.As(err, &failed) {
		return
	}
	var fields []field
	for _, reference := range failed.References {
		fields = append(fields, v.resolve(reference, nil)...)
	}
	fields = deepest(fields)
	reason, fix := failed.Reason, fmt.Sprintf("change it to what local.%s can be made of (%s:%d of the stack)",
		failed.Local, failed.Range.Filename, failed.Range.Start.Line)
	if failed.Limit != nil {
		reason, fix = failed.Limit.Problem, failed.Limit.Fix
	}
	// Details quote values.
	if failed.Limit == nil && !hidden(fields) && !slices.ContainsFunc(fields, field.holdsSecrets) &&
		failed.Detail != "" {
		reason += ": " + failed.Detail
	}
	_, path := v.locate(module.Validation{Variable: module.VariableProviderSpec}, fields)
	v.fail(&FieldError{
		Path: path, Fix: fix,
		Problem: fmt.Sprintf("%s cannot compute local.%s: %s", titleOf(v.module), failed.Local,
			cut(strings.TrimSuffix(reason, "."), maxReason)),
	})
}

// holdsSecrets reports whether a field has parts that are named like secrets.
func (f field) holdsSecrets() bool {
	holds := false
	if f.value != cty.NilVal {
		_ = cty.Walk(f.value, func(path cty.Path, _ cty.Value) (bool, error) {
			holds = holds || module.NamesSecret(lastName(path))
			return !holds, nil
		})
	}
	return holds
}

// advise warns about assertions of check blocks that fail. It leaves those that cannot be evaluated
// to the engine, which warns too.
func (v *validator) advise(check module.Check) {
	before, held := v.heldBefore(check.Validation)
	if before {
		return
	}
	result, diags := check.Condition.Value(v.context)
	if diags.HasErrors() {
		v.limited(check.Validation)
		return
	}
	result, _ = result.Unmark()
	converted, err := convert.Convert(result, cty.Bool)
	if err != nil || !converted.IsKnown() || converted.IsNull() {
		return
	}
	if converted.True() {
		held()
		return
	}
	_, path := v.locate(check.Validation, v.explain(check.Condition)[0])
	v.warn(Warning{Path: path, Message: v.message(check.Validation), Advice: true})
}

// marked returns the variables with sensitive ones marked.
func (v *validator) marked() map[string]cty.Value {
	marked := map[string]cty.Value{}
	for name, value := range v.values {
		if v.module.Variable(name).Sensitive {
			value = value.Mark(hclfuncs.Sensitive)
		}
		marked[name] = value
	}
	return marked
}

// wary returns the context with anything in the providerSpec that is named like a secret marked
// too.
func (v *validator) wary() *hcl.EvalContext {
	marked := v.marked()
	hidden, err := cty.Transform(marked[module.VariableProviderSpec],
		func(path cty.Path, value cty.Value) (cty.Value, error) {
			if module.NamesSecret(lastName(path)) {
				return value.Mark(hclfuncs.Sensitive), nil
			}
			return value, nil
		})
	if err == nil {
		marked[module.VariableProviderSpec] = hidden
	}
	return module.EvalContextWithin(v.budget, marked)
}

// check decides like the engine. It always evaluates the message, and rejects the variables if that
// fails.
func (v *validator) check(validation module.Validation) {
	if v.budget.Exceeded() != nil {
		return
	}
	before, held := v.heldBefore(validation)
	if before {
		return
	}
	result, diags := validation.Condition.Value(v.context)
	if diags.HasErrors() {
		if v.limited(validation) {
			return
		}
		v.unable(validation, v.explain(validation.Condition)[0], diags)
		return
	}
	if _, diags := validation.ErrorMessage.Value(v.context); diags.HasErrors() {
		if v.limited(validation) {
			return
		}
		v.unable(validation, v.references(failing{expression: validation.ErrorMessage}), diags)
		return
	}
	result, _ = result.Unmark()
	converted, err := convert.Convert(result, cty.Bool)
	switch {
	case err != nil || converted.IsKnown() && converted.IsNull():
		// Load has checked the type; null is known only now.
		v.unable(validation, v.explain(validation.Condition)[0],
			hcl.Diagnostics{{Summary: "the condition comes out neither true nor false"}})
	case converted.IsKnown() && converted.False():
		v.refuse(validation)
	case converted.IsKnown():
		held()
	}
}

// limited reports, once, that a limit has stopped the evaluation, and returns whether it has.
func (v *validator) limited(validation module.Validation) bool {
	limit := v.budget.Exceeded()
	if limit == nil || v.ended {
		return limit != nil
	}
	v.ended = true
	fields := deepest(v.references(failing{expression: validation.Condition}))
	_, path := v.locate(validation, fields)
	v.fail(&FieldError{
		Path: path, Fix: limit.Fix, InSecret: inSecret(fields),
		Problem: fmt.Sprintf("%s cannot check it (%s:%d): %s", titleOf(v.module), validation.Range.Filename,
			validation.Range.Start.Line, limit.Problem),
	})
	return true
}

// refuse reports a false condition, once for each false part of it.
func (v *validator) refuse(validation module.Validation) {
	fix := v.message(validation)
	for _, fields := range v.explain(validation.Condition) {
		own, path := v.locate(validation, fields)
		failed := &FieldError{Path: path, Fix: fix, InSecret: inSecret(fields)}
		if len(own) == 1 {
			failed.Value, failed.Fix = own[0].show(), own[0].meant()+fix
			if own[0].choice {
				failed.Fault = Unsupported
			}
		}
		failed.Problem = fmt.Sprintf("%s does not allow %s", titleOf(v.module), list(path, fields))
		v.fail(failed)
	}
}

// unable reports an expression that cannot be evaluated for these variables.
func (v *validator) unable(validation module.Validation, fields []field, diags hcl.Diagnostics) {
	_, path := v.locate(validation, fields)
	reason := oneLine(diags[0].Summary)
	// Details quote values.
	if !hidden(v.references(failing{expression: validation.Condition})) && !hidden(fields) && diags[0].Detail != "" {
		reason += ": " + oneLine(diags[0].Detail)
	}
	v.fail(&FieldError{
		Path: path, Fix: v.message(validation), InSecret: inSecret(fields),
		Problem: fmt.Sprintf("%s cannot check it: %s", titleOf(v.module),
			cut(strings.TrimSuffix(reason, "."), maxReason)),
	})
}

// Limits on what a message of a module or function may add to an error.
const (
	maxMessage = 1000
	maxReason  = 300
)

// message returns the module's message, or its position if the message would show a secret.
func (v *validator) message(validation module.Validation) string {
	elsewhere := fmt.Sprintf("the validation is in %s:%d of the module", validation.Range.Filename,
		validation.Range.Start.Line)
	context := v.context
	if len(validation.ErrorMessage.Variables()) > 0 {
		context = v.wary()
	}
	value, diags := validation.ErrorMessage.Value(context)
	if diags.HasErrors() || value.IsMarked() || !value.IsKnown() || value.IsNull() {
		return elsewhere
	}
	text, err := convert.Convert(value, cty.String)
	if err != nil || oneLine(text.AsString()) == "" {
		return elsewhere
	}
	return cut(oneLine(text.AsString()), maxMessage)
}

// lastName returns the last attribute or key of a path.
func lastName(path cty.Path) string {
	if len(path) == 0 {
		return ""
	}
	switch step := path[len(path)-1].(type) {
	case cty.GetAttrStep:
		return step.Name
	case cty.IndexStep:
		if step.Key.Type() == cty.String && step.Key.IsKnown() && !step.Key.IsNull() {
			return step.Key.AsString()
		}
	}
	return ""
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// cut truncates a text to a number of characters.
func cut(text string, limit int) string {
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	return string([]rune(text)[:limit]) + "..."
}
