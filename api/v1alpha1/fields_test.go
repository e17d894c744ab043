package v1alpha1

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/contracts/module-fields.md")

const fieldsHead = `# Fields of module.yaml

Generated from the Go types by ` + "`make generate`" + `; do not edit. An asterisk marks a required field.
[module-yaml.md](module-yaml.md) has examples.

| field | type | description |
|---|---|---|
`

func TestModuleFieldsAreDocumented(t *testing.T) {
	const page = "../../docs/contracts/module-fields.md"
	structs := structsOf(t)
	var out strings.Builder
	out.WriteString(fieldsHead)
	writeFields(&out, structs, structs["Module"], "")
	if *update {
		if err := os.WriteFile(page, []byte(out.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != out.String() {
		t.Errorf("%s is out of date; run 'make generate'", page)
	}
}

// structsOf returns the struct types of this package by name.
func structsOf(t *testing.T) map[string]*ast.StructType {
	t.Helper()
	files, err := filepath.Glob("*_types.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("finding the types: %d files, error %v", len(files), err)
	}
	structs := map[string]*ast.StructType{}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(node ast.Node) bool {
			if spec, ok := node.(*ast.TypeSpec); ok {
				if body, ok := spec.Type.(*ast.StructType); ok {
					structs[spec.Name.Name] = body
				}
			}
			return true
		})
	}
	return structs
}

// writeFields writes a table row for each field of a struct, and for the fields of its fields. Embedded fields are left out.
func writeFields(out *strings.Builder, structs map[string]*ast.StructType, body *ast.StructType, prefix string) {
	for _, field := range body.Fields.List {
		if len(field.Names) == 0 {
			continue
		}
		tag := reflect.StructTag(strings.Trim(field.Tag.Value, "`")).Get("json")
		name, options, _ := strings.Cut(tag, ",")
		mark := "*"
		if options == "omitempty" {
			mark = ""
		}
		kind, inner, suffix := describe(structs, field.Type)
		fmt.Fprintf(out, "| `%s`%s | %s | %s |\n", prefix+name, mark, kind, summary(name, field.Doc.Text()))
		if inner != nil {
			writeFields(out, structs, inner, prefix+name+suffix+".")
		}
	}
}

var docLink = regexp.MustCompile(`\[(\w+)\]`)

// summary returns a doc comment as a table cell, without the field's name before it.
func summary(name, doc string) string {
	text := docLink.ReplaceAllString(strings.Join(strings.Fields(doc), " "), "$1")
	text = strings.TrimPrefix(strings.TrimPrefix(text, name+" "), "is ")
	return strings.ReplaceAll(strings.ToUpper(text[:1])+text[1:], "|", `\|`)
}

// describe returns a type in words, the struct that it holds, if any, and the suffix of a path into it.
func describe(structs map[string]*ast.StructType, expression ast.Expr) (kind string, inner *ast.StructType, suffix string) {
	switch typed := expression.(type) {
	case *ast.StarExpr:
		return describe(structs, typed.X)
	case *ast.ArrayType:
		kind, inner, suffix = describe(structs, typed.Elt)
		return "[]" + kind, inner, suffix + "[]"
	case *ast.MapType:
		kind, inner, suffix = describe(structs, typed.Value)
		return "map of " + kind, inner, suffix + ".*"
	case *ast.SelectorExpr:
		if typed.Sel.Name == "Quantity" {
			return "quantity", nil, ""
		}
		return "any", nil, ""
	case *ast.Ident:
		if body := structs[typed.Name]; body != nil {
			return "object", body, ""
		}
		switch typed.Name {
		case "bool":
			return "bool", nil, ""
		case "int64":
			return "integer", nil, ""
		}
	}
	return "string", nil, ""
}
