package contract

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/machine-iac/machine-iac-operator/internal/module/snapshot"
)

// Bounds of spec.instanceCheck.intervalSeconds.
const (
	minCheckSeconds = 60
	maxCheckSeconds = 86400
)

// checkInstanceCheck checks spec.instanceCheck against the module's providers; text is what was made of them.
func (m *Metadata) checkInstanceCheck(providers []*hclsyntax.Block, text []byte) {
	if m == nil || m.Spec.InstanceCheck == nil {
		return
	}
	if seconds := m.Spec.InstanceCheck.IntervalSeconds; seconds < minCheckSeconds || seconds > maxCheckSeconds {
		m.AtField("spec.instanceCheck.intervalSeconds", fmt.Sprintf("is %d", seconds), fmt.Sprintf("write %d to %d", minCheckSeconds, maxCheckSeconds))
	}
	if text != nil || len(providers) == 0 {
		return
	}
	m.At(providers[0].Range(), Title(providers[0]), "or a local that a provider needs refers to more than variables and locals, so that spec.instanceCheck has no provider to look with",
		"make the provider's arguments of variables alone, or remove spec.instanceCheck")
}

// instanceCheckHCL returns HCL with the settings, the variables and the providers of a module, with the locals that the providers need; nil where they
// need anything that is read or made.
func instanceCheckHCL(blocks map[string][]*hclsyntax.Block, files snapshot.Files) []byte {
	c := checkWriter{files: files, locals: map[string]*hclsyntax.Attribute{}, needed: map[string]bool{}}
	for _, block := range blocks["locals"] {
		for name, attribute := range block.Body.Attributes {
			c.locals[name] = attribute
		}
	}
	for _, kind := range []string{"terraform", "variable", "provider"} {
		for _, block := range blocks[kind] {
			c.write(hcl.RangeBetween(block.TypeRange, block.CloseBraceRange))
		}
	}
	for _, block := range blocks["provider"] {
		if !c.need(block.Body) {
			return nil
		}
	}
	c.writeLocals()
	return c.out.Bytes()
}

// checkWriter collects text of a module.
type checkWriter struct {
	files  snapshot.Files
	locals map[string]*hclsyntax.Attribute
	needed map[string]bool
	out    bytes.Buffer
}

func (c *checkWriter) write(at hcl.Range) {
	c.out.Write(at.SliceBytes(c.files[at.Filename]))
	c.out.WriteByte('\n')
}

// writeLocals writes the locals that are needed, in the order of their names.
func (c *checkWriter) writeLocals() {
	var names []string
	for name := range c.needed {
		names = append(names, name)
	}
	slices.Sort(names)
	c.out.WriteString("locals {\n")
	for _, name := range names {
		c.write(c.locals[name].SrcRange)
	}
	c.out.WriteString("}\n")
}

// need notes the locals that a body refers to. It reports whether it refers to nothing but locals and variables.
func (c *checkWriter) need(body *hclsyntax.Body) bool {
	for _, attribute := range body.Attributes {
		if !c.needAll(attribute.Expr.Variables()) {
			return false
		}
	}
	for _, inner := range body.Blocks {
		if !c.need(inner.Body) {
			return false
		}
	}
	return true
}

func (c *checkWriter) needAll(references []hcl.Traversal) bool {
	for _, reference := range references {
		switch reference.RootName() {
		case "var", "each": // each: of a dynamic block, or of a provider
		case "local":
			if len(reference) < 2 || !c.needLocal(reference[1]) {
				return false
			}
		default:
			return false
		}
	}
	return true
}

func (c *checkWriter) needLocal(step hcl.Traverser) bool {
	attribute, ok := step.(hcl.TraverseAttr)
	if !ok || c.locals[attribute.Name] == nil {
		return false
	}
	if c.needed[attribute.Name] {
		return true
	}
	c.needed[attribute.Name] = true
	return c.needAll(c.locals[attribute.Name].Expr.Variables())
}
