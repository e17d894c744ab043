package render

import (
	"fmt"
	"strings"

	"github.com/agext/levenshtein"
	"github.com/zclconf/go-cty/cty"
)

// maxCompared bounds the names that are compared.
const maxCompared = 128

// closest returns the known name that a misspelled one is most likely meant to be. It returns "" if
// none is close, if several are equally close, and for a name that is known.
func closest(name string, known []string) string {
	const near = 2
	best, least := "", near+1
	for _, candidate := range known {
		limit := min(near, (len(candidate)-1)/2)
		longer := len(name) - len(candidate)
		switch {
		case candidate == name:
			return ""
		case candidate == best || len(name) > maxCompared || max(longer, -longer) > limit:
			continue
		}
		switch far := levenshtein.Distance(strings.ToLower(name), strings.ToLower(candidate), nil); {
		case far > limit || far > least:
		case far == least:
			best = ""
		default:
			best, least = candidate, far
		}
	}
	return best
}

// meant returns a question that suggests the allowed text closest to the value, or "".
func (f field) meant() string {
	if f.show() == "" || f.value.Type() != cty.String || f.value.IsNull() {
		return ""
	}
	if best := closest(f.value.AsString(), f.allowed); best != "" {
		return fmt.Sprintf("did you mean %q? ", best)
	}
	return ""
}
