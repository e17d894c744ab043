package modules_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// TestNothingReliesOnShortCircuits finds what Terraform before 1.12 fails at, which evaluates both sides of || and &&: a right side that goes into what the left side
// finds to be null, or has a try() for. A conditional, or a try() on the right side too, does not.
func TestNothingReliesOnShortCircuits(t *testing.T) {
	parsed := 0
	for _, root := range []string{".", filepath.Join("..", "stacks"), filepath.Join("..", "examples")} {
		err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(name) != ".tf" {
				return err
			}
			content, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			for _, found := range reliesOnShortCircuits(t, content, name) {
				t.Errorf("%s: the right side needs the left one to be false: write a conditional, or a try()", found)
			}
			parsed++
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if parsed < 50 {
		t.Errorf("%d files were read, want all modules, stacks and examples", parsed)
	}
}

func TestShortCircuitsAreFound(t *testing.T) {
	for text, want := range map[string]int{
		`var.a == null || var.a.b == 1`:                 1,
		`var.a != null && var.a.b == 1`:                 1,
		`try(var.a.b, "") == "" || f(var.a.b)`:          1,
		`var.a == null ? true : var.a.b == 1`:           0,
		`var.a == null || try(var.a.b, 0) == 1`:         0,
		`var.a == null || var.c.b == 1 && !var.a.b`:     1,
		`[for d in var.all : d.e == null || d.e.f > 1]`: 1,
		`var.a == null || var.ab.c == 1`:                0,
		`can(regex("a", d.name)) && d.name != "b"`:      0,
		`var.z || contains([null], try(var.a.b, null))`: 1,
	} {
		if got := reliesOnShortCircuits(t, []byte("x = "+text+"\n"), "x.tf"); len(got) != want {
			t.Errorf("%s: got %v, want %d", text, got, want)
		}
	}
}

// reliesOnShortCircuits returns where a file relies on them.
func reliesOnShortCircuits(t *testing.T, content []byte, name string) (found []string) {
	t.Helper()
	file, diagnostics := hclsyntax.ParseConfig(content, name, hcl.InitialPos)
	if diagnostics.HasErrors() {
		t.Fatal(diagnostics)
	}
	_ = hclsyntax.VisitAll(file.Body.(*hclsyntax.Body), func(node hclsyntax.Node) hcl.Diagnostics {
		if call, ok := node.(*hclsyntax.FunctionCallExpr); ok && call.Name == "contains" && len(call.Args) == 2 && mayBeNull(call.Args[1]) {
			found = append(found, call.Range().String()+" (contains fails at null)")
		}
		operation, ok := node.(*hclsyntax.BinaryOpExpr)
		if !ok || operation.Op != hclsyntax.OpLogicalOr && operation.Op != hclsyntax.OpLogicalAnd {
			return nil
		}
		left, right := &references{}, &references{}
		_ = hclsyntax.Walk(operation.LHS, left)
		_ = hclsyntax.Walk(operation.RHS, right)
		for _, needed := range right.plain {
			for _, guarded := range append(left.compared, left.tried...) {
				if strings.HasPrefix(needed+".", guarded+".") && (needed != guarded || !slices.Contains(left.compared, guarded)) {
					found = append(found, operation.Range().String()+" ("+needed+")")
				}
			}
		}
		return nil
	})
	return found
}

// mayBeNull reports whether an expression is a try() that falls back to null.
func mayBeNull(expression hclsyntax.Expression) bool {
	call, ok := expression.(*hclsyntax.FunctionCallExpr)
	if !ok || call.Name != "try" {
		return false
	}
	last, ok := call.Args[len(call.Args)-1].(*hclsyntax.LiteralValueExpr)
	return ok && last.Val.IsNull()
}

// references collects what an expression refers to: inside of try() and can(), compared with null, and else.
type references struct {
	tries                  int
	tried, compared, plain []string
}

// Enter implements hclsyntax.Walker.
func (r *references) Enter(node hclsyntax.Node) hcl.Diagnostics {
	switch n := node.(type) {
	case *hclsyntax.FunctionCallExpr:
		if n.Name == "try" || n.Name == "can" {
			r.tries++
		}
	case *hclsyntax.ScopeTraversalExpr:
		switch path := pathOf(n.Traversal); {
		case r.tries == 0:
			r.plain = append(r.plain, path)
		case strings.Count(path, ".") > 1: // something inside of what may be null
			r.tried = append(r.tried, path)
		}
	case *hclsyntax.BinaryOpExpr:
		for _, sides := range [][2]hclsyntax.Expression{{n.LHS, n.RHS}, {n.RHS, n.LHS}} {
			compared, isReference := sides[0].(*hclsyntax.ScopeTraversalExpr)
			null, isLiteral := sides[1].(*hclsyntax.LiteralValueExpr)
			if isReference && isLiteral && null.Val.IsNull() {
				r.compared = append(r.compared, pathOf(compared.Traversal))
			}
		}
	}
	return nil
}

// Exit implements hclsyntax.Walker.
func (r *references) Exit(node hclsyntax.Node) hcl.Diagnostics {
	if call, ok := node.(*hclsyntax.FunctionCallExpr); ok && (call.Name == "try" || call.Name == "can") {
		r.tries--
	}
	return nil
}

// pathOf returns the names of a reference, joined by dots.
func pathOf(reference hcl.Traversal) string {
	names := []string{reference.RootName()}
	for _, step := range reference[1:] {
		if attribute, ok := step.(hcl.TraverseAttr); ok {
			names = append(names, attribute.Name)
		}
	}
	return strings.Join(names, ".")
}
