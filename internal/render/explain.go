package render

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/hclfuncs"
)

// field is a place in the Machine that a condition looks at.
type field struct {
	path string
	// value is what is there; cty.NilVal when nothing is.
	value cty.Value
	// hidden says that the value must not be shown.
	hidden bool
	// secret says that the value comes from a Secret.
	secret bool
	// choice says that the condition offers a choice for it.
	choice bool
	// variable is the one that the field is a part of.
	variable string
}

// failing is an expression and the values of the names in it that a loop around it introduced.
type failing struct {
	expression hclsyntax.Expression
	context    *hcl.EvalContext
	scope      map[string][]field
}

// explain returns which fields make a condition come out false, a group for each part of the condition that does on its own: a
// conjunct, or an element that a loop looks at. There is at least one group.
func (v *validator) explain(condition hclsyntax.Expression) [][]field {
	groups := v.parts(failing{expression: condition, context: v.context})
	for i, group := range groups {
		groups[i] = deepest(group)
	}
	return groups
}

func (v *validator) parts(b failing) [][]field {
	switch e := hclfuncs.Plain(b.expression).(type) {
	case *hclsyntax.ParenthesesExpr:
		return v.parts(b.with(e.Expression))
	case *hclsyntax.BinaryOpExpr:
		switch {
		case e.Op == hclsyntax.OpLogicalOr:
			return [][]field{slices.Concat(slices.Concat(v.parts(b.with(e.LHS))...), slices.Concat(v.parts(b.with(e.RHS))...))}
		case e.Op == hclsyntax.OpLogicalAnd && b.with(e.LHS).fails():
			// What follows may make sense only when this holds.
			return v.parts(b.with(e.LHS))
		case e.Op == hclsyntax.OpLogicalAnd:
			return v.parts(b.with(e.RHS))
		}
	case *hclsyntax.FunctionCallExpr:
		switch name := strings.TrimPrefix(e.Name, "core::"); {
		case name == "alltrue" && len(e.Args) == 1:
			if groups := v.elements(b.with(e.Args[0])); len(groups) > 0 {
				return groups
			}
		case name == "contains" && len(e.Args) == 2 && len(e.Args[0].Variables()) == 0:
			return [][]field{v.choices(b.with(e.Args[1]))}
		}
	}
	return [][]field{v.references(b)}
}

// choices returns the fields that an expression refers to, for which there is a choice of values when it is but one.
func (v *validator) choices(b failing) []field {
	fields := v.references(b)
	if _, plain := hclfuncs.Plain(b.expression).(*hclsyntax.ScopeTraversalExpr); plain && len(fields) == 1 {
		fields[0].choice = true
	}
	return fields
}

// elements returns a group for each element of a list of conditions that comes out false.
func (v *validator) elements(list failing) [][]field {
	var groups [][]field
	switch e := hclfuncs.Plain(list.expression).(type) {
	case *hclsyntax.TupleConsExpr:
		for _, one := range e.Exprs {
			if element := list.with(one); element.fails() {
				groups = append(groups, v.parts(element)...)
			}
		}
	case *hclsyntax.ForExpr:
		collection, diags := e.CollExpr.Value(list.context)
		if collection, _ = collection.Unmark(); diags.HasErrors() || e.KeyExpr != nil || !collection.CanIterateElements() {
			return nil
		}
		position := 0
		for key, value := range collection.Elements() {
			element := list.element(e, key, value)
			if element.fails() {
				element.scope[e.ValVar] = v.elementFields(list.with(e.CollExpr), position, key, value)
				groups = append(groups, v.parts(element)...)
			}
			if position++; len(groups) > maxFindings {
				break
			}
		}
	}
	return groups
}

// elementFields returns where the element of a collection comes from.
func (v *validator) elementFields(collection failing, position int, key, value cty.Value) []field {
	switch e := hclfuncs.Plain(collection.expression).(type) {
	case *hclsyntax.TupleConsExpr:
		if position < len(e.Exprs) {
			return v.references(collection.with(e.Exprs[position]))
		}
	case *hclsyntax.ScopeTraversalExpr:
		fields := slices.Clone(v.resolve(e.Traversal, collection.scope))
		for i := range fields {
			if !fields[i].value.Type().IsSetType() {
				fields[i] = fields[i].step(key)
			}
			fields[i].value, _ = value.UnmarkDeep()
		}
		return fields
	}
	return v.references(collection)
}

func (b failing) with(expression hclsyntax.Expression) failing {
	return failing{expression: expression, context: b.context, scope: b.scope}
}

// element returns what a loop evaluates for one element. Where the loop leaves the element out, that is nothing.
func (b failing) element(loop *hclsyntax.ForExpr, key, value cty.Value) failing {
	context := b.context.NewChild()
	context.Variables = map[string]cty.Value{loop.ValVar: value}
	if loop.KeyVar != "" {
		context.Variables[loop.KeyVar] = key
	}
	scope := maps.Clone(b.scope)
	if scope == nil {
		scope = map[string][]field{}
	}
	delete(scope, loop.KeyVar)
	if loop.CondExpr != nil {
		if left := (failing{expression: loop.CondExpr, context: context}); left.fails() {
			return failing{scope: scope}
		}
	}
	return failing{expression: loop.ValExpr, context: context, scope: scope}
}

// fails reports whether the expression is known not to come out true.
func (b failing) fails() bool {
	if b.expression == nil {
		return false
	}
	value, diags := b.expression.Value(b.context)
	if diags.HasErrors() {
		return true
	}
	value, _ = value.Unmark()
	converted, err := convert.Convert(value, cty.Bool)
	return err != nil || converted.IsKnown() && (converted.IsNull() || converted.False())
}

// references returns the fields that an expression refers to.
func (v *validator) references(b failing) []field {
	var fields []field
	for _, reference := range b.expression.Variables() {
		fields = append(fields, v.resolve(reference, b.scope)...)
	}
	return fields
}

// resolve returns the fields that a reference leads to; several when it goes through what a loop made of several.
func (v *validator) resolve(reference hcl.Traversal, scope map[string][]field) []field {
	starts, steps := scope[reference.RootName()], reference[1:]
	if name := module.ReferencedVariable(reference); name != "" {
		starts, steps = []field{v.root(name)}, reference[2:]
	}
	var fields []field
	for _, at := range starts {
		for _, step := range steps {
			switch step := step.(type) {
			case hcl.TraverseAttr:
				at = at.step(cty.StringVal(step.Name))
			case hcl.TraverseIndex:
				at = at.step(step.Key)
			}
		}
		fields = append(fields, at)
	}
	return fields
}

// root returns the field of a variable as a whole.
func (v *validator) root(variable string) field {
	root := field{variable: variable, value: v.values[variable], hidden: v.module.Variable(variable).Sensitive}
	switch variable {
	case module.VariableMachine:
		root.path = "metadata"
	case module.VariableCluster:
		root.path = variable
	case module.VariableUserData:
		root.path, root.secret = v.spec.userData.path, v.spec.namesUserData(v.module, v.values[module.VariableProviderSpec])
	default:
		root.path = v.spec.at
	}
	return root
}

// step returns the field at a key or an index below; the field itself where that is not known.
func (f field) step(key cty.Value) field {
	if key, _ = key.Unmark(); key.IsNull() || !key.IsKnown() {
		return f
	}
	next := f
	next.value = element(f.value, key)
	if key.Type() == cty.Number {
		index, _ := key.AsBigFloat().Int64()
		next.path = indexPath(f.path, int(index))
		return next
	}
	text, err := convert.Convert(key, cty.String)
	if err != nil {
		return f
	}
	next.path, next.hidden = fieldPath(f.path, text.AsString()), f.hidden || secretName.MatchString(text.AsString())
	if next.path == "metadata.cluster_id" {
		next.path = fieldPath("metadata.labels", machinev1beta1.MachineClusterIDLabel)
	}
	return next
}

// element returns what a value holds at a key, cty.NilVal when that is nothing.
func element(value, key cty.Value) cty.Value {
	if value == cty.NilVal || !value.IsKnown() || value.IsNull() {
		return cty.NilVal
	}
	switch kind := value.Type(); {
	case kind.IsObjectType():
		if key.Type() == cty.String && kind.HasAttribute(key.AsString()) {
			return value.GetAttr(key.AsString())
		}
	case kind.IsMapType(), kind.IsListType(), kind.IsTupleType():
		if has := value.HasIndex(key); has.IsKnown() && has.True() {
			return value.Index(key)
		}
	}
	return cty.NilVal
}

// deepest sorts fields by path and drops those of which a part is there too: "placement" beside "placement.zone" is but a guard.
func deepest(fields []field) []field {
	fields = slices.Clone(fields)
	slices.SortStableFunc(fields, func(a, b field) int {
		order := strings.Compare(a.path, b.path)
		switch {
		case order != 0 || a.choice == b.choice:
			return order
		case a.choice:
			return -1 // of two that are the same the first is kept
		default:
			return 1
		}
	})
	fields = slices.CompactFunc(fields, func(a, b field) bool { return a.path == b.path })
	return slices.DeleteFunc(slices.Clone(fields), func(f field) bool {
		return slices.ContainsFunc(fields, func(other field) bool { return other.path != f.path && within(other.path, f.path) })
	})
}

// within reports whether a path is another or leads below it.
func within(path, above string) bool {
	rest, ok := strings.CutPrefix(path, above)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// locate returns those of the fields that belong to the variable which the validation is of, or all of them where none does, and
// the path that leads to them.
func (v *validator) locate(validation module.Validation, fields []field) (own []field, path string) {
	for _, f := range fields {
		if f.variable == validation.Variable {
			own = append(own, f)
		}
	}
	if len(own) == 0 {
		// Nobody can change in a Machine what the cluster is.
		own = slices.DeleteFunc(slices.Clone(fields), func(f field) bool { return f.variable == module.VariableCluster })
	}
	if len(own) == 0 {
		return nil, v.root(validation.Variable).path
	}
	path = own[0].path
	for _, f := range own {
		for path != "" && !within(f.path, path) {
			path = parent(path)
		}
	}
	if path == "" {
		path = v.root(validation.Variable).path
	}
	return own, path
}

// parent returns the path one step up; the empty path when there is none.
func parent(path string) string {
	if at := strings.LastIndexAny(path, ".["); at >= 0 {
		return path[:at]
	}
	return ""
}

// list names the fields and their values, as far as these may be shown. The one at the path itself goes without its name.
func list(path string, fields []field) string {
	var at, others []string
	for _, f := range fields {
		name, shown := strings.TrimPrefix(strings.TrimPrefix(f.path, path), "."), f.show()
		switch {
		case name == "" && shown == "":
			at = append(at, "the value")
		case name == "":
			at = append(at, shown)
		default:
			others = append(others, strings.TrimSpace(name+" "+shown))
		}
	}
	if len(fields) == 0 {
		return "the value"
	}
	return strings.Join(slices.Concat(at, others), " with ")
}

// show returns the value as JSON, shortened; nothing for what may be secret, and for what has fields of its own.
func (f field) show() string {
	if f.hidden || f.value == cty.NilVal || !f.value.IsWhollyKnown() {
		return ""
	}
	switch kind := f.value.Type(); {
	case f.value.IsNull():
		return "null"
	case kind == cty.String:
		return show(f.value.AsString())
	case kind == cty.Number:
		return show(json.Number(f.value.AsBigFloat().Text('f', -1)))
	case kind == cty.Bool:
		return show(f.value.True())
	case kind.IsCollectionType() && !kind.IsMapType() && kind.ElementType().IsPrimitiveType():
		items := []string{}
		for _, item := range f.value.Elements() {
			if items = append(items, field{value: item}.show()); len(items) > maxItems {
				items[maxItems] = "..."
				break
			}
		}
		return "[" + strings.Join(items, ", ") + "]"
	default:
		return ""
	}
}

// maxItems bounds the items of a list that a message shows.
const maxItems = 4

func hidden(fields []field) bool {
	return slices.ContainsFunc(fields, func(f field) bool { return f.hidden })
}

func inSecret(fields []field) bool {
	return slices.ContainsFunc(fields, func(f field) bool { return f.secret })
}
