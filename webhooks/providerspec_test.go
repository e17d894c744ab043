package webhooks

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestBadValueIsShownAsItWasBefore(t *testing.T) {
	for shown, want := range map[string]string{
		"":                `Invalid value: d`,
		`"a"`:             `Invalid value: "a": d`,
		`"a\x00\n"`:       `Invalid value: "a\x00\n": d`,
		`4`:               `Invalid value: 4: d`,
		`1e400`:           `Invalid value: 1e400: d`,
		`true`:            `Invalid value: true: d`,
		`["a","b"]`:       `Invalid value: ["a","b"]: d`,
		`["a", "b", ...]`: `Invalid value: "[\"a\", \"b\", ...]": d`,
	} {
		err := &field.Error{Type: field.ErrorTypeInvalid, BadValue: badValue(shown), Detail: "d"}
		if got := err.ErrorBody(); got != want {
			t.Errorf("%s: got %s, want %s", shown, got, want)
		}
	}
}
