package render

import (
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// heldVariables have a validation of the providerSpec alone, and one of the Machine.
const heldVariables = `
variable "machine" {
  type        = object({ name = string, namespace = string, uid = string, cluster_id = string, labels = map(string) })
  description = "The Machine."
  validation {
    condition     = length(var.machine.name) < 12
    error_message = "Take a shorter name."
  }
}

variable "provider_spec" {
  type        = object({ size = string, credentialsSecret = object({ name = string }) })
  description = "The providerSpec."
  validation {
    condition     = contains(["small", "big"], var.provider_spec.size)
    error_message = "Take another size than ${var.provider_spec.size}."
  }
}

variable "user_data" {
  type        = string
  description = "The user data."
  sensitive   = true
}
`

// TestWhatHasHeldIsNotEvaluatedAgain compares results with and without the cache.
func TestWhatHasHeldIsNotEvaluatedAgain(t *testing.T) {
	loaded := moduleWith(t, heldVariables)
	spec := func(size string) string { return strings.Replace(valid, "small", size, 1) + "}" }
	var held Held
	outcome := func(size, name string, remembers *Held) string {
		input := inputWith(t, spec(size))
		input.Module, input.Held = loaded, remembers
		input.Machine.Name = name
		inputs, err := Render(input)
		if err != nil {
			return err.Error()
		}
		return string(inputs.Variables)
	}
	for range 2 {
		for _, size := range []string{"small", "big", "huge"} {
			for _, name := range []string{"a", "b", "much-too-long-a-name"} {
				if diff := cmp.Diff(outcome(size, name, nil), outcome(size, name, &held)); diff != "" {
					t.Errorf("%s of size %s: %s", name, size, diff)
				}
			}
		}
	}
	// Two sizes and two names pass. Failures are not cached.
	if len(held.all) != 4 {
		t.Errorf("%d validations are remembered to have held, want 4", len(held.all))
	}
	before := len(held.all)
	outcome("small", "c", &held)
	if len(held.all) != before+1 {
		t.Errorf("another name added %d, want the validation of the Machine alone", len(held.all)-before)
	}
}

// TestAProviderSpecWithAFaultIsNotRemembered expects the same errors every time.
func TestAProviderSpecWithAFaultIsNotRemembered(t *testing.T) {
	var held Held
	outcome := func(spec string, remembers *Held) (warnings int, failed bool) {
		input := inputWith(t, spec)
		input.Held = remembers
		inputs, err := Render(input)
		if err != nil {
			return 0, true
		}
		return len(inputs.Warnings), false
	}
	for name, tc := range map[string]struct {
		spec       string
		remembered int
	}{
		"without a fault":          {valid + "}", 1},
		"with a field that is not": {valid + `,"nosuch":1}`, 0},
		"of a wrong type":          {valid + `,"labels":[1]}`, 0},
	} {
		held = Held{}
		for range 2 {
			wantWarnings, wantFailed := outcome(tc.spec, nil)
			if warnings, failed := outcome(tc.spec, &held); warnings != wantWarnings || failed != wantFailed {
				t.Errorf("%s: %d warnings, failed %t; want %d, %t", name, warnings, failed, wantWarnings, wantFailed)
			}
		}
		if len(held.provided) != tc.remembered {
			t.Errorf("%s: %d are remembered, want %d", name, len(held.provided), tc.remembered)
		}
	}
}

func TestWhatIsRememberedIsBounded(t *testing.T) {
	var held Held
	for i := range maxHeld + 10 {
		held.add(strings.Repeat("x", i%7) + string(rune('0'+i%10)) + strings.Repeat("y", i/70))
	}
	if len(held.all) > maxHeld {
		t.Errorf("%d are remembered", len(held.all))
	}
	var decoded decodedSpecs
	for i := range maxDecoded + 10 {
		decoded.add([]byte(strings.Repeat("x", i)), map[string]any{"a": "b"})
	}
	if len(decoded.all) > maxDecoded {
		t.Errorf("%d providerSpecs are remembered", len(decoded.all))
	}
	decoded.add([]byte(strings.Repeat("x", maxDecodedSize+1)), map[string]any{})
	if decoded.get([]byte(strings.Repeat("x", maxDecodedSize+1))) != nil {
		t.Error("a large one is remembered")
	}
}

// TestADecodedProviderSpecIsItsCallersOwn decodes the same providerSpec concurrently and modifies the results.
func TestADecodedProviderSpecIsItsCallersOwn(t *testing.T) {
	machine := machineWith(`{"kind":"Own","list":[{"a":"b"}],"n":1.50}`)
	want, failed := decodeProviderSpec(machine)
	if failed != nil {
		t.Fatal(failed)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				got, failed := decodeProviderSpec(machine)
				if failed != nil || !cmp.Equal(got, want) {
					t.Errorf("decoded %v (%v), want %v", got, failed, want)
				}
				got["list"].([]any)[0].(map[string]any)["a"] = "changed"
				delete(got, "kind")
			}
		})
	}
	all.Wait()
	if _, failed := decodeProviderSpec(machineWith(`{"kind":"never seen"}`)); failed != nil {
		t.Error(failed)
	}
	if _, failed := decodeProviderSpec(machineWith(`[]`)); failed == nil {
		t.Error("a list is taken for a providerSpec")
	}
}
