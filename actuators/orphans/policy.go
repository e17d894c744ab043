package orphans

import (
	"fmt"
	"time"

	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
)

// Policy says what happens to a state whose Machine is gone. It is a flag.Value.
type Policy string

// The policies.
const (
	// PolicyRetain keeps the state until someone requests otherwise.
	PolicyRetain Policy = "Retain"
	// PolicyDelete destroys the state's resources after the grace period.
	PolicyDelete Policy = "Delete"
)

// String implements flag.Value.
func (p *Policy) String() string { return string(*p) }

// Set implements flag.Value.
func (p *Policy) Set(text string) error {
	if text != string(PolicyRetain) && text != string(PolicyDelete) {
		return fmt.Errorf("must be %s or %s", PolicyRetain, PolicyDelete)
	}
	*p = Policy(text)
	return nil
}

// withPolicy applies the policy to a mark from an earlier pass. Earlier decisions are withdrawn
// when the policy changes.
func (o *Orphans) withPolicy(mark record.OrphanMark) record.OrphanMark {
	now := o.Clock.Now().UTC()
	if mark.Since.After(now.Add(record.MaxSkew)) {
		mark.Since = now // a time in the future is not from a manager
	}
	switch due := o.Policy == PolicyDelete && !now.Before(mark.Since.Add(o.GracePeriod)); {
	case !due:
		mark.Destroy = time.Time{}
	case mark.Destroy.IsZero():
		mark.Destroy = now
	}
	return mark
}
