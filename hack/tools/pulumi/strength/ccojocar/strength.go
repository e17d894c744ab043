// Package zxcvbn takes the place of the module of that name in the build of Pulumi's CLI. 'pulumi config set' and 'pulumi env set' ask it whether a
// value looks like a secret. The module reads its dictionaries when a process starts, whatever that is to do: half of the time until a run's
// CLI begins with its work. This one has no dictionaries. It counts what guessing each character would take, so that more values look like secrets.
package zxcvbn

import "math"

// Strength is what is known of a text.
type Strength struct{ Entropy float64 }

// printable is how many characters there are to guess from.
const printable = 95

// PasswordStrength returns how many bits it takes to guess a text.
func PasswordStrength(text string, _ []string) Strength {
	return Strength{Entropy: float64(len(text)) * math.Log2(printable)}
}
