package inspect

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/machine-iac/machine-iac-operator/internal/state"
	"github.com/machine-iac/machine-iac-operator/test/golden"
	"github.com/machine-iac/machine-iac-operator/test/printing"
)

// withStates adds states to a cluster: of Machines, of one that is gone, and one that somebody has edited.
func withStates() *Facts {
	facts := everything()
	head := func(name string, change func(*state.Head)) state.Head {
		h := state.Head{
			Key: state.Key{Namespace: namespace, Name: "tfstate-default-of-" + name}, Stored: true, Serial: 2, Managed: 3, Size: 5085, Written: now.Add(-time.Hour), Created: now.Add(-2 * time.Hour),
			Meta: map[string]string{"machine": name, "module": moduleRef}, Labels: map[string]string{state.LabelMachineUID: string(uidOf(name))},
		}
		change(&h)
		return h
	}
	facts.States = []state.Head{
		head("workers-a", func(*state.Head) {}),
		head("workers-b", func(h *state.Head) {
			h.Lock = &state.Lock{Owner: "manager-1", Run: "r-1", Operation: "destroy", Since: now.Add(-40 * time.Second)}
			h.Meta["intent"] = `{"operation":"destroy","run":"r-1","since":"2026-03-01T11:59:20Z"}`
		}),
		head("workers-c", func(h *state.Head) {
			h.Stored, h.Serial, h.Managed, h.Size, h.Written = false, 0, 0, 0, time.Time{}
			h.Meta["intent"] = `{"operation":"create","run":"r-2","since":"2026-03-01T11:59:50Z"}`
		}),
		head("departed", func(h *state.Head) { h.Key.Name += "-1" }),
		head("edited", func(h *state.Head) {
			h.Problem, h.Meta["intent"] = errors.New("the record is no JSON"), "{"
			h.Managed = 0
		}),
	}
	facts.StatesKnown = true
	return facts
}

func TestStates(t *testing.T) {
	list, err := States(withStates())
	if err != nil {
		t.Fatal(err)
	}
	for format, extension := range extensions {
		t.Run(format, func(t *testing.T) { golden.Check(t, "testdata/states."+extension, printing.As(t, format, list)) })
	}
	t.Run("of names", func(t *testing.T) {
		facts := only(withStates(), "workers-a")
		facts.Limited, facts.Named = true, []string{"departed", "workers-a"}
		list, err := States(facts)
		if err != nil || len(list.Items) != 2 || list.Items[0].Phase != gone || list.Items[1].Phase != "Running" {
			t.Errorf("it returns %v and %+v", err, list)
		}
	})
	t.Run("of a name that is none", func(t *testing.T) {
		facts := only(withStates())
		facts.Limited, facts.Named = true, []string{"wokers-a"}
		if _, err := States(facts); err == nil || !strings.Contains(err.Error(), `no state of a Machine "wokers-a" in namespace openshift-machine-api; did you mean workers-a`) {
			t.Errorf("it returns %v", err)
		}
	})
	t.Run("of all namespaces", func(t *testing.T) {
		facts := withStates()
		facts.Namespace = ""
		list, err := States(facts)
		if got := printing.As(t, "", list); err != nil || !strings.Contains(got, "\nopenshift-machine-api   workers-a ") {
			t.Errorf("%v; it prints\n%s", err, got)
		}
	})
}
