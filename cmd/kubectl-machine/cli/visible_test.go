package cli_test

import (
	"strings"
	"testing"

	"github.com/machine-iac/machine-iac-operator/cmd/kubectl-machine/cli"
)

func TestATerminalObeysNothingThatIsPrinted(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"lines of letters":             {"é\t世界\n", "é\t世界\n"},
		"escapes":                      {"a\x1b[8mb\u009b8mc\rd", `a\u001b[8mb\u009b8mc\u000dd`},
		"overrides of the direction":   {"a\u202eb\u2066c", `a\u202eb\u2066c`},
		"letters without a width":      {"a\u200bb\U000e0041", `a\u200bb\U000e0041`},
		"bytes that are no letter":     {"a\x9b8m", "a\ufffd8m"},
		"JSON, which stays what it is": {"{\"a\":\"\u202e\"}", `{"a":"\u202e"}`},
	} {
		t.Run(name, func(t *testing.T) {
			var whole, split strings.Builder
			if n, err := (&cli.Visible{Out: &whole}).Write([]byte(tc.text)); n != len(tc.text) || err != nil {
				t.Errorf("Write: %d, %v", n, err)
			}
			one := &cli.Visible{Out: &split}
			for _, b := range []byte(tc.text) {
				if _, err := one.Write([]byte{b}); err != nil {
					t.Fatal(err)
				}
			}
			if whole.String() != tc.want {
				t.Errorf("got %q, want %q", whole.String(), tc.want)
			}
			if split.String() != tc.want {
				t.Errorf("written byte by byte: got %q, want %q", split.String(), tc.want)
			}
		})
	}
}
