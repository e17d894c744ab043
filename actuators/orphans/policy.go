package orphans

import (
	"fmt"
	"time"

	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
)

// Policy says what becomes of a state whose Machine is gone, without a request. It is a flag.Value.
type Policy string

// The policies.
const (
	// PolicyRetain keeps it until somebody requests otherwise.
	PolicyRetain Policy = "Retain"
	// PolicyDelete destroys what it lists after the grace period.
	PolicyDelete Policy = "Delete"
)

// String implements flag.Value.
func (p *Policy) String() string { return string(*p) }

// Set implements flag.Value.
func (p *Policy) Set(text string) error {
	if text != string(PolicyRetain) && text != string(PolicyDelete) {
		return fmt.Errorf("it is %s or %s", PolicyRetain, PolicyDelete)
	}
	*p = Policy(text)
	return nil
}

// withPolicy returns a mark with what the policy decides of it: the first look has made the mark, and this is a later one. What it decided
// once is taken back with the policy.
func (o *Orphans) withPolicy(mark record.OrphanMark) record.OrphanMark {
	now := o.Clock.Now().UTC()
	switch due := o.Policy == PolicyDelete && !now.Before(mark.Since.Add(o.GracePeriod)); {
	case !due:
		mark.Destroy = time.Time{}
	case mark.Destroy.IsZero():
		mark.Destroy = now
	}
	return mark
}
