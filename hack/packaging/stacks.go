package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
)

// overlays is the folder of files that define how a stack's variables differ from its module's.
const overlays = "hack/stackvariables"

// The arguments and blocks of a variable in an overlay.
const (
	newDescription  = "description"      // replaces the module's
	omitValidations = "omit_validations" // lists the error_message of each module validation that the stack omits
	validation      = "validation"       // is added after the module's
	omitted         = "omit"             // true leaves the variable out
)

// checksArgument is the top-level argument of an overlay that gives the stack the module's checks.
const checksArgument = "checks"

// stacks adds variables.tf of each stack with an overlay, and checks.tf if the overlay says so. Both come from the
// module of the same name.
func stacks(from source, all files) error {
	found, err := filepath.Glob(filepath.Join(from.root, overlays, "*.hcl"))
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("%s has no files %s/*.hcl", from.root, overlays)
	}
	if err != nil {
		return err
	}
	for _, file := range found {
		name := strings.TrimSuffix(filepath.Base(file), ".hcl")
		module, stack := "modules/"+name, "stacks/"+name
		content, checks, err := from.variables(module+"/variables.tf", overlays+"/"+name+".hcl")
		if err != nil {
			return err
		}
		all[stack+"/variables.tf"] = content
		if !checks {
			continue
		}
		if content, err = os.ReadFile(filepath.Join(from.root, module, "checks.tf")); err != nil {
			return err
		}
		all[stack+"/checks.tf"] = append(fmt.Appendf(nil, header+"\n", module+"/checks.tf"), content...)
	}
	return nil
}

// variables returns a module's variables with the overlay applied, and whether the stack has the module's checks.
func (s source) variables(module, overlay string) (content []byte, checks bool, err error) {
	file, err := s.parse(module)
	if err != nil {
		return nil, false, err
	}
	changes, err := s.parse(overlay)
	if err != nil {
		return nil, false, err
	}
	for name, attribute := range changes.Body().Attributes() {
		if name != checksArgument || string(expression(attribute)) != "true" {
			return nil, false, fmt.Errorf(
				"%s: the argument %s is not in a block variable; only %s = true may be outside",
				overlay, name, checksArgument)
		}
		checks = true
	}
	for _, change := range changes.Body().Blocks() {
		title := strings.Join(append([]string{change.Type()}, change.Labels()...), " ")
		variable := file.Body().FirstMatchingBlock(change.Type(), change.Labels())
		if variable == nil {
			return nil, false, fmt.Errorf("%s: %s has no %s", overlay, module, title)
		}
		if left := change.Body().GetAttribute(omitted); left != nil && string(expression(left)) == "true" {
			file.Body().RemoveBlock(variable)
			continue
		}
		if err := apply(variable.Body(), change.Body()); err != nil {
			return nil, false, fmt.Errorf("%s: %s: %w", overlay, title, err)
		}
	}
	content = hclwrite.Format(extraBlankLines.ReplaceAll(file.Bytes(), []byte("\n$1")))
	return append(fmt.Appendf(nil, header+"\n", module+" and "+overlay), content...), checks, nil
}

func (s source) parse(path string) (*hclwrite.File, error) {
	content, err := os.ReadFile(filepath.Join(s.root, path))
	if err != nil {
		return nil, err
	}
	file, diags := hclwrite.ParseConfig(content, path, hcl.InitialPos)
	if diags.HasErrors() {
		return nil, diags
	}
	return file, nil
}

// apply changes a variable according to its block in the overlay.
func apply(variable, change *hclwrite.Body) error {
	attributes := change.Attributes()
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		switch name {
		case newDescription:
			variable.SetAttributeRaw(name, attributes[name].Expr().BuildTokens(nil))
		case omitValidations:
			if err := omit(variable, expression(attributes[name])); err != nil {
				return err
			}
		default:
			return fmt.Errorf("the argument %s is the module's; only %s and %s may be set", name,
				newDescription, omitValidations)
		}
	}
	for _, block := range change.Blocks() {
		if block.Type() != validation {
			return fmt.Errorf("there is a block %s; only blocks %s may be added", block.Type(), validation)
		}
		variable.AppendNewline()
		variable.AppendBlock(block)
	}
	return nil
}

// omit removes the validations with the listed error messages, which it compares as source text.
func omit(variable *hclwrite.Body, list []byte) error {
	parsed, diags := hclsyntax.ParseExpression(list, omitValidations, hcl.InitialPos)
	if diags.HasErrors() {
		return diags
	}
	tuple, ok := parsed.(*hclsyntax.TupleConsExpr)
	if !ok {
		return fmt.Errorf("%s is not a list", omitValidations)
	}
	for _, element := range tuple.Exprs {
		message := element.Range().SliceBytes(list)
		at := slices.IndexFunc(variable.Blocks(), func(block *hclwrite.Block) bool {
			return block.Type() == validation &&
				bytes.Equal(expression(block.Body().GetAttribute("error_message")), message)
		})
		if at < 0 {
			return fmt.Errorf("the module has no validation with the error_message %s", message)
		}
		variable.RemoveBlock(variable.Blocks()[at])
	}
	return nil
}

// expression returns the source of an argument's value.
func expression(attribute *hclwrite.Attribute) []byte {
	if attribute == nil {
		return nil
	}
	return bytes.TrimSpace(attribute.Expr().BuildTokens(nil).Bytes())
}

// extraBlankLines are blank lines beyond the first, and those before a closing brace, which removing a block leaves
// behind.
var extraBlankLines = regexp.MustCompile(`\n\n+(\n| *})`)
