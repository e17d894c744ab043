package confine

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/machine-iac/machine-iac-operator/internal/module/contract"
	"github.com/machine-iac/machine-iac-operator/internal/module/snapshot"
)

// fileFunctions are HCL's functions that read files, by name. Those that are true read what must be a file of the module.
var fileFunctions = map[string]bool{
	"file": true, "filebase64": true, "filebase64sha256": true, "filebase64sha512": true, "filemd5": true, "filesha1": true, "filesha256": true,
	"filesha512": true, templateFile: true, fileSet: false, "fileexists": false,
}

const (
	templateFile   = "templatefile"
	templateString = "templatestring"
	fileSet        = "fileset"
	pathRoot       = "path"

	literalFix = `name a file of the module literally, as "${path.module}/name"`
)

// functionName returns the name of a function without the namespace of those that the engine has itself.
func functionName(call *hclsyntax.FunctionCallExpr) string {
	return strings.TrimPrefix(call.Name, "core::")
}

// readsFiles reports whether a call may read files.
func readsFiles(call *hclsyntax.FunctionCallExpr) bool {
	_, reads := fileFunctions[functionName(call)]
	return reads || functionName(call) == templateString
}

// fileCheck keeps the functions of HCL that read files to the files of the module: the engine runs beside other files of the manager.
type fileCheck struct {
	files snapshot.Files
	found *contract.Report
	// templates are those that have been read, and inTemplate says that what is checked is one: path.module is whatever it is given there.
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
				c.found.UnsafeAt(node.Range(), "for", "gives the name path to something else than the module's folder", "use another name")
			}
		}
		return nil
	})
}

// refuse adds a breach, unless a rule for expressions that are evaluated before a run has refused the call already.
func (c fileCheck) refuse(call *hclsyntax.FunctionCallExpr, problem, fix string) {
	at := call.NameRange
	known := func(b contract.Breach) bool {
		return b.File == at.Filename && b.Line == at.Start.Line && strings.HasPrefix(b.Problem, "calls "+call.Name+",")
	}
	if !c.found.MarkUnsafe(known) {
		c.found.UnsafeAt(at, "the function "+functionName(call), problem, fix)
	}
}

func (c fileCheck) call(call *hclsyntax.FunctionCallExpr) {
	name := functionName(call)
	if name == templateString {
		c.refuse(call, "evaluates a text that could read any file of the manager", "use templatefile with a file of the module")
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
			c.refuse(call, "reads a path that is computed, which may lead to any file of the manager", literalFix)
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
	if _, exists := c.files[named]; !exists || !contract.InfluencesRun(named) {
		c.refuse(call, fmt.Sprintf("reads %q, which is no file of the module that a run has", named), "add it outside of tests/ and examples/, or correct the path")
		return
	}
	if name == templateFile {
		c.template(call, named)
	}
}

// path returns a path that does not depend on anything: a constant text, which may begin with path.module where that is the module's folder.
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
	if template, ok := expression.(*hclsyntax.TemplateExpr); ok && len(template.Parts) > 1 && isModuleFolder(template.Parts[0]) {
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

// isInside reports whether a path leads to something in the folder that it is read from, without a step out of it. Engines take ~ for the home
// of their user.
func isInside(name string) bool {
	return name != "" && !strings.HasPrefix(name, "/") && !strings.HasPrefix(name, "~") && !strings.ContainsAny(name, "\\\x00") &&
		!slices.Contains(strings.Split(name, "/"), "..")
}

// template checks what a template calls: the same functions as the file that uses it.
func (c fileCheck) template(call *hclsyntax.FunctionCallExpr, name string) {
	if c.templates[name] {
		return
	}
	c.templates[name] = true
	content := c.files[name]
	tokens, _ := hclsyntax.LexTemplate(content, name, hcl.InitialPos) // what the lexer complains of, the parser complains of too
	if line, problem := contract.TooDeep(tokens); line > 0 {
		c.found.Add(contract.Breach{File: name, Line: line, Problem: problem, Fix: "write it simpler", Unsafe: true})
		return
	}
	parsed, diags := hclsyntax.ParseTemplate(content, name, hcl.InitialPos)
	if diags.HasErrors() {
		c.refuse(call, fmt.Sprintf("reads %q, which is no template: %s", name, contract.OneLine(diags.Error())), "correct it, or use file")
		return
	}
	c.inTemplate = true
	c.check(parsed)
}
