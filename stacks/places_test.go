package stacks_test

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/test/long"
)

// TestPlacesAndErrorsAreThoseOfTheModules compares each stack with the module of the same name, whose places and final errors are tried in
// modules: the same credentials and fields are the same place for both engines, and the infrastructure refuses in the same words.
func TestPlacesAndErrorsAreThoseOfTheModules(t *testing.T) {
	long.Test(t)
	each(t, func(t *testing.T, stack *module.Module, _ string) {
		if len(stack.Spec().Place) == 0 {
			t.Error("the stack declares no place")
		}
		folder := filepath.Join("..", "modules", stack.Name())
		if matches, _ := filepath.Glob(folder); len(matches) == 0 {
			t.Skip("no module has the stack's name")
		}
		twin := mustLoad(t, folder)
		if diff := cmp.Diff(twin.Spec().Place, stack.Spec().Place); diff != "" {
			t.Errorf("the place (-module +stack):\n%s", diff)
		}
		if diff := cmp.Diff(twin.Spec().Errors, stack.Spec().Errors); diff != "" {
			t.Errorf("final errors (-module +stack):\n%s", diff)
		}
		if diff := cmp.Diff(disruptions(twin), disruptions(stack)); diff != "" {
			t.Errorf("what disrupts the instance (-module +stack):\n%s", diff)
		}
		if twin.Settle() != stack.Settle() {
			t.Errorf("a lookup settles after %s, the module's after %s", stack.Settle(), twin.Settle())
		}
	})
}

// disruptions returns the effects that a module lists, with how many attributes have them. Properties of a stack have other names.
func disruptions(m *module.Module) map[string]int {
	counts := map[string]int{}
	for _, entry := range m.Spec().Disruptive {
		counts[entry.Effect] += len(entry.Attributes)
	}
	return counts
}
