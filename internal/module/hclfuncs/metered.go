package hclfuncs

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// metered is an expression that charges its work to the context's budget. References and literals
// are not wrapped: they cost nothing themselves, and code that looks for references in an
// expression would not find them.
type metered struct {
	hclsyntax.Expression
	// function is the name of the called function, or empty.
	function string
	// operands are references in it that are read in full, charged before it is evaluated.
	operands []operand
	// after charges the result.
	after []charge
}

// charge charges what is done with a value.
type charge func(*Budget, cty.Value) error

// operand is a reference, and how it is read.
type operand struct {
	hclsyntax.Expression
	charge charge
}

// Metered returns an expression that is evaluated within the limits, in a context from [Bound]. It
// modifies the expression; parts that are metered already stay unchanged.
func Metered(expression hclsyntax.Expression) hclsyntax.Expression {
	switch e := expression.(type) {
	case *hclsyntax.LiteralValueExpr:
		if NewBudget().weigh(e.Val) != nil {
			return made(e)
		}
	case *hclsyntax.TemplateWrapExpr:
		e.Wrapped = Metered(e.Wrapped)
	case *hclsyntax.ParenthesesExpr:
		e.Expression = Metered(e.Expression)
	case *hclsyntax.ObjectConsKeyExpr:
		e.Wrapped = Metered(e.Wrapped)
	case *hclsyntax.RelativeTraversalExpr:
		e.Source = Metered(e.Source)
	case *hclsyntax.FunctionCallExpr:
		return meteredCall(e)
	case *hclsyntax.BinaryOpExpr:
		return meteredOperator(e)
	case *hclsyntax.UnaryOpExpr:
		if e.Op != hclsyntax.OpNegate {
			e.Val = Metered(e.Val)
			return &metered{Expression: e}
		}
		own := made(e)
		e.Val = own.read(e.Val, exponent.check)
		return own
	case *hclsyntax.IndexExpr:
		own := &metered{Expression: e}
		e.Collection, e.Key = Metered(e.Collection), own.read(e.Key, digits.check)
		return own
	case *hclsyntax.ConditionalExpr:
		own := made(e)
		e.Condition, e.TrueResult, e.FalseResult = Metered(e.Condition), own.read(e.TrueResult,
			(*Budget).convert), own.read(e.FalseResult, (*Budget).convert)
		return own
	default:
		return meteredCollection(expression)
	}
	return expression
}

// meteredCollection is Metered for what makes collections and texts.
func meteredCollection(expression hclsyntax.Expression) hclsyntax.Expression {
	own := made(expression)
	switch e := expression.(type) {
	case *hclsyntax.TemplateExpr:
		for i, part := range e.Parts {
			e.Parts[i] = own.read(part, (*Budget).weigh)
		}
	case *hclsyntax.TemplateJoinExpr:
		e.Tuple = own.read(e.Tuple, (*Budget).weigh)
	case *hclsyntax.TupleConsExpr:
		for i, part := range e.Exprs {
			e.Exprs[i] = Metered(part)
		}
	case *hclsyntax.ObjectConsExpr:
		for i, item := range e.Items {
			e.Items[i].KeyExpr, e.Items[i].ValueExpr = Metered(item.KeyExpr), Metered(item.ValueExpr)
		}
	case *hclsyntax.ForExpr:
		e.CollExpr, e.ValExpr = own.read(e.CollExpr, (*Budget).iterate), Metered(e.ValExpr)
		if e.KeyExpr != nil {
			e.KeyExpr = Metered(e.KeyExpr)
		}
		if e.CondExpr != nil {
			e.CondExpr = Metered(e.CondExpr)
		}
	case *hclsyntax.SplatExpr:
		e.Source, e.Each = own.read(e.Source, (*Budget).iterate), Metered(e.Each)
	default:
		return expression // a reference, or metered already
	}
	return own
}

// meteredCall is Metered for calls. What functions do is charged by [Budget.call]; texts become
// numbers before they are called.
func meteredCall(e *hclsyntax.FunctionCallExpr) hclsyntax.Expression {
	own := &metered{Expression: e, function: e.Name}
	for i, arg := range e.Args {
		switch kind := parameterOf(e.Name, i); {
		case isOfNumbers(kind):
			e.Args[i] = own.read(arg, digits.check)
		case kind.IsCollectionType() && kind.ElementType() == cty.DynamicPseudoType:
			e.Args[i] = own.read(arg, (*Budget).convert)
		default:
			e.Args[i] = Metered(arg)
		}
	}
	return own
}

func meteredOperator(e *hclsyntax.BinaryOpExpr) hclsyntax.Expression {
	own := &metered{Expression: e}
	switch e.Op {
	case hclsyntax.OpLogicalAnd, hclsyntax.OpLogicalOr:
		e.LHS, e.RHS = Metered(e.LHS), Metered(e.RHS)
	case hclsyntax.OpEqual, hclsyntax.OpNotEqual:
		e.LHS, e.RHS = own.read(e.LHS, (*Budget).weigh), own.read(e.RHS, (*Budget).weigh)
	default:
		own.after = append(own.after, (*Budget).weigh)
		e.LHS, e.RHS = own.read(e.LHS, exponent.check), own.read(e.RHS, exponent.check)
	}
	return own
}

// made meters an expression whose result is something new.
func made(expression hclsyntax.Expression) *metered {
	return &metered{Expression: expression, after: []charge{(*Budget).weigh}}
}

// read meters a part with whose value the expression does something that is charged.
func (m *metered) read(part hclsyntax.Expression, does charge) hclsyntax.Expression {
	switch part := part.(type) {
	case *hclsyntax.ScopeTraversalExpr:
		m.operands = append(m.operands, operand{part, does})
		return part
	case *metered:
		return part // as are all that it is a part of
	case *hclsyntax.LiteralValueExpr:
		return Metered(part)
	}
	part = Metered(part)
	own, is := part.(*metered)
	if !is {
		own = &metered{Expression: part}
	}
	own.after = append(own.after, does)
	return own
}

// Plain returns the expression inside a metered one, and any other node unchanged.
func Plain(node hclsyntax.Node) hclsyntax.Node {
	if own, is := node.(*metered); is {
		return own.Expression
	}
	return node
}

// Value implements [hclsyntax.Expression].
func (m *metered) Value(context *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	budget := BudgetOf(context)
	if budget == nil {
		return m.ended("The expression is evaluated without limits",
			"This is a mistake in the program: a context of its package is needed.")
	}
	if m.before(context, budget) == nil {
		value, diags := m.Expression.Value(m.within(context, budget))
		if budget.exceeded == nil && !diags.HasErrors() {
			m.charge(budget, value)
		}
		if budget.exceeded == nil {
			return value, diags
		}
	}
	return m.ended("The evaluation was ended", budget.exceeded.Error())
}

// within returns the context of the expression: where it calls a function, that charges the budget.
func (m *metered) within(context *hcl.EvalContext, budget *Budget) *hcl.EvalContext {
	if m.function == "" {
		return context
	}
	own := context.NewChild()
	own.Functions = budget.call(m.function)
	return own
}

// before charges what the expression is about to read.
func (m *metered) before(context *hcl.EvalContext, budget *Budget) error {
	if err := budget.spend(1); err != nil {
		return err
	}
	for _, one := range m.operands {
		value, diags := one.Value(context)
		if diags.HasErrors() {
			continue // the expression reports it
		}
		if err := one.charge(budget, value); err != nil {
			return err
		}
	}
	return nil
}

// charge charges what the expression has made, and what is done with it.
func (m *metered) charge(budget *Budget, value cty.Value) {
	for _, one := range m.after {
		if one(budget, value) != nil {
			return
		}
	}
}

func (m *metered) ended(summary, detail string) (cty.Value, hcl.Diagnostics) {
	where := m.Range()
	return cty.DynamicVal, hcl.Diagnostics{{Severity: hcl.DiagError, Summary: summary, Detail: detail, Subject: &where}}
}

// iterate charges a loop over a value.
func (b *Budget) iterate(value cty.Value) error { return b.spend(elementWork * countOf(value)) }

// convert charges that the elements of a tuple or an object get one type: each is compared with
// each other, with all that is in it.
func (b *Budget) convert(value cty.Value) error {
	if value == cty.NilVal || !value.Type().IsTupleType() && !value.Type().IsObjectType() {
		return nil
	}
	w := weighing{budget: b}
	if err := w.add(value, 0); err != nil {
		return err
	}
	return b.spend(times(countOf(value), w.elements) / 2)
}
