package hclfuncs

import (
	"fmt"
	"reflect"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// Limits of an evaluation. They are far above what a module needs, and low enough to evaluate or
// reject any input within a second and with little memory. All but MaxWork apply to each value that
// an expression creates.
const (
	// MaxWork limits the work of all expressions that are evaluated together. The unit is the cost of
	// reading 16 bytes of text.
	MaxWork = 4_000_000
	// MaxText is the length of a text in bytes.
	MaxText = 4 << 20
	// MaxElements is how many values there may be in one, at all depths.
	MaxElements = 100_000
	// MaxDepth is how deep values may nest.
	MaxDepth = 100
	// MaxBits is between what powers of two a number is: about 616 decimal places before the point or
	// behind it.
	MaxBits = 2048
	// MaxDigits is the length of a text that is read as a number.
	MaxDigits = 2048
)

// elementWork is the work of a value besides that of its text.
const elementWork = 4

// textWork is how many bytes of a text are one unit of work.
const textWork = 16

// LimitError means that an evaluation exceeded a limit. It quotes no values.
type LimitError struct {
	// Problem is the limit, and Fix how to meet it.
	Problem, Fix string
}

// Error implements error.
func (e *LimitError) Error() string { return e.Problem + "; " + e.Fix }

// Budget is the rest of MaxWork. It serves one evaluation in one goroutine.
type Budget struct {
	left int
	// exceeded is stored, since try and can would hide the error.
	exceeded *LimitError
	// calls are the functions that were called.
	calls map[string]map[string]function.Function
}

// NewBudget returns a budget of MaxWork.
func NewBudget() *Budget { return &Budget{left: MaxWork} }

// Exceeded returns the limit that stopped the evaluation, or nil.
func (b *Budget) Exceeded() *LimitError { return b.exceeded }

// Used returns the work that is done.
func (b *Budget) Used() int { return MaxWork - b.left }

// Admit charges the values that an evaluation begins with, and reports those that are beyond a
// limit.
func (b *Budget) Admit(values ...cty.Value) *LimitError {
	for _, value := range values {
		if b.weigh(value) != nil {
			break
		}
	}
	return b.exceeded
}

// spend charges work before it is done.
func (b *Budget) spend(work int) error {
	if b.exceeded == nil && (work < 0 || work > b.left) {
		return b.fail(fmt.Sprintf("the evaluation exceeds the limit of %d units of work", MaxWork),
			"use shorter lists and shorter texts")
	}
	if b.exceeded != nil {
		return b.exceeded
	}
	b.left -= work
	return nil
}

// fail ends the evaluation.
func (b *Budget) fail(problem, fix string) error {
	if b.exceeded == nil {
		b.exceeded = &LimitError{Problem: problem, Fix: fix}
	}
	return b.exceeded
}

// weigh charges a value and all that is in it.
func (b *Budget) weigh(value cty.Value) error {
	w := weighing{budget: b}
	return w.add(value, 0)
}

// weighing is a value while it is weighed.
type weighing struct {
	budget   *Budget
	elements int
	// bytes are those of all texts.
	bytes int
}

func (w *weighing) add(value cty.Value, depth int) error {
	if value == cty.NilVal {
		return nil
	}
	if err := w.budget.spend(elementWork); err != nil {
		return err
	}
	if w.elements++; w.elements > MaxElements {
		return w.budget.fail(fmt.Sprintf("a list or an object holds more than %d values", MaxElements), "write shorter lists")
	}
	if depth > MaxDepth {
		return w.budget.fail(fmt.Sprintf("a value nests deeper than %d levels", MaxDepth), "write it flatter")
	}
	if value, _ = value.Unmark(); !value.IsKnown() || value.IsNull() {
		return nil
	}
	switch value.Type() {
	case cty.String:
		return w.text(value.AsString())
	case cty.Number:
		return w.number(value)
	default:
		return w.inside(value, depth+1)
	}
}

// inside adds what is in a list or an object.
func (w *weighing) inside(value cty.Value, depth int) error {
	if kind := value.Type(); kind.IsObjectType() {
		for name := range kind.AttributeTypes() {
			if err := w.add(value.GetAttr(name), depth); err != nil {
				return err
			}
		}
		return nil
	}
	if !value.CanIterateElements() {
		return nil
	}
	keyed := value.Type().IsMapType()
	for key, inner := range value.Elements() {
		if keyed {
			if err := w.text(key.AsString()); err != nil {
				return err
			}
		}
		if err := w.add(inner, depth); err != nil {
			return err
		}
	}
	return nil
}

func (w *weighing) text(text string) error {
	if w.bytes += len(text); len(text) > MaxText {
		return w.budget.tooLong()
	}
	return w.budget.spend(len(text) / textWork)
}

func (b *Budget) tooLong() error {
	return b.fail(fmt.Sprintf("a text is longer than %d bytes", MaxText), "write a shorter one")
}

// number refuses what would be written with millions of digits.
func (w *weighing) number(value cty.Value) error {
	number := value.AsBigFloat()
	if number.IsInf() {
		return nil
	}
	if bits := number.MantExp(nil); bits > MaxBits || bits < -MaxBits {
		return w.budget.fail(fmt.Sprintf("a number is larger than 2^%d, or smaller than 2^-%d", MaxBits, MaxBits),
			"write one with a smaller exponent, or with fewer digits")
	}
	return nil
}

// budgetName is the variable of a context that holds the budget. No expression can refer to it.
const budgetName = "\x00budget"

var budgetType = cty.Capsule("budget", reflect.TypeFor[Budget]())

// Bound gives a context the functions, and the budget that expressions charge which [Metered] has
// made.
func Bound(context *hcl.EvalContext, budget *Budget) {
	if context.Variables == nil {
		context.Variables = map[string]cty.Value{}
	}
	context.Variables[budgetName] = cty.CapsuleVal(budgetType, budget)
	context.Functions = Functions()
}

// BudgetOf returns the budget of a context, or of one around it; nil where there is none.
func BudgetOf(context *hcl.EvalContext) *Budget {
	for ; context != nil; context = context.Parent() {
		if held, bound := context.Variables[budgetName]; bound {
			budget, _ := held.EncapsulatedValue().(*Budget)
			return budget
		}
	}
	return nil
}
