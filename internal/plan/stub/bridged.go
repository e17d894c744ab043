package stub

import "strings"

// BridgedName returns a name as both spell it, the bridge and the provider: the bridge writes capitals in place of underscores.
func BridgedName(name string) string { return strings.ToLower(strings.ReplaceAll(name, "_", "")) }

// property returns the name in the schema of what the bridge calls by another: it writes lists in the plural.
func property(name string, has func(name string) bool) (string, bool) {
	name = BridgedName(name)
	singular := []string{name, strings.TrimSuffix(name, "s"), strings.TrimSuffix(name, "es")}
	if stem, ok := strings.CutSuffix(name, "ies"); ok {
		singular = append(singular, stem+"y")
	}
	for _, one := range singular {
		if has(one) {
			return one, true
		}
	}
	return "", false
}

// PruneBridged is [Block.Prune] for a resource that the bridge serves, by the properties that a program sets.
func (b Block) PruneBridged(unknown any, given any) {
	attributes, blocks := map[string]attribute{}, map[string]nested{}
	for name, one := range b.attributes {
		attributes[BridgedName(name)] = one
	}
	for name, one := range b.blocks {
		blocks[BridgedName(name)] = one
	}
	marks, _ := unknown.(map[string]any)
	object, _ := given.(map[string]any)
	for name, mark := range marks {
		if at, ok := property(name, func(name string) bool { _, ok := attributes[name]; return ok }); ok {
			one := attributes[at]
			if _, set := object[name]; mark == true && one.optional && !one.computed && !set {
				delete(marks, name)
			}
			continue
		}
		at, ok := property(name, func(name string) bool { _, ok := blocks[name]; return ok })
		if !ok {
			continue
		}
		entries, isList := mark.([]any)
		set, _ := object[name].([]any)
		if !isList {
			entries, set = []any{mark}, []any{object[name]}
		}
		for n, entry := range entries {
			var one any
			if n < len(set) {
				one = set[n]
			}
			blocks[at].PruneBridged(entry, one)
		}
	}
}
