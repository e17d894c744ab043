package contract

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// Limits for the HCL parser: it recurses, and a stack overflow cannot be recovered from.
const (
	maxNesting   = 100
	maxOperators = 5000
)

// The folders of searches, which find objects in the infrastructure in runs that request it.
const (
	// LookupFolder finds an instance that the state has lost.
	LookupFolder = "lookup"
	// AdoptFolder finds an existing instance to adopt.
	AdoptFolder = "adopt"
	// InventoryFolder lists the instances of a cluster.
	InventoryFolder = "inventory"
	// CapacityFolder reads the size of an instance type.
	CapacityFolder = "capacity"
)

// IsSearchFolder reports whether a folder contains a search.
func IsSearchFolder(folder string) bool {
	return slices.Contains([]string{LookupFolder, AdoptFolder, InventoryFolder, CapacityFolder}, folder)
}

// IsRootHCL reports whether the engine reads the file as part of the module.
func IsRootHCL(name string) bool {
	return path.Dir(name) == "." && path.Ext(name) == ".tf"
}

// searchHCL returns a function that reports whether a file is linked into a run's folder for the
// search in a folder.
func searchHCL(folder string) func(name string) bool {
	return func(name string) bool { return path.Dir(name) == folder && path.Ext(name) == ".tf" }
}

// ParseHCL returns the syntax tree of a file, or nil after reporting errors.
func ParseHCL(content []byte, name string, found *Report) *hclsyntax.Body {
	// The parser reports the lexer's errors too.
	tokens, _ := hclsyntax.LexConfig(content, "", hcl.InitialPos)
	if line, problem := TooDeep(tokens); line > 0 {
		found.Add(Breach{File: name, Line: line, Problem: problem, Fix: "simplify it", Unsafe: true})
		return nil
	}
	file, diags := hclparse.NewParser().ParseHCL(content, name)
	found.diagnostics(name, "", diags)
	if diags.HasErrors() || file == nil {
		return nil
	}
	body, ok := file.Body.(*hclsyntax.Body)
	if !ok {
		return nil
	}
	return body
}

// TooDeep returns the line where the parser would recurse too deep, and why, or 0. It uses only the
// lexer, which does not recurse. Brackets nest; operators recurse even without brackets ("!!!x", "a
// ? b : c ? d : e").
func TooDeep(tokens hclsyntax.Tokens) (line int, problem string) {
	depth, operators := 0, 0
	for _, token := range tokens {
		switch token.Type {
		case hclsyntax.TokenOBrace, hclsyntax.TokenOBrack, hclsyntax.TokenOParen, hclsyntax.TokenOQuote,
			hclsyntax.TokenOHeredoc,
			hclsyntax.TokenTemplateInterp, hclsyntax.TokenTemplateControl:
			depth++
		case hclsyntax.TokenCBrace, hclsyntax.TokenCBrack, hclsyntax.TokenCParen, hclsyntax.TokenCQuote,
			hclsyntax.TokenCHeredoc,
			hclsyntax.TokenTemplateSeqEnd:
			depth--
		case hclsyntax.TokenBang, hclsyntax.TokenMinus, hclsyntax.TokenQuestion, hclsyntax.TokenPlus, hclsyntax.TokenStar,
			hclsyntax.TokenSlash, hclsyntax.TokenPercent, hclsyntax.TokenAnd, hclsyntax.TokenOr, hclsyntax.TokenEqualOp,
			hclsyntax.TokenNotEqual, hclsyntax.TokenLessThan, hclsyntax.TokenLessThanEq, hclsyntax.TokenGreaterThan,
			hclsyntax.TokenGreaterThanEq:
			operators++
		}
		switch {
		case depth > maxNesting:
			return token.Range.Start.Line, fmt.Sprintf("has more than %d nested brackets", maxNesting)
		case operators > maxOperators:
			return token.Range.Start.Line, fmt.Sprintf("has more than %d operators", maxOperators)
		}
	}
	return 0, ""
}

// literal returns the value of an attribute that must be a literal.
func literal(attribute *hclsyntax.Attribute) (cty.Value, hcl.Diagnostics) {
	return attribute.Expr.Value(nil)
}

// literalString returns a literal, known, non-null string.
func literalString(attribute *hclsyntax.Attribute) (string, bool) {
	if attribute == nil {
		return "", false
	}
	value, diags := literal(attribute)
	if diags.HasErrors() || value.IsMarked() || !value.IsKnown() || value.IsNull() || value.Type() != cty.String {
		return "", false
	}
	return value.AsString(), true
}

// literalBool returns a literal bool; absent is false, and ok.
func literalBool(attribute *hclsyntax.Attribute) (value, ok bool) {
	if attribute == nil {
		return false, true
	}
	parsed, diags := literal(attribute)
	if diags.HasErrors() || parsed.IsMarked() || !parsed.IsKnown() || parsed.IsNull() || parsed.Type() != cty.Bool {
		return false, false
	}
	return parsed.True(), true
}

// Title returns a block's type and labels, for messages.
func Title(block *hclsyntax.Block) string {
	quoted := make([]string, 0, len(block.Labels)+1)
	quoted = append(quoted, block.Type)
	for _, label := range block.Labels {
		quoted = append(quoted, fmt.Sprintf("%q", label))
	}
	return strings.Join(quoted, " ")
}
