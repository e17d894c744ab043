package drain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// maxNamed is how many pods a message names.
const maxNamed = 10

// blocker is a pod that a pass has left, and why.
type blocker struct {
	pod, reason string
	// ending is set for pods that are on their way; the others come first in a message.
	ending bool
}

// blockers answers the pods that are left, in a fixed order. The ending pods of an unreachable Node are not among them: they are not
// waited for.
func (l *ledger) blockers(unreachable bool) []blocker {
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

// reason says why the pod is still there. Nothing in it may change from pass to pass while the pod's situation does not.
func (f *fate) reason() string {
	switch {
	case f.evicted && len(f.finalizers) > 0:
		return fmt.Sprintf("it was evicted and has not terminated; it has finalizers: %s", strings.Join(f.finalizers, ", "))
	case f.evicted:
		return "it was evicted and has not terminated"
	case f.refusal != "":
		return strings.TrimSuffix(f.refusal, ".")
	case f.fault != "":
		return "evicting it failed: " + f.fault
	default:
		return "it has not been evicted yet"
	}
}

// describe tells of pods and what holds them.
func describe(blockers []blocker) string {
	texts := make([]string, 0, len(blockers))
	for _, b := range blockers {
		texts = append(texts, fmt.Sprintf("pod %s: %s", b.pod, b.reason))
	}
	return enumerated(texts, "; ")
}

// enumerated joins texts, and counts those that are too many to show.
func enumerated(texts []string, separator string) string {
	if len(texts) <= maxNamed {
		return strings.Join(texts, separator)
	}
	return fmt.Sprintf("%s and %d more", strings.Join(texts[:maxNamed], separator), len(texts)-maxNamed)
}
