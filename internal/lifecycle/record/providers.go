package record

import "fmt"

// Providers describes the provider binaries of a Machine's runs by name and SHA-256.
type Providers struct {
	// Applied are the providers of the last run that brought the instance to its desired state.
	Applied string `json:"applied"`
	// Seen are the different providers of a later run that did not apply, or empty.
	Seen string `json:"seen,omitempty"`
}

// After returns the record after a run with the given providers, and whether they are new. p may be
// nil. used is empty if the engine does not know its providers.
func (p *Providers) After(used string, applied bool) (next Providers, changed bool) {
	if p != nil {
		next = *p
	}
	if used == "" {
		return next, false
	}
	changed = p != nil && used != p.Applied && used != p.Seen
	switch {
	case applied:
		return Providers{Applied: used}, changed
	case p == nil:
		return next, false
	case used == p.Applied:
		used = ""
	}
	next.Seen = used
	return next, changed
}

// Changed describes, for people, how the providers seen last differ from those applied. It returns
// "" if they do not.
func (p *Providers) Changed() string {
	if p == nil || p.Seen == "" {
		return ""
	}
	return fmt.Sprintf("the providers differ from those of the last applied run: was %s, is %s; if you upgraded neither "+
		"the operator nor the mirror, find out who changed them; the next applied run clears this", p.Applied, p.Seen)
}

// SetProviders records the providers of a run.
func (p Patch) SetProviders(providers Providers) { p.set(metaProviders, encode(providers)) }
