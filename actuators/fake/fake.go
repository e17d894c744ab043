// Package fake is an actuator with instances in memory. It records every call and returns errors
// set by a test.
package fake

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-iac/machine-iac-operator/actuators"
)

// Verb names a verb of the actuator.
type Verb string

// The verbs.
const (
	Create Verb = "Create"
	Update Verb = "Update"
	Delete Verb = "Delete"
	Exists Verb = "Exists"
	// Capacity is the method of actuators.CapacityEstimator.
	Capacity Verb = "Capacity"
)

// Call is one recorded call.
type Call struct {
	Verb    Verb
	Machine types.NamespacedName
}

// Actuator is the fake. Its zero value creates and deletes at the first call.
type Actuator struct {
	// Steps is the number of Create or Delete calls that return "in progress" before one succeeds.
	Steps int
	// Doubts makes it return an UncertainError for Machines with a foreign providerID or a missing
	// state.
	Doubts bool
	// Types maps the providerSpec's field instanceType to the result of Capacity; nil for none.
	Types map[string]actuators.Capacity

	mu        sync.Mutex
	instances map[types.UID]string
	progress  map[types.UID]int
	failures  map[Verb][]error
	calls     []Call
	lost      map[types.UID]bool
}

var (
	_ actuators.Actuator          = &Actuator{}
	_ actuators.CapacityEstimator = &Actuator{}
)

// Fail makes the next call of a verb return err. Further calls of Fail queue up.
func (a *Actuator) Fail(verb Verb, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.failures == nil {
		a.failures = map[Verb][]error{}
	}
	a.failures[verb] = append(a.failures[verb], err)
}

// Calls returns the calls so far, optionally of the given verbs only.
func (a *Actuator) Calls(verbs ...Verb) []Call {
	a.mu.Lock()
	defer a.mu.Unlock()
	wanted := map[Verb]bool{}
	for _, verb := range verbs {
		wanted[verb] = true
	}
	var calls []Call
	for _, call := range a.calls {
		if len(wanted) == 0 || wanted[call.Verb] {
			calls = append(calls, call)
		}
	}
	return calls
}

// Instances returns the names of the Machines that have an instance.
func (a *Actuator) Instances() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	names := make([]string, 0, len(a.instances))
	for _, name := range a.instances {
		names = append(names, name)
	}
	return names
}

// Vanish removes a Machine's instance behind the actuator's back.
func (a *Actuator) Vanish(uid types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.instances, uid)
}

// Lose hides a Machine's instance until the returned function is called. It requires Doubts.
func (a *Actuator) Lose(uid types.UID) (restore func()) {
	set := func(lost bool) {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.lost == nil {
			a.lost = map[types.UID]bool{}
		}
		a.lost[uid] = lost
	}
	set(true)
	return func() { set(false) }
}

// doubt returns an error if it is unknown whether the Machine has an instance.
func (a *Actuator) doubt(machine *machinev1beta1.Machine) error {
	own := idOf(machine)
	id := machine.Spec.ProviderID
	switch {
	case !a.Doubts:
	case a.lost[machine.UID]:
		return actuators.Uncertain(time.Millisecond, "StateLost", "the state of Machine %s is lost", machine.Name)
	case id != nil && *id != "" && *id != own:
		return actuators.Uncertain(time.Millisecond, actuators.ReasonNotAdopted, "%s is not the fake's; remove it by hand",
			*id)
	}
	return nil
}

// Create implements actuators.Actuator.
func (a *Actuator) Create(_ context.Context, machine *machinev1beta1.Machine) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.record(Create, machine); err != nil {
		return err
	}
	if _, err := decode(machine); err != nil {
		return err
	}
	if _, made := a.instances[machine.UID]; !made && !a.step(machine.UID) {
		return actuators.InProgress(time.Millisecond, "the instance is being made")
	}
	if a.instances == nil {
		a.instances = map[types.UID]string{}
	}
	a.instances[machine.UID] = machine.Name
	publish(machine)
	return nil
}

// Update implements actuators.Actuator.
func (a *Actuator) Update(_ context.Context, machine *machinev1beta1.Machine) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.record(Update, machine); err != nil {
		return err
	}
	if _, made := a.instances[machine.UID]; !made {
		return actuators.UpdateFailed("the instance of Machine %s does not exist", machine.Name)
	}
	publish(machine)
	return nil
}

// Delete implements actuators.Actuator.
func (a *Actuator) Delete(_ context.Context, machine *machinev1beta1.Machine) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := cmp.Or(a.record(Delete, machine), a.doubt(machine)); err != nil {
		return err
	}
	if _, made := a.instances[machine.UID]; made && !a.step(machine.UID) {
		return actuators.InProgress(time.Millisecond, "the instance is being removed")
	}
	delete(a.instances, machine.UID)
	return nil
}

// Exists implements actuators.Actuator.
func (a *Actuator) Exists(_ context.Context, machine *machinev1beta1.Machine) (bool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := cmp.Or(a.record(Exists, machine), a.doubt(machine)); err != nil {
		return false, err
	}
	_, made := a.instances[machine.UID]
	return made, nil
}

// Capacity implements actuators.CapacityEstimator.
func (a *Actuator) Capacity(_ context.Context, machine *machinev1beta1.Machine) (*actuators.Capacity, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.record(Capacity, machine); err != nil {
		return nil, err
	}
	fields, err := decode(machine)
	if err != nil || a.Types == nil {
		return nil, err
	}
	name, _ := fields["instanceType"].(string)
	capacity, known := a.Types[name]
	if !known {
		return nil, actuators.UnknownInstanceType(name, "fake",
			"spec.providerSpec.value.instanceType: the fake does not know %q; add it to Types", name)
	}
	return &capacity, nil
}

// record records the call and returns the error set for it by a test.
func (a *Actuator) record(verb Verb, machine *machinev1beta1.Machine) error {
	a.calls = append(a.calls,
		Call{Verb: verb, Machine: types.NamespacedName{Namespace: machine.Namespace, Name: machine.Name}})
	waiting := a.failures[verb]
	if len(waiting) == 0 {
		return nil
	}
	a.failures[verb] = waiting[1:]
	return waiting[0]
}

// step counts one step of a Machine's operation and reports whether it was the last.
func (a *Actuator) step(uid types.UID) bool {
	if a.progress == nil {
		a.progress = map[types.UID]int{}
	}
	if a.progress[uid]++; a.progress[uid] <= a.Steps {
		return false
	}
	delete(a.progress, uid)
	return true
}

// decode returns the fields of the providerSpec.
func decode(machine *machinev1beta1.Machine) (map[string]any, error) {
	if machine.Spec.ProviderSpec.Value == nil {
		return nil, actuators.InvalidConfiguration("spec.providerSpec.value: it is missing; describe the instance to make")
	}
	var fields map[string]any
	if err := json.Unmarshal(machine.Spec.ProviderSpec.Value.Raw, &fields); err != nil {
		return nil, actuators.InvalidConfiguration("spec.providerSpec.value: it is no JSON object: %v", err)
	}
	if _, text := fields["cpu"].(string); text {
		return nil, actuators.InvalidConfiguration("spec.providerSpec.value.cpu: a number is required")
	}
	return fields, nil
}

func idOf(machine *machinev1beta1.Machine) string { return fmt.Sprintf("fake://%s", machine.UID) }

func publish(machine *machinev1beta1.Machine) {
	id := idOf(machine)
	machine.Spec.ProviderID = &id
	metav1.SetMetaDataLabel(&machine.ObjectMeta, "machine.openshift.io/instance-type", "small")
	metav1.SetMetaDataLabel(&machine.ObjectMeta, "machine.openshift.io/region", "region-1")
	metav1.SetMetaDataLabel(&machine.ObjectMeta, "machine.openshift.io/zone", "zone-1")
	metav1.SetMetaDataAnnotation(&machine.ObjectMeta, "machine.openshift.io/instance-state", "running")
	machine.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalDNS, Address: machine.Name}}
}
