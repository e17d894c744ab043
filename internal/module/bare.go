package module

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// BareRoot is a root module with a module's providers and what they depend on, but no resources.
// Engines use it to read and destroy what is in a state.
type BareRoot struct {
	// HCL is empty for stacks, and for stored modules whose providers need more.
	HCL []byte
	// Variables are the names of its variables.
	Variables []string
}

// Cut extracts the root module from a module's files. It stays empty if a provider depends on
// something that a destroy does not have. refused is then that reference, and by the provider's
// block.
func (r *BareRoot) Cut(blocks map[string][]*hclsyntax.Block, files Files) (
	by *hclsyntax.Block, refused hcl.Traversal,
) {
	w := bareWriter{files: files, locals: map[string]*hclsyntax.Attribute{}, needed: map[string]bool{}}
	for _, block := range blocks["locals"] {
		maps.Copy(w.locals, block.Body.Attributes)
	}
	for _, block := range blocks["provider"] {
		if !w.need(block.Body, nil) {
			return block, w.refused
		}
	}
	for _, kind := range []string{"terraform", "provider"} {
		for _, block := range blocks[kind] {
			w.write(hcl.RangeBetween(block.TypeRange, block.CloseBraceRange))
		}
	}
	for _, block := range blocks["variable"] {
		if name := strings.Join(block.Labels, " "); w.needsVariable(name) {
			r.Variables = append(r.Variables, name)
		}
	}
	for _, block := range blocks["variable"] {
		if slices.Contains(r.Variables, strings.Join(block.Labels, " ")) {
			w.writeVariable(block, r.Variables)
		}
	}
	w.writeLocals()
	r.HCL = w.out.Bytes()
	return nil, nil
}

// bareWriter collects parts of a module's HCL.
type bareWriter struct {
	files  Files
	locals map[string]*hclsyntax.Attribute
	// needed are the names of locals, and paths the paths of variables, that providers depend on.
	needed map[string]bool
	paths  [][]string
	// refused is a reference that a provider must not have.
	refused hcl.Traversal
	out     bytes.Buffer
}

func (w *bareWriter) write(at hcl.Range) {
	w.out.Write(at.SliceBytes(w.files[at.Filename]))
	w.out.WriteByte('\n')
}

// writeVariable writes a variable with the validations that concern the providers, so that stored
// inputs cannot point them anywhere a providerSpec could not. Other validations may demand what a
// destroy does not have.
func (w *bareWriter) writeVariable(block *hclsyntax.Block, names []string) {
	text, from := w.files[block.TypeRange.Filename], block.TypeRange.Start.Byte
	for _, inner := range block.Body.Blocks {
		if inner.Type != "validation" || w.concerns(inner.Body, names) {
			continue
		}
		w.out.Write(bytes.TrimRight(text[from:inner.TypeRange.Start.Byte], " \t\n"))
		from = inner.CloseBraceRange.End.Byte
	}
	w.out.Write(text[from:block.CloseBraceRange.End.Byte])
	w.out.WriteByte('\n')
}

// concerns reports whether a validation refers to something that a provider depends on, and to no
// other variables than names.
func (w *bareWriter) concerns(validation *hclsyntax.Body, names []string) (concerns bool) {
	for _, attribute := range validation.Attributes {
		for _, reference := range attribute.Expr.Variables() {
			path := pathOf(reference)
			if reference.RootName() != variablesRoot || len(path) == 0 || !slices.Contains(names, path[0]) {
				return false
			}
			concerns = concerns || slices.ContainsFunc(w.paths, func(needed []string) bool {
				shared := min(len(needed), len(path))
				return slices.Equal(needed[:shared], path[:shared])
			})
		}
	}
	return concerns
}

// pathOf returns the attribute names in a reference to a variable.
func pathOf(reference hcl.Traversal) (names []string) {
	for _, step := range reference[1:] {
		attribute, ok := step.(hcl.TraverseAttr)
		if !ok {
			break
		}
		names = append(names, attribute.Name)
	}
	return names
}

func (w *bareWriter) needsVariable(name string) bool {
	return slices.ContainsFunc(w.paths, func(path []string) bool { return len(path) > 0 && path[0] == name })
}

// writeLocals writes the needed locals, sorted by name.
func (w *bareWriter) writeLocals() {
	if len(w.needed) == 0 {
		return
	}
	w.out.WriteString("locals {\n")
	for _, name := range slices.Sorted(maps.Keys(w.needed)) {
		w.write(w.locals[name].SrcRange)
	}
	w.out.WriteString("}\n")
}

// need records what a body depends on. It reports whether a destroy has all of it. bound are names
// that the body itself defines.
func (w *bareWriter) need(body *hclsyntax.Body, bound []string) bool {
	for _, attribute := range body.Attributes {
		if !w.needAll(attribute.Expr.Variables(), bound) {
			return false
		}
	}
	for _, inner := range body.Blocks {
		within := bound
		if inner.Type == "dynamic" {
			within = append(slices.Clone(bound), iteratorOf(inner))
		}
		if !w.need(inner.Body, within) {
			return false
		}
	}
	return true
}

// iteratorOf returns the iterator name of a dynamic block.
func iteratorOf(dynamic *hclsyntax.Block) string {
	if named := dynamic.Body.Attributes["iterator"]; named != nil {
		return hcl.ExprAsKeyword(named.Expr)
	}
	return strings.Join(dynamic.Labels, " ")
}

func (w *bareWriter) needAll(references []hcl.Traversal, bound []string) bool {
	for _, reference := range references {
		switch root := reference.RootName(); {
		case slices.Contains(bound, root), root == "each", root == "path":
		case root == variablesRoot && !slices.Equal(pathOf(reference), []string{VariableUserData}):
			w.paths = append(w.paths, pathOf(reference))
		case root != localsRoot || !w.needLocal(reference):
			if w.refused == nil {
				w.refused = reference
			}
			return false
		}
	}
	return true
}

func (w *bareWriter) needLocal(reference hcl.Traversal) bool {
	path := pathOf(reference)
	if len(path) == 0 || w.locals[path[0]] == nil {
		return false
	}
	if w.needed[path[0]] {
		return true
	}
	w.needed[path[0]] = true
	return w.needAll(w.locals[path[0]].Expr.Variables(), nil)
}
