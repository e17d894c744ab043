package driver

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// checked is when the inventory of the tests was made.
var checked = time.Now().UTC().Truncate(time.Second).Add(-time.Hour)

// found writes what the operator's inventory has found, for the Machine m.
func (w *world) found(instances ...instance) {
	w.Helper()
	for n := range instances {
		instances[n].ListedBy = "m"
		if instances[n].FirstSeen.IsZero() {
			instances[n].FirstSeen = checked.Add(-24 * time.Hour)
		}
	}
	text, err := json.Marshal(inventory{Checked: checked, Instances: instances})
	if err != nil {
		w.Fatal(err)
	}
	manifest := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"data":{%q:%q}}`, inventoryName, inventoryKey, text)
	w.create(configMaps, w.namespace, manifest)
}

// settled has the Machine m made.
func (w *world) settled() {
	w.Helper()
	creating := w.creating(w.ordered("m", time.Hour))
	w.stored(w.Context(), "m")
	w.made("m")
	w.ended(creating)
}

func TestInstancesThatBelongToNobodyAreListed(t *testing.T) {
	w := newWorld(t)
	w.settled()
	m := w.stored(t.Context(), "m")
	w.create(secrets, w.namespace, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"state","labels":{"machine-iac.io/machine-uid":"has-a-state"}}}`)
	creating := w.creating(w.ordered("n", time.Hour))
	n := w.stored(t.Context(), "n") // its run is under way
	w.found(
		instance{ProviderID: "kubemark://a", Name: "a", MachineUID: "gone", Orphaned: true},
		instance{ProviderID: "kubemark://second", Name: "m", MachineUID: string(m.UID), Orphaned: true},
		instance{ProviderID: "kubemark://young", Name: "b", MachineUID: "gone"},
		instance{ProviderID: "kubemark://once", Name: "c", MachineUID: "gone", Orphaned: true, FirstSeen: checked},
		instance{ProviderID: "kubemark://other", Name: "d", Orphaned: true},
		instance{ProviderID: "kubemark://m", Name: "m", MachineUID: "gone", Orphaned: true},
		instance{ProviderID: "kubemark://state", Name: "e", MachineUID: "has-a-state", Orphaned: true},
		instance{ProviderID: "kubemark://n", Name: "n", MachineUID: string(n.UID), Orphaned: true},
	)
	want := map[string]string{"kubemark://m": "m", "kubemark://a": "a", "kubemark://second": "m"}
	if diff := cmp.Diff(want, w.listed()); diff != "" {
		t.Errorf("the list differs (-want +got):\n%s", diff)
	}
	w.made("n")
	w.ended(creating)
}

func TestAnOrphanOfTheInventoryIsAdoptedAndDeleted(t *testing.T) {
	w := newWorld(t)
	w.settled()
	w.found(instance{ProviderID: "kubemark://second", Name: "m", MachineUID: "gone", Orphaned: true})
	remove := func(id string) codes.Code {
		dummy := &mcm.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "m"}, Spec: mcm.MachineSpec{ProviderID: id}}
		_, err := w.driver.DeleteMachine(t.Context(), &driver.DeleteMachineRequest{Machine: dummy, MachineClass: w.class, Secret: w.secret})
		return codeOf(err)
	}
	if code := remove("kubemark://unknown"); code != codes.NotFound {
		t.Errorf("for an instance that was not found DeleteMachine returns %v", code)
	}
	if code := remove("kubemark://second"); code != codes.OK {
		t.Errorf("DeleteMachine returns %v", code)
	}
	if m := w.stored(t.Context(), "m"); m.DeletionTimestamp != nil {
		t.Error("the Machine of that name, which has another instance, was deleted")
	}
	names := orphanNames(orphan{instance: instance{ProviderID: "kubemark://second", Name: "m"}})
	made := w.stored(t.Context(), names[len(names)-1])
	if made.DeletionTimestamp == nil || made.Spec.ProviderID != "kubemark://second" || made.Annotations[annotationAdoption] != "Adopt" {
		t.Errorf("the Machine that adopts the instance is %+v", made)
	}
	if diff := cmp.Diff(w.stored(t.Context(), "m").Spec.ProviderSpec, made.Spec.ProviderSpec); diff != "" {
		t.Errorf("its providerSpec differs (-want +got):\n%s", diff)
	}
	// It is being removed, then it is gone, and the inventory is still the old one.
	for _, then := range []func(){func() { w.merge(made.Name, `{"metadata":{"finalizers":null}}`) }, func() {}} {
		if diff := cmp.Diff(map[string]string{"kubemark://m": "m"}, w.listed()); diff != "" {
			t.Errorf("the list differs (-want +got):\n%s", diff)
		}
		then()
	}
}

func TestAnOrphanThatALaterInventoryHasIsListedAgain(t *testing.T) {
	w := newWorld(t)
	w.settled()
	w.found(instance{ProviderID: "kubemark://second", Name: "s", MachineUID: "gone", Orphaned: true})
	for at, want := range map[time.Time]int{checked.Add(time.Second): 1, checked.Add(-time.Second): 2} {
		w.merge("m", fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, annotationRemoved, `{"kubemark://second":"`+at.Format(time.RFC3339)+`"}`))
		if got := w.listed(); len(got) != want {
			t.Errorf("%v is listed where it was removed at %s, and the inventory is of %s", got, at, checked)
		}
	}
}
