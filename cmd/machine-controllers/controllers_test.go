package main

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestSelection(t *testing.T) {
	all := slices.DeleteFunc(names(), func(n string) bool { return slices.Contains(named, n) })
	for name, tc := range map[string]struct {
		flag string
		want []string
	}{
		"a star is all but the named ones": {"*", all},
		"Gardener's is named":              {"machineclass,machine", []string{"machine", "machineclass"}},
		"also beside a star":               {"*,machineclass,certificates", names()},
		"names are those":                  {"machineset,machine", []string{"machine", "machineset"}},
		"a dash takes one out of a star":   {"*,-machine", slices.DeleteFunc(slices.Clone(all), func(n string) bool { return n == "machine" })},
		"a dash alone leaves nothing":      {"-machine", []string{}},
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

func TestCertificatesAreNotApprovedOnOpenShift(t *testing.T) {
	mapper := meta.NewDefaultRESTMapper(nil)
	if found, err := servesServiceCA(mapper); err != nil || found {
		t.Errorf("elsewhere: %t, %v", found, err)
	}
	mapper.Add(schema.GroupVersionKind{Group: "operator.openshift.io", Version: "v1", Kind: "ServiceCA"}, meta.RESTScopeRoot)
	if found, err := servesServiceCA(mapper); err != nil || !found {
		t.Errorf("on OpenShift: %t, %v", found, err)
	}
}
