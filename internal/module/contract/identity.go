package contract

import (
	"maps"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// checkWrites checks that the instance gets its Machine's UID if spec.identity lists its type: an
// argument must refer to it, directly or through locals and other resources. The module's tests
// must prove that it ends up where spec.identity says.
func (m *Metadata) checkWrites(blocks map[string][]*hclsyntax.Block, found *Report) {
	if m == nil {
		return
	}
	search := uidSearch{bodies: map[string]*hclsyntax.Body{}, locals: localsOf(blocks["locals"])}
	for _, block := range blocks["resource"] {
		search.bodies[strings.Join(block.Labels, ".")] = block.Body
	}
	for _, block := range blocks["resource"] {
		address := strings.Join(block.Labels, ".")
		if len(block.Labels) != 2 || block.Labels[1] != instanceName || !m.Identities.Has(address) ||
			block.Labels[0] == builtInType {
			continue
		}
		search.seen = map[string]bool{}
		if !search.in(block.Body) {
			found.At(block.Range(), Title(block),
				"does not get the UID of its Machine, which it must carry according to spec.identity of module.yaml",
				"set var.machine.uid where spec.identity reads it")
		}
	}
}

// uidSearch finds what var.machine.uid reaches in a module.
type uidSearch struct {
	bodies map[string]*hclsyntax.Body
	locals map[string]*hclsyntax.Attribute
	seen   map[string]bool
}

func (s uidSearch) in(body *hclsyntax.Body) bool {
	for _, attribute := range body.Attributes {
		if s.inExpression(attribute.Expr) {
			return true
		}
	}
	for _, inner := range body.Blocks {
		if s.in(inner.Body) {
			return true
		}
	}
	return false
}

func (s uidSearch) inExpression(expression hclsyntax.Expression) bool {
	for _, traversal := range expression.Variables() {
		if s.inTraversal(traversal) {
			return true
		}
	}
	return false
}

func (s uidSearch) inTraversal(traversal hcl.Traversal) bool {
	parts := strings.Split(address(traversal), ".")
	if parts[0] == "var" {
		return len(parts) > 1 && parts[1] == "machine" && (len(parts) == 2 || parts[2] == "uid")
	}
	if len(parts) < 2 {
		return false
	}
	parts[1] = strings.TrimSuffix(parts[1], "[0]")
	name := parts[0] + "." + parts[1]
	if s.seen[name] {
		return false
	}
	s.seen[name] = true
	if local := s.locals[parts[1]]; parts[0] == "local" && local != nil {
		return s.inExpression(local.Expr)
	}
	body := s.bodies[name]
	return body != nil && s.in(body)
}

// localsOf returns the locals of a module by name.
func localsOf(blocks []*hclsyntax.Block) map[string]*hclsyntax.Attribute {
	found := map[string]*hclsyntax.Attribute{}
	for _, block := range blocks {
		maps.Copy(found, block.Body.Attributes)
	}
	return found
}
