package drain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// maxNamed is how many pods a message lists.
const maxNamed = 10

// blocker is a pod that remains after an attempt, and why.
type blocker struct {
	pod, reason string
	// ending is set for pods that are terminating; the others come first in a message.
	ending bool
}

// blockers returns the remaining pods in a fixed order, without the terminating pods of an
// unreachable Node, which are not waited for.
func (l *evictionTracker) blockers(unreachable bool) []blocker {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []blocker
	for key, f := range l.pods {
		if f.gone || (unreachable && f.evicted) {
			continue
		}
		out = append(out, blocker{pod: key.String(), reason: f.reason(), ending: f.evicted})
	}
	slices.SortFunc(out, func(x, y blocker) int {
		if x.ending != y.ending {
			if y.ending {
				return -1
			}
			return 1
		}
		return cmp.Compare(x.pod, y.pod)
	})
	return out
}

// reason returns why the pod is still there. The text is stable between attempts.
func (f *podEviction) reason() string {
	when := ""
	if !f.since.IsZero() {
		when = " at " + f.since.UTC().Format(time.RFC3339)
	}
	switch {
	case f.evicted && len(f.finalizers) > 0:
		return fmt.Sprintf("it was evicted%s and has not terminated; it has finalizers: %s", when,
			strings.Join(f.finalizers, ", "))
	case f.evicted:
		return "it was evicted" + when + " and has not terminated"
	case f.refusal != "":
		return strings.TrimSuffix(f.refusal, ".")
	case f.fault != "":
		return "evicting it failed: " + f.fault
	default:
		return "it has not been evicted yet"
	}
}

// describe lists pods and what blocks them.
func describe(blockers []blocker) string {
	texts := make([]string, 0, len(blockers))
	for _, b := range blockers {
		texts = append(texts, fmt.Sprintf("pod %s: %s", b.pod, b.reason))
	}
	return joinLimited(texts, "; ")
}

// joinLimited joins the first texts and counts the others.
func joinLimited(texts []string, separator string) string {
	if len(texts) <= maxNamed {
		return strings.Join(texts, separator)
	}
	return fmt.Sprintf("%s and %d more", strings.Join(texts[:maxNamed], separator), len(texts)-maxNamed)
}
