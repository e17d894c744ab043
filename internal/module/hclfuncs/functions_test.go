package hclfuncs

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// calls are evaluated by the engine and here; what fails must fail in both. Every function is called at least once.
var calls = []string{
	`abs(-1)`, `ceil(1.2)`, `floor(-1.2)`, `floor(9007199254740993)`, `log(8, 2)`, `pow(2, 100)`, `signum(-3)`, `max(1, 3, 2)`, `min()`, `min(2, 1)`,
	`parseint("ff", 16)`, `parseint("xyz", 10)`, `1 / 0`, `7 % 4`, `0.1 + 0.2`,
	`chomp("a\n")`, `format("%s-%03d", "a", 7)`, `format("%d", 1.5)`, `formatlist("%s!", ["a", "b"])`, `indent(2, "a\nb")`, `join(",", ["a", "b"])`,
	`lower("ÄB")`, `upper("ß")`, `title("a b")`, `split(",", "a,b")`, `strrev("añb")`, `substr("hello", 1, 3)`, `substr("hello", -2, -1)`,
	`trim("--a--", "-")`, `trimprefix("abc", "a")`, `trimsuffix("abc", "c")`, `trimspace(" a ")`,
	`regex("[a-z]+", "12ab")`, `regex("(?P<x>a)", "a")`, `regex("a", "b")`, `regexall("a", "banana")`, `regex("(", "a")`, `can(regex("^a$", "b"))`,
	`replace("1 + 2", "+", "-")`, `replace("hello", "/l+/", "L")`, `replace("a.b", "/(.)[.](.)/", "$2$1")`, `replace("a", "/(/", "")`, `replace("a/b", "/", "-")`,
	`startswith("abc", "ab")`, `startswith("abc", "b")`, `endswith("abc", "bc")`, `strcontains("abc", "b")`, `strcontains(null, "b")`, `startswith(1, "1")`,
	`base64encode("ä")`, `base64decode("w6Q=")`, `base64decode("!")`, `base64decode("/w==")`, `base64sha256("a")`, `base64sha512("a")`,
	`md5("a")`, `sha1("a")`, `sha256("a")`, `sha512("a")`, `urlencode("a b&c/ä")`, `basename("/a/b")`, `basename("")`, `dirname("/a/b")`,
	`length("añb")`, `length("e\u0301")`, `length([1, "a"])`, `length({ a = 1 })`, `length(tolist(["a"]))`, `length(toset(["a", "a"]))`, `length(tomap({}))`,
	`length(1)`, `length(true)`, `length(null)`,
	`alltrue([])`, `alltrue([true, "true"])`, `alltrue([true, false])`, `alltrue([true, null])`, `alltrue(["x"])`, `alltrue(null)`,
	`anytrue([])`, `anytrue([false, true])`, `anytrue([null, false])`, `anytrue([null, "true"])`,
	`coalesce("", null, "a")`, `coalesce(null, 0)`, `coalesce("", null)`, `coalesce([], ["a"])`, `coalesce(1, "a")`, `coalesce(1, [])`, `coalescelist([], ["a"])`,
	`contains(["a", "b"], "b")`, `contains(["a"], null)`, `contains(["a", null], "b")`, `contains([1], "1")`, `contains(tolist(["1"]), 1)`, `contains({ a = 1 }, 1)`,
	`contains(toset(["a"]), "a")`, `index(["a", "b"], "b")`, `index(["a"], "b")`, `index([], "b")`, `index({ a = 1 }, 1)`, `index(toset(["a"]), "a")`,
	`lookup({ a = 1 }, "a")`, `lookup({ a = 1 }, "b")`, `lookup({ a = 1 }, "b", "x")`, `lookup(tomap({ a = 1 }), "b", 2)`, `lookup(tomap({ a = 1 }), "b")`,
	`lookup(tomap({ a = 1 }), "b", [])`, `lookup(tomap({ a = 1 }), "a", "x")`, `lookup(["a"], "a")`, `lookup({ a = null }, "a", "x")`, `lookup({}, "a", "b", "c")`,
	`one([])`, `one(["a"])`, `one(["a", "b"])`, `one(toset(["a"]))`, `one(tolist([]))`, `one(toset(["a", "b"]))`, `one("a")`, `one(null)`,
	`sum([1, 2.5])`, `sum([])`, `sum(["1", 2])`, `sum([1, null])`, `sum(["x"])`, `sum({ a = 1 })`, `sum(toset([9007199254740993, 1]))`,
	`compact(["a", "", null])`, `concat(["a"], ["b"])`, `distinct(["a", "a"])`, `element(["a", "b"], 3)`, `chunklist(["a", "b", "c"], 2)`, `flatten([["a"], [["b"]]])`,
	`keys({ b = 1, a = 2 })`, `values({ b = 1, a = 2 })`, `merge({ a = 1 }, { b = 2 })`, `merge({ a = 1 }, null)`, `range(3)`, `range(2000)`, `reverse(["a", "b"])`,
	`setintersection(["a", "b"], ["b"])`, `setproduct(["a"], ["b", "c"])`, `setsubtract(["a", "b"], ["b"])`, `setunion(["a"], ["b"])`, `slice(["a", "b"], 0, 1)`,
	`sort(["b", "a"])`, `zipmap(["a"], [1])`, `csvdecode("a,b\n1,2")`, `jsondecode("{\"a\":[1]}")`, `jsondecode("{")`, `jsonencode({ a = "<" })`,
	`tostring(1.50)`, `tostring(true)`, `tostring([])`, `tostring(null)`, `tonumber("1e3")`, `tonumber("x")`, `tonumber("")`, `tobool("true")`, `tobool("1")`, `tobool(1)`,
	`tolist(["a", 1])`, `tolist("a")`, `toset(["b", "a", "b"])`, `tomap({ a = 1, b = "x" })`, `tomap({ a = [], b = "x" })`, `tolist([{ a = 1 }, { b = 2 }])`,
	`try(tonumber("x"), "no")`, `try(null.a, [][0], "x")`, `can(tonumber("1"))`, `try(tonumber("x"))`,
	`formatdate("YYYY", "2026-01-02T03:04:05Z")`, `timeadd("2026-01-02T03:04:05Z", "1h")`, `timecmp("2026-01-02T03:04:05Z", "2026-01-02T04:04:05+01:00")`,
	`timecmp("2026-01-02T03:04:05Z", "2026-01-02T03:04:06Z")`, `timecmp("yesterday", "2026-01-02T03:04:06Z")`,
	`issensitive("a")`, `issensitive(sensitive("a"))`, `issensitive(upper(sensitive("a")))`, `nonsensitive(sensitive("a"))`, `core::length("abc")`,
	`cidrhost("10.0.0.0/8", 5)`, `cidrhost("10.0.0.0/8", -1)`, `cidrhost("10.1.2.3/24", 256)`, `cidrhost("10.0.0.0/24", -256)`, `cidrhost("10.0.0.0/24", -257)`,
	`cidrhost("10.0.0.0/24", 1.5)`, `cidrhost("fd00::/48", 1208925819614629174706175)`, `cidrhost("010.0.0.0/08", 1)`, `cidrhost("10.0.0/8", 1)`, `cidrhost("10.0.0.1", 1)`,
	`cidrhost("10.0.0.0/33", 1)`, `cidrhost("FD00:0db8::/32", 1)`, `cidrnetmask("172.16.0.0/12")`, `cidrnetmask("fd00::/8")`, `cidrnetmask("1.2.3.4/0")`,
	`cidrsubnet("172.16.0.0/12", 4, 2)`, `cidrsubnet("172.16.0.0/12", 4, 16)`, `cidrsubnet("172.16.0.0/12", 21, 0)`, `cidrsubnet("fd00:fd12:3456:7890::/56", 16, 162)`,
	`cidrsubnet("10.0.0.0/8", 0, 0)`, `cidrsubnets("10.1.0.0/16", 4, 4, 8, 4)`, `cidrsubnets("10.0.0.0/30", 1, 1, 1)`, `cidrsubnets("10.0.0.0/24", 0)`, `cidrsubnets("10.0.0.0/24")`,
	`cidrsubnets("fd00::/16", 33)`, `cidrsubnets("10.0.0.0/24", 9)`, `true && null.a`, `false && null.a`, `true || null.a`, `null == null`, `[for x in [1, 2] : x * 2]`,
	`{ for k, v in { a = 1 } : k => v }`, `[{ a = 1 }, { a = 2 }][*].a`, `null[*]`, `"a"[*]`, `"${1}-%{if true}x%{endif}"`, `1 == "1"`, `"a" < "b"`, `!"true"`,
}

// openTofuCalls are of functions that Terraform does not have.
var openTofuCalls = []string{
	`cidrcontains("10.0.0.0/8", "10.1.2.3")`, `cidrcontains("10.0.0.0/8", "11.0.0.0")`, `cidrcontains("10.0.0.0/8", "10.0.0.0/7")`,
	`cidrcontains("10.0.0.0/8", "10.2.0.0/16")`, `cidrcontains("10.0.0.0/8", "::1")`, `cidrcontains("10.0.0.0/8", "x")`, `cidrcontains("x", "10.0.0.1")`,
	`cidrcontains("fd00::/8", "fd00::1%eth0")`, `urldecode("a+b%20")`, `urldecode("%zz")`,
}

// guarded makes a failure a value, since the engine stops at the first.
func guarded(call string) string {
	return fmt.Sprintf(`try(nonsensitive(jsonencode(%s)), "fails")`, call)
}

func evalContext(variables map[string]cty.Value) *hcl.EvalContext {
	return &hcl.EvalContext{Variables: map[string]cty.Value{"var": cty.ObjectVal(variables)}, Functions: Functions()}
}

func evaluate(t *testing.T, text string) string {
	t.Helper()
	expression, diags := hclsyntax.ParseExpression([]byte(text), "", hcl.InitialPos)
	if diags.HasErrors() {
		t.Fatalf("%s: %v", text, diags)
	}
	value, diags := expression.Value(evalContext(map[string]cty.Value{}))
	if diags.HasErrors() {
		t.Fatalf("%s: %v", text, diags)
	}
	return value.AsString()
}

func TestFunctionsReturnWhatTheEngineReturns(t *testing.T) {
	engine := os.Getenv("TOFU")
	if engine == "" {
		var err error
		if engine, err = filepath.Abs("../../../bin/tofu"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(engine); err != nil {
		t.Skipf("%v; 'make tools' builds it", err)
	}
	all := append(append([]string{}, calls...), openTofuCalls...)
	var root strings.Builder
	for i, call := range all {
		fmt.Fprintf(&root, "output \"o%d\" {\n  value = %s\n}\n", i, guarded(call))
	}
	outputs := apply(t, engine, root.String())
	for i, call := range all {
		if want, got := outputs[fmt.Sprintf("o%d", i)], evaluate(t, guarded(call)); got != want {
			t.Errorf("%s: the engine returns %s, got %s", call, want, got)
		}
	}
}

// apply runs the engine on a module without providers and returns its outputs.
func apply(t *testing.T, engine, root string) map[string]string {
	t.Helper()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "main.tf"), []byte(root), 0o600); err != nil {
		t.Fatal(err)
	}
	var output []byte
	for _, args := range [][]string{{"init", "-no-color"}, {"apply", "-no-color", "-auto-approve"}, {"output", "-json"}} {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		command := exec.CommandContext(ctx, engine, args...)
		command.Dir = folder
		command.Env = []string{"HOME=" + folder, "CHECKPOINT_DISABLE=1"}
		var err error
		if output, err = command.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, output)
		}
	}
	var decoded map[string]struct {
		Value string `json:"value"`
	}
	if err := json.Unmarshal(output, &decoded); err != nil {
		t.Fatal(err)
	}
	outputs := map[string]string{}
	for name, one := range decoded {
		outputs[name] = one.Value
	}
	return outputs
}

func TestEveryFunctionIsCalledInTheComparison(t *testing.T) {
	text := strings.Join(append(append([]string{}, calls...), openTofuCalls...), "\n")
	for name := range Functions() {
		if !strings.HasPrefix(name, "core::") && !strings.Contains(text, name+"(") {
			t.Errorf("no expression calls %s", name)
		}
	}
}

func TestFunctionsOfValuesThatAreNotKnown(t *testing.T) {
	begun := cty.UnknownVal(cty.String).Refine().NotNull().StringPrefixFull("worker-").NewValue()
	context := evalContext(map[string]cty.Value{
		"name": begun, "text": cty.UnknownVal(cty.String), "bool": cty.UnknownVal(cty.Bool), "list": cty.UnknownVal(cty.List(cty.String)),
		"secret": cty.UnknownVal(cty.String).Mark(Sensitive),
	})
	tests := map[string]struct {
		expression string
		want       cty.Value
	}{
		"the beginning decides for":          {expression: `startswith(var.name, "work")`, want: cty.True},
		"the beginning decides against":      {expression: `startswith(var.name, "master")`, want: cty.False},
		"one other character decides":        {expression: `startswith(var.name, "worker/1")`, want: cty.False},
		"the beginning is too short":         {expression: `startswith(var.name, "worker-1")`, want: cty.UnknownVal(cty.Bool).RefineNotNull()},
		"a length":                           {expression: `length(var.text) > 3`, want: cty.UnknownVal(cty.Bool).RefineNotNull()},
		"one false decides alltrue before":   {expression: `alltrue([false, var.bool])`, want: cty.False},
		"alltrue does not look behind":       {expression: `alltrue([var.bool, false])`, want: cty.UnknownVal(cty.Bool).RefineNotNull()},
		"one true decides anytrue":           {expression: `anytrue([var.bool, true])`, want: cty.True},
		"anytrue is open":                    {expression: `anytrue([var.bool, false])`, want: cty.UnknownVal(cty.Bool).RefineNotNull()},
		"what can be is open":                {expression: `can(regex("a", var.text))`, want: cty.UnknownVal(cty.Bool)},
		"a short circuit needs not know":     {expression: `true || var.bool`, want: cty.True},
		"one of a list":                      {expression: `one(var.list)`, want: cty.UnknownVal(cty.String)},
		"whether the unknown is a secret":    {expression: `issensitive(var.text)`, want: cty.UnknownVal(cty.Bool)},
		"what comes of a secret is a secret": {expression: `upper(var.secret)`, want: cty.UnknownVal(cty.String).RefineNotNull().Mark(Sensitive)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			expression, diags := hclsyntax.ParseExpression([]byte(tc.expression), "", hcl.InitialPos)
			if diags.HasErrors() {
				t.Fatal(diags)
			}
			got, diags := expression.Value(context)
			if diags.HasErrors() {
				t.Fatal(diags)
			}
			if diff := cmp.Diff(tc.want.GoString(), got.GoString()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
