package offline

import (
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"

	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
)

const (
	// onceVariable reports that what there is for each result of a data source is planned once.
	onceVariable = "machine_iac_once"
	// onceKey is the key of what is planned once, as a plan shows what is unknown.
	onceKey = "(known after apply)"
	// onceValue is a value of which everything is unknown, down to its type.
	onceValue = `try(jsondecode(` + laterName + `[0].id), null)`
)

// What stands before and after an expression that may be planned once. A tuple keeps the type of each of its elements, which the branches of a
// condition do not.
const (
	onceBefore = `[{ "` + onceKey + `" = ` + onceValue + ` }, (`
	onceAfter  = `)][var.` + onceVariable + ` ? 0 : 1]`
)

// uncounted reports whether an engine refused a plan because only the infrastructure knows for what there is a resource.
func uncounted(err error) bool {
	var refused *failure.Error
	return errors.As(err, &refused) && slices.ContainsFunc(refused.Diagnostics, func(d failure.Diagnostic) bool {
		return d.Summary == "Invalid for_each argument" && strings.Contains(d.Detail, "until apply")
	})
}

// letOnce lets each block whose for_each depends on data sources be planned once, with a key and a value that are unknown.
func (s *source) letOnce() error {
	parsed, depends := map[string]*hclwrite.File{}, map[string][]string{}
	for name, content := range s.files {
		if path.Dir(name) != moduleDir || path.Ext(name) != ".tf" {
			continue
		}
		file, diags := hclwrite.ParseConfig(content, name, hcl.InitialPos)
		if diags.HasErrors() {
			return diags
		}
		parsed[name] = file
		for _, block := range file.Body().Blocks() {
			if block.Type() != "locals" {
				continue
			}
			for local, attribute := range block.Body().Attributes() {
				depends["local."+local] = referencesOf(attribute)
			}
		}
	}
	for name, file := range parsed {
		changed := false
		for _, block := range file.Body().Blocks() {
			if kind := block.Type(); kind == "resource" || kind == "data" {
				changed = wrap(block.Body(), depends) || changed
			}
		}
		if changed {
			s.files[name] = file.Bytes()
		}
	}
	return nil
}

// wrap wraps the for_each of a block, if that depends on a data source, and reports whether it does.
func wrap(body *hclwrite.Body, depends map[string][]string) bool {
	attribute := body.GetAttribute("for_each")
	if attribute == nil || !readsData(referencesOf(attribute), depends, map[string]bool{}) {
		return false
	}
	wrapped := hclwrite.Tokens{{Type: hclsyntax.TokenIdent, Bytes: []byte(onceBefore)}}
	wrapped = append(wrapped, attribute.Expr().BuildTokens(nil)...)
	body.SetAttributeRaw("for_each", append(wrapped, &hclwrite.Token{Type: hclsyntax.TokenIdent, Bytes: []byte(onceAfter)}))
	return true
}

// referencesOf returns what an expression refers to: the first two names of each reference.
func referencesOf(attribute *hclwrite.Attribute) []string {
	var found []string
	for _, traversal := range attribute.Expr().Variables() {
		written := strings.TrimSpace(string(traversal.BuildTokens(nil).Bytes()))
		names := strings.FieldsFunc(written, func(r rune) bool { return r == '.' || r == '[' })
		found = append(found, strings.Join(names[:min(2, len(names))], "."))
	}
	return found
}

// readsData reports whether one of the references leads to a data source.
func readsData(references []string, depends map[string][]string, seen map[string]bool) bool {
	return slices.ContainsFunc(references, func(reference string) bool {
		if strings.HasPrefix(reference, "data.") {
			return true
		}
		if seen[reference] {
			return false
		}
		seen[reference] = true
		return readsData(depends[reference], depends, seen)
	})
}
