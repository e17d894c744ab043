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

// field is a field of the Machine that a condition refers to.
type field struct {
	path string
	// value is the current value, or cty.NilVal.
	value cty.Value
	// hidden means that the value must not be shown.
	hidden bool
	// secret means that the value comes from a Secret.
	secret bool
	// choice means that the condition lists the allowed values.
	choice bool
	// allowed are the texts that the condition allows.
	allowed []string
	// variable is the variable that contains the field.
	variable string
}

// failing is an expression and the values of the enclosing loops' variables.
type failing struct {
	expression hclsyntax.Expression
	context    *hcl.EvalContext
	scope      map[string][]field
}

// explain returns the fields that make a condition false. Each conjunct, or element of a loop, that is false by itself
// gives one group. There is at least one group.
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
			return [][]field{slices.Concat(slices.Concat(v.parts(b.with(e.LHS))...),
				slices.Concat(v.parts(b.with(e.RHS))...))}
		case e.Op == hclsyntax.OpLogicalAnd && b.with(e.LHS).fails():
			// The right side may only make sense if the left side holds.
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
			return [][]field{v.choices(b.with(e.Args[1]), b.with(e.Args[0]))}
		}
	}
	return [][]field{v.references(b)}
}

// choices returns the fields in an expression. If there is only one, it has a choice of values.
func (v *validator) choices(b, list failing) []field {
	fields := v.references(b)
	if len(fields) != 1 {
		return fields
	}
	_, fields[0].choice = hclfuncs.Plain(b.expression).(*hclsyntax.ScopeTraversalExpr)
	values, diags := list.expression.Value(list.context)
	if diags.HasErrors() || !values.CanIterateElements() {
		return fields
	}
	for _, value := range values.AsValueSlice() {
		if value.Type() == cty.String && !value.IsMarked() && value.IsWhollyKnown() && !value.IsNull() {
			fields[0].allowed = append(fields[0].allowed, value.AsString())
		}
	}
	return fields
}

// elements returns a group for each false element of a list of conditions.
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
		if collection, _ = collection.Unmark(); diags.HasErrors() || e.KeyExpr != nil ||
			!collection.CanIterateElements() {
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

// elementFields returns the fields that an element of a collection comes from.
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

// element returns the value that a loop computes for one element, or nothing if it skips the
// element.
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

// fails reports whether the expression is known to be false.
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

// resolve returns the fields that a reference points to. There may be several if it goes through
// the result of a loop.
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

func (v *validator) root(variable string) field {
	root := field{variable: variable, value: v.values[variable], hidden: v.module.Variable(variable).Sensitive}
	switch variable {
	case module.VariableMachine:
		root.path = "metadata"
	case module.VariableCluster:
		root.path = variable
	case module.VariableUserData:
		root.path, root.secret = v.spec.userData.path, v.spec.namesUserData(v.module,
			v.values[module.VariableProviderSpec])
	default:
		root.path = v.spec.at
	}
	return root
}

// step returns the field at a key or index, or the field itself if the key is unknown.
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
	next.path, next.hidden = fieldPath(f.path, text.AsString()), f.hidden || module.NamesSecret(text.AsString())
	if next.path == "metadata.cluster_id" {
		next.path = fieldPath("metadata.labels", machinev1beta1.MachineClusterIDLabel)
	}
	return next
}

// element returns the element of a value at a key, or cty.NilVal.
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

// deepest sorts fields by path and drops those that contain another one: "placement" next to
// "placement.zone" is only a guard.
func deepest(fields []field) []field {
	fields = slices.Clone(fields)
	slices.SortStableFunc(fields, func(a, b field) int {
		order := strings.Compare(a.path, b.path)
		switch {
		case order != 0 || a.choice == b.choice:
			return order
		case a.choice:
			return -1 // keep the first of two equal ones
		default:
			return 1
		}
	})
	fields = slices.CompactFunc(fields, func(a, b field) bool { return a.path == b.path })
	return slices.DeleteFunc(slices.Clone(fields), func(f field) bool {
		return slices.ContainsFunc(fields, func(other field) bool {
			return other.path != f.path &&
				within(other.path, f.path)
		})
	})
}

// within reports whether a path equals another or is below it.
func within(path, above string) bool {
	rest, ok := strings.CutPrefix(path, above)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// locate returns the fields that belong to the validation's variable, or all fields if none does,
// and their common path.
func (v *validator) locate(validation module.Validation, fields []field) (own []field, path string) {
	for _, f := range fields {
		if f.variable == validation.Variable {
			own = append(own, f)
		}
	}
	if len(own) == 0 {
		// Users cannot change facts about the cluster in a Machine.
		own = slices.DeleteFunc(slices.Clone(fields),
			func(f field) bool { return f.variable == module.VariableCluster })
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

// parent returns the path one level up, or the empty path.
func parent(path string) string {
	if at := strings.LastIndexAny(path, ".["); at >= 0 {
		return path[:at]
	}
	return ""
}

// list returns the names and values of fields, if they may be shown. The field at the path itself
// has no name.
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

// show returns the value as shortened JSON, or "" for values that may be secret or that have
// fields.
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

// maxItems limits the items of a list in a message.
const maxItems = 4

func hidden(fields []field) bool {
	return slices.ContainsFunc(fields, func(f field) bool { return f.hidden })
}

func inSecret(fields []field) bool {
	return slices.ContainsFunc(fields, func(f field) bool { return f.secret })
}
