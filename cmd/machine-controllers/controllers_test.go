package main

import (
	"slices"
	"strings"
	"testing"
)

func TestSelection(t *testing.T) {
	all := slices.DeleteFunc(names(), func(n string) bool { return n == "machineclass" })
	for name, tc := range map[string]struct {
		flag string
		want []string
	}{
		"a star is all but Gardener's":   {"*", all},
		"Gardener's is named":            {"machineclass,machine", []string{"machine", "machineclass"}},
		"also beside a star":             {"*,machineclass", names()},
		"names are those":                {"machineset,machine", []string{"machine", "machineset"}},
		"a dash takes one out of a star": {"*,-machine", slices.DeleteFunc(slices.Clone(all), func(n string) bool { return n == "machine" })},
		"a dash alone leaves nothing":    {"-machine", []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			var s selection
			if err := s.Set(tc.flag); err != nil {
				t.Fatal(err)
			}
			if got := s.chosen(); !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestSelectionRefusesWhatItDoesNotKnow(t *testing.T) {
	for _, text := range []string{"", "machines", "*,-nodes", "machine,,nodelink"} {
		var s selection
		if err := s.Set(text); err == nil || !strings.Contains(err.Error(), "machineset") {
			t.Errorf("%q: got %v, want an error that names the controllers", text, err)
		}
	}
}
