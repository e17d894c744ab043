package pipeline

import (
	"testing"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

func TestChangesAreNeitherResyncsNorTheBeginningOfAWatch(t *testing.T) {
	version := func(v string) *machinev1beta1.Machine {
		machine := &machinev1beta1.Machine{}
		machine.ResourceVersion = v
		return machine
	}
	changes := Changes()
	for name, tc := range map[string]struct{ got, want bool }{
		"made":               {changes.Create(event.CreateEvent{Object: version("1")}), true},
		"there at the start": {changes.Create(event.CreateEvent{Object: version("1"), IsInInitialList: true}), false},
		"changed":            {changes.Update(event.UpdateEvent{ObjectOld: version("1"), ObjectNew: version("2")}), true},
		"a resync":           {changes.Update(event.UpdateEvent{ObjectOld: version("1"), ObjectNew: version("1")}), false},
		"deleted":            {changes.Delete(event.DeleteEvent{Object: version("1")}), true},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: passes is %t, want %t", name, tc.got, tc.want)
		}
	}
}
