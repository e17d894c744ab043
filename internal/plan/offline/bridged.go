package offline

import "strings"

// bridgedName normalises a name: the bridge writes capitals instead of underscores.
func bridgedName(name string) string { return strings.ToLower(strings.ReplaceAll(name, "_", "")) }

// property finds the schema's name for a property: the bridge uses the plural for lists.
func property(name string, has func(name string) bool) (string, bool) {
	name = bridgedName(name)
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

// PruneBridged is [block.Prune] for a bridged resource, by the properties that a program sets.
func (b block) PruneBridged(unknown any, given any) {
	attributes, blocks := map[string]attribute{}, map[string]nested{}
	for name, one := range b.attributes {
		attributes[bridgedName(name)] = one
	}
	for name, one := range b.blocks {
		blocks[bridgedName(name)] = one
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
