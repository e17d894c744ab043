package orphans

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/internal/cluster/events"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// handle processes a state whose Machine is gone and records the findings. It reports whether the
// state is to be destroyed.
func (o *Orphans) handle(ctx context.Context, head state.Head) (destroys bool, err error) {
	if onlyPlanned(head) {
		_, err := o.destroy(head)
		return true, err
	}
	said, err := record.ReadOrphan(head.Meta)
	if err != nil {
		return false, err
	}
	if said.Mark == nil {
		return o.first(ctx, head, said)
	}
	next := o.withPolicy(*said.Mark)
	if next.Destroy.IsZero() != said.Mark.Destroy.IsZero() {
		recorded, err := o.mark(ctx, head, next)
		if err != nil || !recorded {
			return true, err
		}
	}
	next.Problem, next.Begun = "", begun(head, said.Mark)
	switch invalid := said.Check(); {
	case invalid != nil:
		next.Problem = invalid.Error()
	case next.Begun || said.Action == record.OrphanDestroy || !next.Destroy.IsZero():
		destroys = true
		status, err := o.destroy(head)
		if err != nil || status.Phase == runs.Running {
			return destroys, err
		}
		next.Problem = problemOf(status)
	default:
		o.Logger.Info("A state has no Machine; see docs/troubleshooting.md before you delete it",
			"state", head.Key.String(), "resources", head.Managed, "since", next.Since)
	}
	if next == *said.Mark && head.Lock == nil {
		return destroys, nil
	}
	_, err = o.mark(ctx, head, next)
	return destroys, err
}

// first records that a state was seen without its Machine, and sends an event on its MachineSet. A
// started or requested destroy continues.
func (o *Orphans) first(ctx context.Context, head state.Head, said record.Orphan) (destroys bool, err error) {
	destroys = begun(head, nil) || said.Action == record.OrphanDestroy
	recorded, err := o.mark(ctx, head, record.OrphanMark{Since: o.Clock.Now().UTC(), Begun: begun(head, nil)})
	if err != nil {
		return destroys, err
	}
	if recorded {
		o.Logger.Info("Found a state whose Machine is gone", "state", head.Key.String(), "machine", machineOf(head).Name,
			"resources", head.Managed)
	}
	if set := said.MachineSet; recorded && set != nil {
		orphanedState(set, head).Send(o.Recorder)
	}
	if destroys { // even if this process's run has left it locked: the next run continues
		_, err = o.destroy(head)
	}
	return destroys, err
}

// orphanedState reports a state whose Machine is gone.
func orphanedState(ref *record.MachineSetRef, head state.Head) events.Event {
	set := &machinev1beta1.MachineSet{}
	set.Namespace, set.Name, set.UID = head.Key.Namespace, ref.Name, ref.UID
	has := fmt.Sprintf("its state lists %d resources, which may still exist", head.Managed)
	if head.Managed == 0 {
		has = "its interrupted run may have created an instance that its state does not list"
	}
	return events.Warning(set, "OrphanedState", "CheckStates",
		fmt.Sprintf("Machine %s is gone, and %s: run 'kubectl machine orphans %s' for details",
			cmp.Or(machineOf(head).Name, string(uidOf(head))), has, uidOf(head)))
}

// onlyPlanned reports whether a head is the remains of an adoption plan and lists no resource.
func onlyPlanned(head state.Head) bool {
	read, err := record.Read(head.Meta)
	return err == nil && head.Managed == 0 && read.OnlyPlanned()
}

// begun reports whether a destroy began before the Machine's finalizer was removed. mark is the
// state's earlier mark, or nil.
func begun(head state.Head, mark *record.OrphanMark) bool {
	if mark != nil && mark.Begun {
		return true
	}
	read, err := record.Read(head.Meta)
	return err == nil && read.Intent != nil && read.Intent.Operation == runs.Destroy
}

func (o *Orphans) destroy(head state.Head) (runs.Status, error) {
	if uidOf(head) == "" {
		return runs.Status{}, fmt.Errorf("the Secret lacks label %s; set it to the UID of the state's Machine",
			state.LabelMachineUID)
	}
	return o.Actuator.DestroyWithoutMachine(machineOf(head), uidOf(head))
}

// problemOf returns why a destroy has not succeeded so far.
func problemOf(status runs.Status) string {
	if status.Err == nil {
		return ""
	}
	return events.Shortened(status.Err.Error())
}

// mark records a state's mark in the write that takes its lock. It also releases the lock of a dead
// manager, since no run will take it over. The recorded intent remains.
func (o *Orphans) mark(ctx context.Context, head state.Head, mark record.OrphanMark) (recorded bool, err error) {
	p := record.NewPatch()
	p.SetOrphanMark(mark)
	return o.record(ctx, head, false, p)
}

// unmark records that a state has its Machine again, if it says otherwise.
func (o *Orphans) unmark(ctx context.Context, head state.Head) error {
	said, err := record.ReadOrphan(head.Meta)
	if err == nil && said.Mark == nil && said.Action == "" {
		return nil
	}
	o.Logger.Info("Dropping the request for an orphaned state: its Machine exists", "state", head.Key.String(), "action",
		said.Action)
	p := record.NewPatch()
	p.ClearOrphan()
	_, err = o.record(ctx, head, true, p)
	return err
}

// record changes the orphan record of a head if its Machine's existence is still as found. It skips
// a state that is locked by a run, or gone.
func (o *Orphans) record(ctx context.Context, head state.Head, there bool, p record.Patch) (recorded bool, err error) {
	session, err := o.Actuator.AcquireIdle(ctx, head.Key, "orphan", state.AcquireOptions{
		Decide: func(ctx context.Context, now *state.Snapshot) (state.Change, error) {
			if now.ResourceVersion == "" {
				return state.Change{}, runs.ErrNothingToDo
			}
			found, err := o.hasMachine(ctx, head)
			if err == nil && found != there {
				err = runs.ErrNothingToDo
			}
			return state.Change{Meta: p.MetaPatch}, err
		},
	})
	_, waiting := actuators.AsRequeueAfter(err)
	_, locked := errors.AsType[*state.LockedError](err)
	if waiting || locked || errors.Is(err, runs.ErrNothingToDo) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	// Fenced by a run, which keeps the record.
	if err := session.Release(ctx, nil); err != nil && !errors.Is(err, state.ErrFenced) {
		return true, err
	}
	return true, nil
}

// hasMachine reads whether a state's Machine exists.
func (o *Orphans) hasMachine(ctx context.Context, head state.Head) (bool, error) {
	machine := &machinev1beta1.Machine{}
	switch err := o.Client.Get(ctx, machineOf(head), machine); {
	case machineOf(head).Name == "":
		return false, nil // the state does not name its owner, so trust the finding
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("reading the Machine: %w", err)
	}
	return state.KeyFor(machine.Namespace, machine.UID) == head.Key, nil
}
