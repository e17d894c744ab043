package events

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestShortened(t *testing.T) {
	tcs := map[string]struct {
		text, want string
	}{
		"nothing":                     {"", ""},
		"what just fits stays whole":  {strings.Repeat("x", 1024), strings.Repeat("x", 1024)},
		"one byte more is too much":   {strings.Repeat("x", 1025), strings.Repeat("x", 1021) + "..."},
		"a character is not cut":      {"x" + strings.Repeat("ü", 600), "x" + strings.Repeat("ü", 510) + "..."},
		"nor when it ends at the cut": {strings.Repeat("x", 1019) + "üüü", strings.Repeat("x", 1019) + "ü..."},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			got := Shortened(tc.text)
			if got != tc.want {
				t.Errorf("got %d bytes that end in %q, want %d that end in %q", len(got), tail(got), len(tc.want), tail(tc.want))
			}
		})
	}
}

func tail(text string) string { return text[max(0, len(text)-10):] }

// recorder keeps the last event.
type recorder struct {
	regarding, related         runtime.Object
	kind, reason, action, note string
}

func (r *recorder) Eventf(regarding, related runtime.Object, kind, reason, action, note string, args ...any) {
	*r = recorder{regarding, related, kind, reason, action, fmt.Sprintf(note, args...)}
}

func TestSend(t *testing.T) {
	pod, node := &corev1.Pod{}, &corev1.Node{}
	related := Warning(pod, "Lost", "Look", "gone")
	related.Related = node
	tcs := map[string]struct {
		event Event
		want  recorder
	}{
		"normal":                    {Normal(pod, "Done", "Make", "ready"), recorder{pod, nil, "Normal", "Done", "Make", "ready"}},
		"a warning":                 {Warning(pod, "Lost", "Look", "gone"), recorder{pod, nil, "Warning", "Lost", "Look", "gone"}},
		"about two objects":         {related, recorder{pod, node, "Warning", "Lost", "Look", "gone"}},
		"a note is text, no format": {Normal(pod, "Done", "Make", "100%d"), recorder{pod, nil, "Normal", "Done", "Make", "100%d"}},
		"a long note is cut": {
			Normal(pod, "Done", "Make", strings.Repeat("x", 2000)),
			recorder{pod, nil, "Normal", "Done", "Make", strings.Repeat("x", 1021) + "..."},
		},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			var got recorder
			tc.event.Send(&got)
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(recorder{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}
