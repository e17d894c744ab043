// Package actuators is the seam between the Machine controller and whatever makes instances: an interface of four verbs, the
// errors that it may return, a conformance suite that every implementation passes, and a recording fake for tests.
package actuators

import (
	"context"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
)

// Actuator turns a Machine into an instance and back. Every verb is idempotent and returns at once: work that takes longer is
// started or continued, and the verb returns a [RequeueAfterError] until it is done.
//
// Each verb may return an [UncertainError] where it is unknown whether there is an instance, or whose it is: its state is missing, or the
// Machine has a providerID that this actuator did not give it. The caller shows it, keeps the Machine as it is, and calls again. Exists
// must not say false then: of a Machine that had an instance, false means that it was seen to be gone, in its own place, and makes it Failed.
//
// A verb may change the Machine that it is given, in memory only: labels, annotations, spec.providerID, status.addresses,
// status.providerStatus. The caller writes what changed to the API server. Phase, conditions, error fields and the finalizer
// belong to the Machine controller.
type Actuator interface {
	// Create makes the instance. It returns nil once the instance exists and the Machine carries its outputs.
	Create(ctx context.Context, machine *machinev1beta1.Machine) error
	// Update refreshes what the Machine says of its instance, and brings the instance to the providerSpec where that is
	// possible in place. It never replaces an instance. Nil means that it is as the present providerSpec wants it; while that is still to
	// be found out or to be brought about, it is a RequeueAfterError. It is called after an UncertainError of Exists too, and may recover.
	Update(ctx context.Context, machine *machinev1beta1.Machine) error
	// Delete removes the instance. It is called again until Exists returns false. A providerSpec that cannot be understood is no
	// obstacle where nothing was made. InvalidConfiguration means that nothing can be left behind that Exists does not know of, so
	// that a caller may let such a Machine go; one with addresses, a providerID or a Node is held all the same.
	Delete(ctx context.Context, machine *machinev1beta1.Machine) error
	// Exists reports whether the instance exists, as far as is known without asking the infrastructure anew.
	Exists(ctx context.Context, machine *machinev1beta1.Machine) (bool, error)
}

// VolumeWaiter is implemented by an actuator with instances whose deletion should wait for the volumes of pods that are attached to them. The wait
// is bounded: Delete leaves volumes whole that are attached still.
type VolumeWaiter interface {
	// VolumeWait returns how long the deletion of the Machine's instance waits, from the end of the drain on; zero for not at all.
	VolumeWait(machine *machinev1beta1.Machine) time.Duration
}

// UnchangedChecker is implemented by an actuator that can say of a settled Machine, for less than its verbs take, that they would find what they have found. A
// regular reconcile of all Machines is then cheap.
type UnchangedChecker interface {
	// Unchanged reports whether all that Update was decided from is as it was, given that Update was the last verb for this very version of the Machine and
	// has returned nil; false where that cannot be said for less than Update takes. after is how long that holds if nothing changes.
	Unchanged(ctx context.Context, machine *machinev1beta1.Machine) (after time.Duration, unchanged bool)
}

// Rechecker is implemented by an actuator that wants to see a settled Machine again although no event calls for it, for
// example because a drift check falls due.
type Rechecker interface {
	// RecheckAfter returns after how long the Machine should be reconciled again; zero or less for never.
	RecheckAfter(machine *machinev1beta1.Machine) time.Duration
}
