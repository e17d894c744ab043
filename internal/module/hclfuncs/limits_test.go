package hclfuncs

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/machine-iac/machine-iac-operator/test/long"
)

// guard is how long an expression may take on a machine that is busy. Without limits those below take minutes, or all memory.
const guard = time.Minute

// bounded evaluates an expression within limits.
func bounded(t testing.TB, text string, variables map[string]cty.Value) (cty.Value, *Budget) {
	t.Helper()
	expression, diags := hclsyntax.ParseExpression([]byte(text), "", hcl.InitialPos)
	if diags.HasErrors() {
		t.Fatalf("%.100s: %v", text, diags)
	}
	context := &hcl.EvalContext{Variables: map[string]cty.Value{"var": cty.ObjectVal(variables)}}
	budget := NewBudget()
	Bound(context, budget)
	type result struct {
		value cty.Value
		diags hcl.Diagnostics
	}
	done := make(chan result, 1)
	go func() {
		value, diags := Metered(expression).Value(context)
		done <- result{value, diags}
	}()
	select {
	case got := <-done:
		if got.diags.HasErrors() != (got.value == cty.DynamicVal) && budget.Exceeded() != nil {
			t.Fatalf("%.100s: want an error, got %v", text, got.diags)
		}
		if got.diags.HasErrors() {
			return cty.NilVal, budget
		}
		return got.value, budget
	case <-time.After(guard):
		t.Fatalf("%.100s: not evaluated in %s", text, guard)
		return cty.NilVal, nil
	}
}

func numbers(n int) string {
	return "[for a in range(1000) : [for b in range(" + fmt.Sprint(n) + ") : a * 1000 + b]]"
}

// doubled is a text that doubles at each level.
func doubled(levels int, seed, twice string) string {
	expression := "last"
	for level := levels; level > 0; level-- {
		inner := "[for l" + fmt.Sprint(level) + " in [" + strings.ReplaceAll(twice, "X", "l"+fmt.Sprint(level-1)) + "] : "
		if level == levels {
			expression = "l" + fmt.Sprint(level)
		}
		expression = inner + expression + "]"
	}
	return "[for l0 in [" + seed + "] : " + expression + "]"
}

const (
	tooMuchWork = "units of work"
	tooLarge    = "a number is larger than 2^2048"
	tooHigh     = "a number has an exponent above 2048"
	tooLong     = "a number has more than 2048 digits"
)

func TestEveryEvaluationIsBounded(t *testing.T) {
	long.Test(t)
	million := strings.Repeat("x", 1<<20)
	variables := map[string]cty.Value{
		"text": cty.StringVal(million), "digits": cty.StringVal(strings.Repeat("7", 4<<20)), "lines": cty.StringVal(strings.Repeat("\n", 1<<20)),
		"number": cty.StringVal("1e300000000"), "name": cty.StringVal("worker"), "quotes": cty.StringVal(strings.Repeat(`<`, 1<<20)),
		"deep": cty.StringVal(strings.Repeat("[", 1<<20)), "zeros": cty.StringVal("[" + strings.Repeat("0,", 1<<20) + "0]"),
		"numeral": cty.StringVal("[" + strings.Repeat("7", 1<<20) + "]"), "hidden": cty.StringVal("1e300000000").Mark(Sensitive),
	}
	for text, want := range map[string]string{
		`jsonencode([tonumber(var.number)])`:             tooLarge,
		`"${tonumber(var.number)}"`:                      tooLarge,
		`tostring(var.number + 1)`:                       tooHigh,
		`var.number % 7`:                                 tooHigh,
		`-var.number`:                                    tooHigh,
		`-"1e300000000"`:                                 tooHigh,
		`tostring(1e300000000)`:                          tooLarge,
		`var.digits + 1`:                                 tooLong,
		`tonumber(var.digits)`:                           tooLong,
		`tonumber("${var.digits}")`:                      tooLong,
		`abs(var.digits)`:                                tooLong,
		`max(1, [var.digits]...)`:                        tooLong,
		`sum([var.digits, 1])`:                           tooLong,
		`parseint(var.digits, 10)`:                       tooLong,
		`[1, 2][var.digits]`:                             tooLong,
		`lookup(tomap({ a = 1 }), "b", var.digits)`:      tooLong,
		`var.hidden * 2`:                                 tooHigh,
		`can(tonumber(var.number))`:                      tooLarge,
		`try(var.number * 1, "no")`:                      tooHigh,
		`jsondecode("[1e300000000]")`:                    tooLarge,
		`jsondecode(var.numeral)`:                        "a JSON text has a number of more than 2048 digits",
		`jsondecode(var.deep)`:                           "a JSON text nests deeper than 100 levels",
		`jsondecode(var.zeros)`:                          "a JSON text holds more than 100000 values",
		`1e300 * 1e300 * 1e300`:                          tooLarge,
		`format("%2000000000d", 1)`:                      tooMuchWork,
		`format("%.2000000000f", 1)`:                     tooMuchWork,
		`format("%-99999999999999999999s", 1)`:           tooMuchWork,
		`formatlist("%300000s", range(1000))`:            tooMuchWork,
		`[for n in range(1000) : format("%300000d", n)]`: tooMuchWork,
		`indent(1000000000, "a\nb")`:                     tooMuchWork,
		`indent(1000, var.lines)`:                        tooMuchWork,
		`join(var.text, range(1000))`:                    tooMuchWork,
		`replace(var.text, "", var.text)`:                tooMuchWork,
		`replace(var.text, "x", var.text)`:               tooMuchWork,
		`replace(var.text, "/x/", "$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0")`: tooMuchWork,
		`regexall("x", join("", [var.text, var.text, var.text, var.text]))`:    tooMuchWork,
		`regex("(x{1,30}){1,30}y", var.text)`:                                  tooMuchWork,
		`can(regex("((((x?){10}){10}){10})", var.text))`:                       tooMuchWork,
		`split("", var.text)`: tooMuchWork,
		`csvdecode("a,b\n${join("", [for i in range(1000) : var.text])}")`:                     tooMuchWork,
		`setproduct(range(1000), range(1000), range(1000), range(1000))`:                       tooMuchWork,
		`distinct(flatten(` + numbers(30) + `))`:                                               tooMuchWork,
		`toset(flatten(` + numbers(30) + `))`:                                                  tooMuchWork,
		`setunion(flatten(` + numbers(20) + `), flatten(` + numbers(20) + `))`:                 tooMuchWork,
		`trim(var.text, var.text)`:                                                             tooMuchWork,
		`length([for a in range(1000) : [for b in range(1000) : [for c in range(1000) : 1]]])`: tooMuchWork,
		`[for a in range(1000) : length(var.text)]`:                                            tooMuchWork,
		`[for a in range(1000) : var.text == var.quotes]`:                                      tooMuchWork,
		`[for a in range(1000) : upper(var.text)]`:                                             tooMuchWork,
		`[for a in range(1000) : sha512(var.text)]`:                                            tooMuchWork,
		`[for a in range(1000) : "${var.text}${a}"]`:                                           tooMuchWork,
		`[for a in range(1000) : [var.text]]`:                                                  tooMuchWork,
		`"%{ for a in range(1000) }${var.text}%{ endfor }"`:                                    tooMuchWork,
		`jsonencode([for a in range(20) : var.quotes])`:                                        "a text is longer than 4194304 bytes",
		`[for a in range(100) : jsonencode(jsonencode(jsonencode(var.quotes)))]`:               "a text is longer than 4194304 bytes",
		`"${var.text}${var.text}${var.text}${var.text}${var.text}"`:                            "a text is longer than 4194304 bytes",
		`flatten([for a in range(101) : range(1000)])`:                                         "a list or an object holds more than 100000 values",
		doubled(40, `"xxxxxxxxxxxxxxxx"`, `"${X}${X}"`):                                        "a text is longer than 4194304 bytes",
		doubled(40, `"x"`, `[X, X]`):                                                           "a list or an object holds more than 100000 values",
		doubled(40, `"x"`, `{ a = X, b = X }`):                                                 "a list or an object holds more than 100000 values",
		doubled(110, `"x"`, `[X]`):                                                             "a value nests deeper than 100 levels",
		`try([for a in range(1000) : upper(var.text)], "none")`:                                tooMuchWork,
		`can([for a in range(1000) : upper(var.text)]) ? 1 : 2`:                                tooMuchWork,
		`[[for a in range(1000) : upper(var.text)], 1][1]`:                                     tooMuchWork,
		`{ (upper(join(var.text, range(1000)))) = 1 }`:                                         tooMuchWork,
		`[for a in range(1000) : a if upper(var.text) == ""]`:                                  tooMuchWork,
		`{ for a in range(1000) : "${a}${var.text}" => a }`:                                    tooMuchWork,
		`[for a in range(1000) : { text = var.text }][*].text`:                                 tooMuchWork,
		`[for a in range(1000) : cidrhost(var.digits, 1)]`:                                     tooMuchWork,
	} {
		t.Run(text[:min(len(text), 60)], func(t *testing.T) {
			before := allocated()
			_, budget := bounded(t, text, variables)
			if used := (allocated() - before) >> 20; used > 1024 {
				t.Errorf("it has allocated %d MiB", used)
			}
			limit := budget.Exceeded()
			if limit == nil || !strings.Contains(limit.Error(), want) || limit.Fix == "" {
				t.Errorf("want %q, got %v", want, limit)
			}
		})
	}
}

// allocated is how much memory this process has ever allocated.
func allocated() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.TotalAlloc
}

func TestExpressionsWithinLimitsComeOutAsWithoutThem(t *testing.T) {
	for _, call := range append(append([]string{}, calls...), openTofuCalls...) {
		text := guarded(call)
		value, budget := bounded(t, text, map[string]cty.Value{})
		if limit := budget.Exceeded(); limit != nil || value == cty.NilVal {
			t.Errorf("%s: %v", call, limit)
			continue
		}
		if got, want := value.AsString(), evaluate(t, text); got != want {
			t.Errorf("%s: want %s, got %s", call, want, got)
		}
	}
}

// A Secret holds 1 MiB, and modules look at user data several times.
func TestLargeUserDataIsWithinLimits(t *testing.T) {
	long.Test(t)
	variables := map[string]cty.Value{
		"user_data": cty.StringVal(`{"ignition":{"version":"3.2.0"},"storage":{"files":[` + strings.Repeat(`{"path":"/etc/a","contents":{"source":"data:,x"}},`, 20_000) + `{}]}}`),
		"script":    cty.StringVal("#cloud-config\n" + strings.Repeat("write_files: x\n", 1<<16)),
	}
	for _, text := range []string{
		`can(jsondecode(var.user_data).ignition.version)`, `var.script == "" || can(regex("^(#cloud-config|#!)", var.script))`, `startswith(var.script, "#cloud-config")`,
		`length(base64encode(var.user_data)) < 2000000`, `replace(var.script, "\n", "\r\n") != ""`, `sha256(var.user_data) != ""`,
	} {
		value, budget := bounded(t, text, variables)
		if budget.Exceeded() != nil || value == cty.NilVal || budget.Used() > MaxWork/2 {
			t.Errorf("%s: %v, %v, %d units of work", text, value, budget.Exceeded(), budget.Used())
		}
	}
}

func TestAnExpressionIsMeteredOnce(t *testing.T) {
	expression, diags := hclsyntax.ParseExpression([]byte(`[for a in var.list : upper("${a}-${var.x}") if length(a) > 1 && a != var.y]`), "", hcl.InitialPos)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	references := len(expression.Variables())
	metered := Metered(Metered(expression))
	if got := len(metered.Variables()); got != references || references != 3 {
		t.Errorf("want the 3 references that there are, got %d of %d", got, references)
	}
	if Metered(metered) != metered || Metered(expression) == metered {
		t.Error("want the same expression where it is metered, and another where it is not")
	}
	if Plain(metered) != hclsyntax.Node(expression) {
		t.Error("want the expression that was metered")
	}
	if _, diags := metered.Value(evalContext(map[string]cty.Value{})); !diags.HasErrors() {
		t.Error("want an error without a budget")
	}
}

func TestTheFunctionsOfABudgetLeaveWhatIsUnknownAndMarked(t *testing.T) {
	variables := map[string]cty.Value{
		"text": cty.UnknownVal(cty.String), "secret": cty.StringVal("s").Mark(Sensitive), "any": cty.DynamicVal, "null": cty.NullVal(cty.String),
	}
	for text, want := range map[string]cty.Value{
		`upper(var.text)`:                 cty.UnknownVal(cty.String).RefineNotNull(),
		`upper(var.any)`:                  cty.UnknownVal(cty.String).RefineNotNull(),
		`jsondecode(var.text)`:            cty.DynamicVal,
		`upper(var.secret)`:               cty.StringVal("S").Mark(Sensitive),
		`issensitive(var.secret)`:         cty.True,
		`coalesce(var.null, "a")`:         cty.StringVal("a"),
		`can(upper(var.null))`:            cty.False,
		`nonsensitive("${var.secret}-x")`: cty.StringVal("s-x"),
		`length(var.any)`:                 cty.UnknownVal(cty.Number).RefineNotNull(),
		`[for a in var.any : a]`:          cty.DynamicVal,
	} {
		value, budget := bounded(t, text, variables)
		if budget.Exceeded() != nil || value.GoString() != want.GoString() {
			t.Errorf("%s: want %#v, got %#v, %v", text, want, value, budget.Exceeded())
		}
	}
}

// BenchmarkMaxWork shows how long an evaluation takes that is ended by its budget.
func BenchmarkMaxWork(b *testing.B) {
	variables := map[string]cty.Value{"text": cty.StringVal(strings.Repeat("x", 1<<20))}
	for name, text := range map[string]string{
		"loops":     `[for a in range(1000) : [for b in range(1000) : a + b]]`,
		"texts":     `[for a in range(1000) : upper(var.text)]`,
		"lengths":   `[for a in range(1000) : length(var.text)]`,
		"regex":     `[for a in range(1000) : can(regex("^(a|x|b)*y$", var.text))]`,
		"distinct":  `[for a in range(1000) : distinct(range(1000))]`,
		"sets":      `[for a in range(1000) : toset(range(1000))]`,
		"json":      `[for a in range(1000) : jsondecode(jsonencode(range(1000)))]`,
		"objects":   `[for a in range(1000) : { for b in range(1000) : b => a }]`,
		"templates": `[for a in range(1000) : [for b in range(1000) : "${a}-${b}"]]`,
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, budget := bounded(b, text, variables); budget.Exceeded() == nil {
					b.Fatal("want the budget to be exceeded")
				}
			}
		})
	}
}
