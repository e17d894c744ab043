package iac

import (
	"context"
	"testing"

	"github.com/machine-iac/machine-iac-operator/actuators/runner"
	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
	"github.com/machine-iac/machine-iac-operator/test/shortdir"
)

// queue admits runs when it is closed.
type queue struct{ open chan struct{} }

// queued is a runner whose runs wait in a queue of the cluster.
type queued struct {
	runner.Runner
	in *queue
}

// Open implements runner.Runner.
func (q queued) Open(ctx context.Context, run runner.RunSpec) (runner.Workspace, error) {
	run.Waits("a queue of the cluster")
	select {
	case <-q.in.open:
		run.Waits("")
		return q.Runner.Open(ctx, run)
	case <-ctx.Done():
		return nil, &failure.Error{Op: failure.OpOpen, Class: failure.Interrupted, Err: context.Cause(ctx)}
	}
}

// queuedBench is a bench whose runs of OpenTofu wait until the queue is opened.
func queuedBench(t *testing.T) *bench {
	t.Helper()
	b := newBench(t)
	b.queue = &queue{open: make(chan struct{})}
	b.start(shortdir.New(t), "owner-2")
	return b
}

func TestARunThatWaitsInTheClusterSaysSo(t *testing.T) {
	b := queuedBench(t)
	machine := b.machine()
	b.poll(func() error { return b.Create(t.Context(), machine) }, "create run waiting: a queue of the cluster")
	if run := readProviderStatus(machine).Run; run == nil || run.WaitsFor != "a queue of the cluster" || run.Operation != v1alpha1.RunCreate {
		t.Errorf("the provider status has the run %+v", run)
	}
	close(b.queue.open)
	b.bring(machine)
	if b.node(machine) == nil {
		t.Error("there is no instance")
	}
}

func TestAMachineThatIsDeletedWhileItsRunWaitsGoesAtOnce(t *testing.T) {
	b := queuedBench(t)
	machine := b.machine()
	b.poll(func() error { return b.Create(t.Context(), machine) }, "a queue of the cluster")
	if err := b.drive(b.Delete, machine); err != nil {
		t.Fatal(err)
	}
	if b.node(machine) != nil || b.starts() > 0 {
		t.Errorf("the engine was started %d times for a Machine that was not made", b.starts())
	}
	if there, err := b.Actuator.Exists(t.Context(), machine); there || err != nil {
		t.Errorf("Exists: %t, %v", there, err)
	}
}

// A run that is to find out what an earlier one has made does not go without that.
func TestADeletedMachineOfWhichSomethingMayBeThereIsLookedFor(t *testing.T) {
	b := newBench(t)
	machine := b.machine()
	b.bring(machine)
	b.queue = &queue{open: make(chan struct{})}
	b.start(shortdir.New(t), "owner-2")
	b.lose(machine, b.owner)
	b.poll(func() error { return b.Create(t.Context(), machine) }, "a queue of the cluster")
	b.poll(func() error { return b.Delete(t.Context(), machine) }, "destroy run waiting: a queue of the cluster")
	if intent := b.record(machine).Intent; intent == nil || intent.AbandonedRun() == "" {
		t.Errorf("the intent is %+v", intent)
	}
	close(b.queue.open)
	if err := b.drive(b.Delete, machine); err != nil {
		t.Fatal(err)
	}
	if b.node(machine) != nil {
		t.Error("the instance is left")
	}
}
