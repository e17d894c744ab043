package contract

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/machine-iac/machine-iac-operator/internal/module"
)

// fileFunctions are HCL's functions that read files. The value is true for those whose argument
// must be a file of the module.
var fileFunctions = map[string]bool{
	"file": true, "filebase64": true, "filebase64sha256": true, "filebase64sha512": true, "filemd5": true,
	"filesha1": true, "filesha256": true,
	"filesha512": true, templateFile: true, fileSet: false, "fileexists": false,
}

const (
	templateFile   = "templatefile"
	templateString = "templatestring"
	fileSet        = "fileset"
	pathRoot       = "path"

	literalFix = `use the literal path of a file of the module, as "${path.module}/name"`
)

// functionName returns the name of a function without the engine's own namespace.
func functionName(call *hclsyntax.FunctionCallExpr) string {
	return strings.TrimPrefix(call.Name, "core::")
}

// readsFiles reports whether a call may read files.
func readsFiles(call *hclsyntax.FunctionCallExpr) bool {
	_, reads := fileFunctions[functionName(call)]
	return reads || functionName(call) == templateString
}

// fileCheck restricts HCL functions that read files to the files of the module, since the engine
// runs next to other files of the manager.
type fileCheck struct {
	files module.Files
	found *Report
	// templates have been checked already. inTemplate means that a template is being checked, where
	// path.module may have any value.
	templates  map[string]bool
	inTemplate bool
}

// check checks the calls below a node.
func (c fileCheck) check(node hclsyntax.Node) {
	_ = hclsyntax.VisitAll(node, func(node hclsyntax.Node) hcl.Diagnostics {
		switch node := node.(type) {
		case *hclsyntax.FunctionCallExpr:
			if readsFiles(node) {
				c.call(node)
			}
		case *hclsyntax.ForExpr:
			if node.KeyVar == pathRoot || node.ValVar == pathRoot {
				c.found.UnsafeAt(node.Range(), "for", "uses the name path for something else than the module's folder",
					"use another name")
			}
		}
		return nil
	})
}

// refuse adds a breach, unless the rules for expressions that are evaluated before a run have
// rejected the call already.
func (c fileCheck) refuse(call *hclsyntax.FunctionCallExpr, problem, fix string) {
	at := call.NameRange
	known := func(b Breach) bool {
		return b.File == at.Filename && b.Line == at.Start.Line && strings.HasPrefix(b.Problem, "calls "+call.Name+",")
	}
	if !c.found.MarkUnsafe(known) {
		c.found.UnsafeAt(at, "the function "+functionName(call), problem, fix)
	}
}

func (c fileCheck) call(call *hclsyntax.FunctionCallExpr) {
	name := functionName(call)
	if name == templateString {
		c.refuse(call, "evaluates a text that could read any file of the manager",
			"use templatefile with a file of the module")
		return
	}
	arguments := call.Args[:min(len(call.Args), 1)]
	if name == fileSet {
		arguments = call.Args
	}
	if len(arguments) == 0 || call.ExpandFinal {
		c.refuse(call, "has no argument that names a file", literalFix)
		return
	}
	var named string
	for _, argument := range arguments {
		text, literal := c.path(argument)
		switch {
		case !literal:
			c.refuse(call, "reads a computed path, which may be that of any file of the manager", literalFix)
			return
		case !isInside(text):
			c.refuse(call, fmt.Sprintf("reads %q, which is outside of the module", text), literalFix)
			return
		}
		named = path.Clean(text)
	}
	if !fileFunctions[name] {
		return
	}
	if _, exists := c.files[named]; !exists || !InfluencesRun(named) {
		c.refuse(call, fmt.Sprintf("reads %q, which is not a file of the module that a run has", named), "add it outside of tests/ and examples/, or correct the path")
		return
	}
	if name == templateFile {
		c.template(call, named)
	}
}

// path returns a path that does not depend on anything: a constant, which may start with
// path.module outside of templates.
func (c fileCheck) path(expression hclsyntax.Expression) (text string, literal bool) {
	if c.inTemplate {
		return constant(expression)
	}
	if wrapped, ok := expression.(*hclsyntax.TemplateWrapExpr); ok {
		expression = wrapped.Wrapped
	}
	if isModuleFolder(expression) {
		return ".", true
	}
	if template, ok := expression.(*hclsyntax.TemplateExpr); ok && len(template.Parts) > 1 &&
		isModuleFolder(template.Parts[0]) {
		rest := *template
		rest.Parts = template.Parts[1:]
		text, literal = constant(&rest)
		if text, rooted := strings.CutPrefix(text, "/"); rooted {
			return text, literal
		}
		return "", false
	}
	return constant(expression)
}

func isModuleFolder(expression hclsyntax.Expression) bool {
	traversal, diags := hcl.AbsTraversalForExpr(expression)
	if diags.HasErrors() || len(traversal) != 2 || traversal.RootName() != pathRoot {
		return false
	}
	attribute, ok := traversal[1].(hcl.TraverseAttr)
	return ok && attribute.Name == "module"
}

func constant(expression hclsyntax.Expression) (string, bool) {
	value, diags := expression.Value(nil)
	if diags.HasErrors() || value.IsMarked() || !value.IsKnown() || value.IsNull() || value.Type() != cty.String {
		return "", false
	}
	return value.AsString(), true
}

// isInside reports whether a relative path stays inside its folder. Engines expand ~ to the home of
// their user.
func isInside(name string) bool {
	return name != "" && !strings.HasPrefix(name, "/") && !strings.HasPrefix(name, "~") &&
		!strings.ContainsAny(name, "\\\x00") &&
		!slices.Contains(strings.Split(name, "/"), "..")
}

// template applies the same check to the calls of a template.
func (c fileCheck) template(call *hclsyntax.FunctionCallExpr, name string) {
	if c.templates[name] {
		return
	}
	c.templates[name] = true
	content := c.files[name]
	tokens, _ := hclsyntax.LexTemplate(content, name, hcl.InitialPos) // what the lexer complains of, the parser complains of too
	if line, problem := TooDeep(tokens); line > 0 {
		c.found.Add(Breach{File: name, Line: line, Problem: problem, Fix: "simplify it", Unsafe: true})
		return
	}
	parsed, diags := hclsyntax.ParseTemplate(content, name, hcl.InitialPos)
	if diags.HasErrors() {
		c.refuse(call, fmt.Sprintf("reads %q, which is not a template: %s", name, OneLine(diags.Error())), "correct it, or use file")
		return
	}
	c.inTemplate = true
	c.check(parsed)
}
