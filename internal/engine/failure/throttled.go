package failure

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// maxRetryAfter bounds the pause that a message asks for. Azure's longest windows are half an hour.
const maxRetryAfter = 30 * time.Minute

// retryAfter matches the pauses that messages ask for, as Azure ("try again after '6' seconds"),
// OpenStack ("retryAfter": "54") and Google ("retryDelay": "17.5s") write them.
var retryAfter = regexp.MustCompile(`(?i)\b(?:retry[- ]?after|retryDelay|try again (?:after|in))["']?[:=]?\s*["']?` +
	`(\d+(?:\.\d+)?)(?:["']?\s*(s|sec|seconds?|m|min|minutes?))?\b`)

// Throttled reports whether the infrastructure rejected calls because there were too many. wait is
// the longest pause that its messages ask for, bounded, or 0.
func (e *Error) Throttled() (wait time.Duration, ok bool) {
	if e.Class != Throttled {
		return 0, false
	}
	for _, diagnostic := range e.Diagnostics {
		for _, found := range retryAfter.FindAllStringSubmatch(diagnostic.Text(), -1) {
			amount, _ := strconv.ParseFloat(found[1], 64) // infinite if too large
			if strings.HasPrefix(strings.ToLower(found[2]), "m") {
				amount *= time.Minute.Seconds()
			}
			wait = max(wait, time.Duration(min(amount, maxRetryAfter.Seconds())*float64(time.Second)))
		}
	}
	return wait, true
}
