package hclfuncs

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"
)

// numeral is how a text is checked that becomes a number: arithmetic takes time and memory by its
// length and its exponent, before there is a result to look at.
type numeral int

const (
	// digits checks the length.
	digits numeral = iota + 1
	// exponent checks the length and the exponent.
	exponent
)

// check reports texts in a value that would become numbers beyond the limits.
func (n numeral) check(budget *Budget, value cty.Value) error {
	if value == cty.NilVal {
		return nil
	}
	if value, _ = value.Unmark(); !value.IsKnown() || value.IsNull() {
		return nil
	}
	switch kind := value.Type(); {
	case kind == cty.String:
		return n.text(budget, value.AsString())
	case kind == cty.Number, kind == cty.Bool:
		return nil
	case value.CanIterateElements():
		for _, inner := range value.Elements() {
			if err := budget.spend(1); err != nil {
				return err
			}
			if err := n.check(budget, inner); err != nil {
				return err
			}
		}
	}
	return nil
}

func (n numeral) text(budget *Budget, text string) error {
	if text == "" || !strings.ContainsRune("+-.0123456789", rune(text[0])) {
		return nil // no number
	}
	if len(text) > MaxDigits {
		return budget.fail(fmt.Sprintf("a number has more than %d digits", MaxDigits), "write a shorter number")
	}
	at := strings.LastIndexAny(text, "eEpP")
	if n != exponent || at < 0 {
		return nil
	}
	power, err := strconv.Atoi(text[at+1:])
	if err == nil && max(power, -power) <= MaxBits || err != nil && len(text[at+1:]) < len(strconv.Itoa(MaxBits)) {
		return nil
	}
	return budget.fail(fmt.Sprintf("a number has an exponent above %d", MaxBits), "write one with a smaller exponent")
}

// readers are functions that read numbers from texts, whatever the types of their parameters are.
var readers = []string{"parseint", "sum", "tonumber", "lookup"}

// parameterOf returns the type that an argument of a function is converted to before the call.
func parameterOf(name string, at int) cty.Type {
	name = strings.TrimPrefix(name, "core::")
	called, known := functions[name]
	switch {
	case !known:
		return cty.DynamicPseudoType
	case slices.Contains(readers, name):
		return cty.Number
	case at < len(called.Params()):
		return called.Params()[at].Type
	case called.VarParam() != nil:
		return called.VarParam().Type
	default:
		return cty.DynamicPseudoType
	}
}

func isOfNumbers(kind cty.Type) bool {
	for kind.IsCollectionType() {
		kind = kind.ElementType()
	}
	return kind == cty.Number
}
