package runner_test

import (
	"errors"
	"testing"

	"github.com/machine-iac/machine-iac-operator/actuators/runner"
	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
	"github.com/machine-iac/machine-iac-operator/test/moduletest"
)

func TestWhatIsNotFoundIsSaidInTheWordsOfTheSearch(t *testing.T) {
	every, plain := moduletest.Load(t, moduletest.WithSearches()...), moduletest.Load(t)
	said := func(details ...string) error {
		failed := &failure.Error{Op: failure.OpPlan, Class: failure.Unknown, Err: errors.New("failed")}
		for _, detail := range details {
			failed.Diagnostics = append(failed.Diagnostics, failure.Diagnostic{Severity: failure.SeverityError, Summary: "Error", Detail: detail})
		}
		return failed
	}
	notImported := func(address string) error {
		return said("Cannot import non-existent remote object: While attempting to import an existing object to \"" + address + "\", the provider detected that no object exists with the given id.")
	}
	missing := &failure.Error{Op: failure.OpPlan, Class: failure.ImportMissing, Err: errors.New("failed")}
	for name, tc := range map[string]struct {
		err    error
		search engine.Search
		want   bool
	}{
		"the words of the lookup":                   {said("no such instance"), engine.SearchLookup, true},
		"those of the adoption, in a lookup":        {said("not there"), engine.SearchLookup, false},
		"the words of the adoption":                 {said("not there"), engine.SearchAdopt, true},
		"those of the lookup, in an adoption":       {said("no such instance"), engine.SearchAdopt, false},
		"an error beside them":                      {said("not there", "quota exceeded"), engine.SearchAdopt, false},
		"the engine's, of the instance":             {notImported("example_instance.this"), engine.SearchAdopt, true},
		"the engine's, of what goes with it":        {notImported(`example_disk.data[\"a\"]`), engine.SearchAdopt, false},
		"the same in a lookup":                      {notImported(`example_disk.data[\"a\"]`), engine.SearchLookup, false},
		"the engine's own words":                    {missing, engine.SearchAdopt, true},
		"an inventory, which looks for no instance": {missing, engine.SearchInventory, false},
		"no search":                  {missing, engine.SearchNone, false},
		"an error of something else": {errors.New("not there"), engine.SearchAdopt, false},
	} {
		if got := runner.IsNotFound(tc.err, every, tc.search); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
	if runner.IsNotFound(missing, plain, engine.SearchAdopt) {
		t.Error("a module that cannot adopt knows what is not found")
	}
}
