package store

import (
	"strings"
	"testing"
)

func TestDigestOf(t *testing.T) {
	digest := strings.Repeat("0a", 32)
	for name, tc := range map[string]struct{ reference, want string }{
		"a reference has it":                 {"kubemark@sha256:" + digest, digest},
		"a bare name has none":               {"kubemark", ""},
		"one that is cut short is none":      {"kubemark@sha256:" + digest[2:], ""},
		"what is no hex names no Secret":     {"kubemark@sha256:" + digest[2:] + "x/", ""},
		"another kind of digest is not ours": {"kubemark@sha512:" + digest, ""},
		"nothing has none":                   {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := DigestOf(tc.reference); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
