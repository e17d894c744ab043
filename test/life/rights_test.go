//go:build life

package life

import (
	"context"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/test/rights"
)

// guard grants what the module asks for, and some more. At the end of the test it reports calls that test/rights does
// not have.
func (w *world) guard(more ...string) *rights.Guard {
	w.t.Helper()
	var described v1alpha1.Module
	err := yaml.Unmarshal([]byte(w.read(w.lab.Path(w.platform.module, "module.yaml"))), &described)
	if err != nil {
		w.t.Fatal(err)
	}
	lives, err := rights.Lives(w.platform.name)
	if err != nil {
		w.t.Fatal(err)
	}
	actions := slices.Clone(more)
	for _, entry := range described.Spec.Rights {
		actions = append(actions, entry.Actions...)
	}
	guard := &rights.Guard{}
	guard.Grant(actions)
	w.t.Cleanup(func() { w.compare(lives, more, guard.Called()) })
	return guard
}

// denying returns a site's deny by the guard's actions of a create and of a deletion.
func denying(guard *rights.Guard, create, remove string) func(context.Context, denial) error {
	return func(_ context.Context, what denial) error {
		guard.Deny(map[denial]string{denyCreates: create, denyDeletions: remove}[what])
		return nil
	}
}

// compare reports calls that neither a life has nor are expected besides.
func (w *world) compare(lives []rights.Life, expected, called []string) {
	for _, one := range lives {
		expected = slices.Concat(expected, one.Calls, one.Refused)
	}
	for _, call := range called {
		if !slices.Contains(expected, call) {
			w.t.Errorf("test/rights/calls-%s.yaml lacks %s", w.platform.name, call)
		}
	}
	isCalled := func(call string) bool { return slices.Contains(called, call) }
	w.t.Logf("not called: %v", slices.DeleteFunc(expected, isCalled))
}
