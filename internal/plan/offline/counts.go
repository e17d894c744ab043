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
	// onceVariable holds the addresses of blocks that are planned once instead of for each result of a data source.
	onceVariable = "machine_iac_once"
	// onceKey is the key of such a block, in the words of a plan.
	onceKey = "(known after apply)"
	// onceValue is wholly unknown, including its type.
	onceValue = `try(jsondecode(` + laterName + `[0].id), null)`
)

// onceBefore and onceAfter wrap an expression that may be planned once. A tuple keeps the type of each element; the
// branches of a condition would not.
const onceBefore = `[{ "` + onceKey + `" = ` + onceValue + ` }, (`

func onceAfter(address string) string {
	return `)][contains(var.` + onceVariable + `, "` + address + `") ? 0 : 1]`
}

// uncounted returns the addresses of blocks that the engine cannot plan because their count depends on the
// infrastructure.
func uncounted(err error) (addresses []string) {
	var refused *failure.Error
	if !errors.As(err, &refused) {
		return nil
	}
	for _, d := range refused.Diagnostics {
		if d.Summary == "Invalid for_each argument" && strings.Contains(d.Detail, "until apply") {
			addresses = append(addresses,
				addressOf(strings.FieldsFunc(d.Context, func(r rune) bool { return r == ' ' || r == '"' })))
		}
	}
	return addresses
}

func addressOf(block []string) string {
	return strings.TrimPrefix(strings.Join(block, "."), "resource.")
}

// letOnce lets each block whose for_each depends on data sources be planned once, with an unknown key and value.
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
				changed = wrap(block.Body(), addressOf(append([]string{kind}, block.Labels()...)), depends) || changed
			}
		}
		if changed {
			s.files[name] = file.Bytes()
		}
	}
	return nil
}

// wrap wraps a block's for_each if it depends on a data source, and reports whether it does.
func wrap(body *hclwrite.Body, address string, depends map[string][]string) bool {
	attribute := body.GetAttribute("for_each")
	if attribute == nil || !readsData(referencesOf(attribute), depends, map[string]bool{}) {
		return false
	}
	wrapped := hclwrite.Tokens{{Type: hclsyntax.TokenIdent, Bytes: []byte(onceBefore)}}
	wrapped = append(wrapped, attribute.Expr().BuildTokens(nil)...)
	body.SetAttributeRaw("for_each",
		append(wrapped, &hclwrite.Token{Type: hclsyntax.TokenIdent, Bytes: []byte(onceAfter(address))}))
	return true
}

// referencesOf returns the first two names of each reference in an expression.
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
