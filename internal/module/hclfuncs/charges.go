package hclfuncs

import (
	"fmt"
	"math"
	"math/bits"
	"regexp/syntax"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// charges are the costs of functions beyond reading their arguments and writing their result. If
// the result could be much larger than the arguments, it is charged before it is computed.
var charges = map[string]func(args []cty.Value) int{
	"chunklist":    surface,
	"cidrcontains": perCharacter(1),
	"cidrhost":     perCharacter(1),
	"cidrnetmask":  perCharacter(1),
	"cidrsubnet":   perCharacter(1),
	"cidrsubnets":  perCharacter(1),
	"csvdecode":    perCharacter(1),
	"distinct":     func(args []cty.Value) int { return squared(countAt(args, 0)) },
	"format":       func(args []cty.Value) int { return padding(textAt(args, 0)) },
	"formatlist":   formatsWork,
	"indent": func(args []cty.Value) int {
		return times(wholeAt(args, 0), strings.Count(textAt(args, 1), "\n")+1) / textWork
	},
	"join":            joinWork,
	"jsondecode":      perCharacter(4),
	"length":          func(args []cty.Value) int { return len(textAt(args, 0)) / 2 },
	"regex":           regexWork,
	"regexall":        func(args []cty.Value) int { return matchesWork(textAt(args, 0), textAt(args, 1)) },
	"replace":         replaceWork,
	"setintersection": setsWork,
	"setproduct":      productWork,
	"setsubtract":     setsWork,
	"setunion":        setsWork,
	"sort":            func(args []cty.Value) int { n := countAt(args, 0); return times(n, bits.Len(uint(n))) },
	"split": func(args []cty.Value) int {
		return times(elementWork,
			strings.Count(textAt(args, 1), textAt(args, 0)))
	},
	"strrev": perCharacter(2),
	"substr": perCharacter(2),
	"toset":  setsWork,
	"trim":   func(args []cty.Value) int { return times(len(textAt(args, 0)), len(textAt(args, 1))) / textWork },
}

// shallow are functions that only look at the top level of their arguments, or return one
// unchanged.
var shallow = map[string]bool{
	"coalesce": true, "coalescelist": true, "element": true, "issensitive": true, "length": true, "lookup": true,
	"nonsensitive": true, "one": true, "sensitive": true,
}

// converting are functions that give the elements of tuples and objects one type.
var converting = map[string]bool{"coalesce": true, "tolist": true, "tomap": true, "toset": true}

// call returns a function, by name only, that charges its work to the budget and stops when the
// budget is exhausted.
func (b *Budget) call(name string) map[string]function.Function {
	if made, known := b.calls[name]; known {
		return made
	}
	one, known := functions[name]
	if !known {
		return nil
	}
	made := map[string]function.Function{name: b.bound(strings.TrimPrefix(name, "core::"), one)}
	if b.calls == nil {
		b.calls = map[string]map[string]function.Function{}
	}
	b.calls[name] = made
	return made
}

func (b *Budget) bound(name string, called function.Function) function.Function {
	if name == "can" || name == "try" {
		return called // their arguments are expressions, which are metered
	}
	spec := &function.Spec{
		Type: func(args []cty.Value) (cty.Type, error) {
			if err := b.before(name, args); err != nil {
				return cty.NilType, err
			}
			return called.ReturnTypeForValues(args)
		},
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			value, err := called.Call(args)
			if err == nil && !shallow[name] {
				err = b.weigh(value)
			}
			return value, err
		},
	}
	for _, parameter := range called.Params() {
		spec.Params = append(spec.Params, open(parameter))
	}
	if rest := called.VarParam(); rest != nil {
		rest := open(*rest)
		spec.VarParam = &rest
	}
	return function.New(spec)
}

// open returns a parameter that leaves it to the function within what may be null, unknown or
// marked.
func open(parameter function.Parameter) function.Parameter {
	parameter.AllowNull, parameter.AllowUnknown, parameter.AllowDynamicType, parameter.AllowMarked = true, true, true, true
	return parameter
}

// before charges a call.
func (b *Budget) before(name string, args []cty.Value) error {
	if err := b.spend(elementWork); err != nil {
		return err
	}
	if !shallow[name] {
		for _, arg := range args {
			if err := b.weigh(arg); err != nil {
				return err
			}
		}
	}
	if converting[name] {
		for _, arg := range args {
			if err := b.convert(arg); err != nil {
				return err
			}
		}
	}
	if name == "jsonencode" && len(args) == 1 {
		if err := b.fits(args[0]); err != nil {
			return err
		}
	}
	if name == "jsondecode" {
		if err := b.scanJSON(textAt(args, 0)); err != nil {
			return err
		}
	}
	charge, special := charges[name]
	if !special {
		return nil
	}
	return b.spend(charge(args))
}

// fits returns an error for a value whose texts together exceed the limit of one.
func (b *Budget) fits(value cty.Value) error {
	w := weighing{budget: b}
	if err := w.add(value, 0); err != nil || w.bytes <= MaxText {
		return err
	}
	return b.tooLong()
}

// scanJSON rejects a text whose decoded value would exceed the limits: decoding is recursive, and
// parses numbers in more than linear time.
func (b *Budget) scanJSON(text string) error {
	scan := jsonScan{}
	for at := 0; at < len(text); at++ {
		if scan.quoted && text[at] == '\\' {
			at++
			continue
		}
		scan.next(text[at])
		switch {
		case scan.depth > MaxDepth:
			return b.fail(fmt.Sprintf("a JSON text nests deeper than %d levels", MaxDepth), "write it flatter")
		case scan.elements > MaxElements:
			return b.fail(fmt.Sprintf("a JSON text holds more than %d values", MaxElements), "write shorter lists")
		case scan.number > MaxDigits:
			return b.fail(fmt.Sprintf("a JSON text has a number of more than %d digits", MaxDigits), "write a shorter number")
		}
	}
	return nil
}

// jsonScan counts what is in a JSON text up to a character.
type jsonScan struct {
	quoted                  bool
	depth, elements, number int
}

func (s *jsonScan) next(char byte) {
	if char == '"' {
		s.quoted = !s.quoted
	}
	if s.number++; s.quoted || !strings.ContainsRune("+-.0123456789eE", rune(char)) {
		s.number = 0
	}
	if s.quoted {
		return
	}
	switch char {
	case '[', '{':
		s.depth++
		s.elements++
	case ']', '}':
		s.depth--
	case ',':
		s.elements++
	}
}

// times multiplies with saturation.
func times(a, b int) int {
	high, low := bits.Mul64(uint64(max(a, 0)), uint64(max(b, 0)))
	if high > 0 || low > math.MaxInt32 {
		return math.MaxInt32
	}
	return int(low)
}

// squared is the work of comparing each element with each other.
func squared(n int) int { return times(n, n) / 2 }

// plain returns an argument that is known and not null.
func plain(args []cty.Value, at int) (cty.Value, bool) {
	if at >= len(args) {
		return cty.NilVal, false
	}
	value, _ := args[at].Unmark()
	return value, value.IsKnown() && !value.IsNull()
}

func textAt(args []cty.Value, at int) string {
	if value, ok := plain(args, at); ok && value.Type() == cty.String {
		return value.AsString()
	}
	return ""
}

// wholeAt returns a number without its fraction; the largest there is where it is larger.
func wholeAt(args []cty.Value, at int) int {
	value, ok := plain(args, at)
	if !ok || value.Type() != cty.Number {
		return 0
	}
	whole, _ := value.AsBigFloat().Int64()
	return int(min(whole, math.MaxInt32))
}

func countAt(args []cty.Value, at int) int {
	if at >= len(args) {
		return 0
	}
	return countOf(args[at])
}

// countOf returns how many elements a value has that can be looped over.
func countOf(value cty.Value) int {
	value, _ = value.Unmark()
	switch {
	case !value.IsKnown() || value.IsNull():
		return 0
	case value.Type().IsObjectType():
		return len(value.Type().AttributeTypes())
	case !value.CanIterateElements():
		return 1
	default:
		return value.LengthInt()
	}
}

func surface(args []cty.Value) int { return elementWork * countAt(args, 0) }

// perCharacter is the work of functions that look at each character of their first argument.
func perCharacter(shift int) func([]cty.Value) int {
	return func(args []cty.Value) int { return len(textAt(args, 0)) / shift }
}

// setsWork is the work of sets: elements with the same hash are compared pairwise, and a user could
// choose such elements.
func setsWork(args []cty.Value) int {
	elements := 0
	for _, arg := range args {
		elements += countOf(arg)
	}
	return times(elements, elements) / 32
}

func productWork(args []cty.Value) int {
	product := len(args) * elementWork
	for at := range args {
		product = times(product, countAt(args, at))
	}
	return product
}

func joinWork(args []cty.Value) int {
	elements := 0
	for at := range args[1:] {
		elements += countAt(args, at+1)
	}
	return times(len(textAt(args, 0)), elements) / textWork
}

// padding is the work of the widths and precisions in a format.
func padding(format string) int {
	work := 0
	for rest := format; ; {
		_, after, found := strings.Cut(rest, "%")
		if !found {
			return work
		}
		end := 0
		for end < len(after) && strings.ContainsRune("+-# 0123456789.[]", rune(after[end])) {
			end++
		}
		for _, text := range strings.FieldsFunc(after[:end], func(char rune) bool { return char < '0' || char > '9' }) {
			width, err := strconv.Atoi(text)
			if err != nil {
				width = math.MaxInt32
			}
			work = min(work+min(width, math.MaxInt32), math.MaxInt32)
		}
		rest = after[min(end, len(after)):]
		if end < len(after) {
			rest = after[end+1:]
		}
	}
}

func formatsWork(args []cty.Value) int {
	longest := 1
	for at := range args[1:] {
		if value, ok := plain(args, at+1); ok && value.CanIterateElements() {
			longest = max(longest, countAt(args, at+1))
		}
	}
	return times(longest, padding(textAt(args, 0))+len(textAt(args, 0))/textWork+elementWork)
}

func regexWork(args []cty.Value) int { return matchWork(textAt(args, 0), textAt(args, 1)) }

// replaceWork is the work of looking for what is replaced, and of writing as many replacements as
// there may be.
func replaceWork(args []cty.Value) int {
	text, old, by := textAt(args, 0), textAt(args, 1), textAt(args, 2)
	if pattern, is := asPattern(old); is {
		return min(matchesWork(pattern, text)+times(len(text)+1, len(by)+1)/4, math.MaxInt32)
	}
	return times(strings.Count(text, old), len(by)) / textWork
}

// matchWork is the work of a regular expression: its compilation, and for each character all states
// that it may be in.
func matchWork(pattern, text string) int {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0 // it is not run
	}
	size := states(parsed)
	return min(size+times(size, len(text))/32, math.MaxInt32)
}

// matchesWork is the work of as many matches, with all their groups, as there may be.
func matchesWork(pattern, text string) int {
	groups := strings.Count(pattern, "(") + 1
	return min(matchWork(pattern, text)+times(groups, len(text)+1), math.MaxInt32)
}

// states is how many states the program of a regular expression has, about.
func states(of *syntax.Regexp) int {
	size := 1 + len(of.Rune)
	if of.Op == syntax.OpCharClass {
		size = 1
	}
	for _, sub := range of.Sub {
		size += states(sub)
	}
	if of.Op == syntax.OpRepeat {
		size = times(size, max(of.Min, of.Max, 1))
	}
	return min(size, math.MaxInt32)
}
