package verify

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// changesOnly are predicates that each watch of other objects needs one of. Without it, each resync and restart of a
// watch reconciles the controller's object once for every watched object.
var changesOnly = []string{"Changes", "deletions"}

// watchesOfOthers counts a file's watches of objects other than the controller's own, and returns the positions of
// those without such a predicate.
func watchesOfOthers(fileset *token.FileSet, file *ast.File) (found int, lacking []string) {
	ast.Inspect(file, func(node ast.Node) bool {
		call, ok := node.(*ast.CallExpr)
		if !ok || !slices.Contains([]string{"Watches", "Owns", "WatchNodes"}, calledName(call)) ||
			mentions(call.Args, "EnqueueRequestForObject") {
			return true
		}
		found++
		if !slices.ContainsFunc(changesOnly, func(name string) bool { return mentions(call.Args, name) }) {
			lacking = append(lacking, fileset.Position(call.Args[0].Pos()).String())
		}
		return true
	})
	return found, lacking
}

// calledName returns the unqualified name of a function or method.
func calledName(call *ast.CallExpr) string {
	if selector, ok := call.Fun.(*ast.SelectorExpr); ok {
		return selector.Sel.Name
	}
	return ""
}

// mentions reports whether expressions contain an identifier.
func mentions(expressions []ast.Expr, name string) (found bool) {
	for _, expression := range expressions {
		ast.Inspect(expression, func(node ast.Node) bool {
			identifier, ok := node.(*ast.Ident)
			found = found || ok && identifier.Name == name
			return !found
		})
	}
	return found
}

func TestWatchesOfOtherObjectsReportChangesOnly(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "controllers", "*", "setup.go"))
	if err != nil {
		t.Fatal(err)
	}
	all := 0
	for _, name := range files {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		fileset := token.NewFileSet()
		file, err := parser.ParseFile(fileset, name, content, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		found, lacking := watchesOfOthers(fileset, file)
		all += found
		for _, where := range lacking {
			t.Errorf("%s: the watch reports resyncs and what was there when it began; add pipeline.Changes() to its "+
				"predicates", where)
		}
	}
	const least = 7
	if all < least {
		t.Errorf("%d watches were found, want %d; the test would hold nothing", all, least)
	}
}

func TestWatchesOfOthers(t *testing.T) {
	const source = `package a
func f() {
	build.For(&Set{}).
		Owns(&Machine{}, WithPredicates(pipeline.Changes())).
		Watches(&Machine{}, all)
	options.WatchNodes(build, &handler.EnqueueRequestForObject{}, updates())
	options.WatchNodes(build, all, deletions())
	options.WatchNodes(build, all, updates())
}`
	fileset := token.NewFileSet()
	file, err := parser.ParseFile(fileset, "a.go", source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	found, lacking := watchesOfOthers(fileset, file)
	if diff := cmp.Diff(fmt.Sprint(4, []string{"a.go:5:11", "a.go:8:21"}), fmt.Sprint(found, lacking)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
