package render

import (
	"slices"
	"sync"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/machine-iac/machine-iac-operator/internal/module"
)

// maxHeld limits the cache; beyond it, the cache is cleared.
const maxHeld = 10_000

// Held caches which validations have passed for which values. Most of them depend only on fields
// that the Machines of one MachineSet share, so each is evaluated once instead of for every
// Machine. The zero value is empty; nil disables it. It is safe for concurrent use.
type Held struct {
	mu sync.Mutex
	// all are digests of a validation and its values.
	all map[string]struct{}
	// provided are valid providerSpecs, by module digest and JSON.
	provided map[string]providedSpec
}

// providedSpec is the variable provider_spec, and its canonical JSON if known.
type providedSpec struct {
	value cty.Value
	json  []byte
}

// provide returns the variable provider_spec for a module. It is the same for all Machines of a
// MachineSet.
func (h *Held) provide(read *spec, input Input, found *findings) providedSpec {
	fresh := func() providedSpec { return providedSpec{value: read.provides(input.Module, found)} }
	if h == nil || read.values == nil || len(input.Machine.Spec.ProviderSpec.Value.Raw) > maxDecodedSize {
		return fresh()
	}
	key := input.Module.Digest() + "\n" + string(input.Machine.Spec.ProviderSpec.Value.Raw)
	h.mu.Lock()
	before, known := h.provided[key]
	h.mu.Unlock()
	if known {
		return before
	}
	faults := len(found.errs) + len(found.warnings)
	provided := fresh()
	if len(found.errs)+len(found.warnings) > faults {
		return provided
	}
	var err error
	if provided.json, err = ctyjson.Marshal(provided.value, provided.value.Type()); err != nil { // it is partly unknown
		return providedSpec{value: provided.value}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.provided == nil || len(h.provided) >= maxDecoded {
		h.provided = map[string]providedSpec{}
	}
	h.provided[key] = provided
	return provided
}

func (h *Held) has(one string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, held := h.all[one]
	return held
}

func (h *Held) add(one string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all == nil || len(h.all) >= maxHeld {
		h.all = map[string]struct{}{}
	}
	h.all[one] = struct{}{}
}

// heldBefore reports whether a validation has passed for these values before. The returned function
// records that it has. It is a no-op if the validation depends on unknown values, or on anything
// but variables.
func (v *validator) heldBefore(validation module.Validation) (before bool, held func()) {
	none := func() {}
	if v.held == nil {
		return false, none
	}
	one, ok := v.digestOf(validation)
	if !ok {
		return false, none
	}
	return v.held.has(one), func() { v.held.add(one) }
}

// digestOf returns the cache key for a validation and the values that it refers to.
func (v *validator) digestOf(validation module.Validation) (string, bool) {
	parts := [][]byte{[]byte(v.module.Digest()), []byte(validation.Range.String())}
	names, ok := referenced(validation)
	if !ok {
		return "", false
	}
	for _, name := range names {
		raw, err := v.encode(name)
		if err != nil {
			return "", false
		}
		parts = append(parts, []byte(name), raw)
	}
	return hashOf(parts...), true
}

// referenced returns the variables that a validation refers to, or false if it refers to anything
// else.
func referenced(validation module.Validation) ([]string, bool) {
	var names []string
	for _, expression := range []hcl.Expression{validation.Condition, validation.ErrorMessage} {
		for _, reference := range expression.Variables() {
			name := module.ReferencedVariable(reference)
			if name == "" {
				return nil, false
			}
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), true
}
