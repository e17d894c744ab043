// Package actuators is the interface between the Machine controller and the code that manages
// instances. It defines four verbs and the errors that they may return. A conformance suite and a
// recording fake accompany it.
package actuators

import (
	"context"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
)

// Actuator turns a Machine into an instance and back. Every verb is idempotent and never blocks: it
// starts or continues longer work and returns a [RequeueAfterError] until the work is done.
//
// Each verb may return an [UncertainError] if the existence or owner of the instance is unknown:
// the state is missing, or this actuator did not assign the Machine's providerID. The caller
// reports it, keeps the Machine unchanged, and calls again. Exists must not return false then. For
// a Machine that had an instance, false means that the instance was seen to be gone, and makes the
// Machine Failed.
//
// A verb may change these fields of the given Machine in memory: labels, annotations,
// spec.providerID, status.addresses, status.providerStatus. The caller writes the changes to the
// API server. The Machine controller owns the phase, conditions, error fields and finalizer.
type Actuator interface {
	// Create creates the instance. It returns nil once the instance exists and the Machine carries
	// its outputs.
	Create(ctx context.Context, machine *machinev1beta1.Machine) error
	// Update refreshes the Machine's view of its instance, and updates the instance in place if
	// possible. It never replaces an instance. Nil means that the instance matches the current
	// providerSpec. Until that is established, Update returns a RequeueAfterError. It is also
	// called after an UncertainError of Exists, and may recover.
	Update(ctx context.Context, machine *machinev1beta1.Machine) error
	// Delete deletes the instance. It is called until Exists returns false. An invalid providerSpec
	// does not block it if nothing was created. InvalidConfiguration means that nothing unknown to
	// Exists can remain, so that a caller may release the Machine, unless it has addresses, a
	// providerID or a Node.
	Delete(ctx context.Context, machine *machinev1beta1.Machine) error
	// Exists reports whether the instance exists, without querying the infrastructure.
	Exists(ctx context.Context, machine *machinev1beta1.Machine) (bool, error)
}

// VolumeWaiter is implemented by an actuator whose instances should wait for attached pod volumes
// before deletion. The wait is bounded: Delete does not destroy volumes that are still attached.
type VolumeWaiter interface {
	// VolumeWait returns how long the instance's deletion waits after the drain; zero for not at
	// all.
	VolumeWait(machine *machinev1beta1.Machine) time.Duration
}

// UnchangedChecker is implemented by an actuator that can tell cheaply that its verbs would change
// nothing for a settled Machine. It makes the periodic reconcile of all Machines cheap.
type UnchangedChecker interface {
	// Unchanged reports whether all inputs of Update are unchanged, provided that Update was the
	// last verb for this version of the Machine and returned nil. It returns false if that cannot
	// be told cheaply. after is how long the answer holds if nothing changes.
	Unchanged(ctx context.Context, machine *machinev1beta1.Machine) (after time.Duration, unchanged bool)
}

// Rechecker is implemented by an actuator that must see a settled Machine again without an event,
// for example for a drift check.
type Rechecker interface {
	// RecheckAfter returns the delay before the Machine should be reconciled again; zero or less
	// for never.
	RecheckAfter(machine *machinev1beta1.Machine) time.Duration
}
