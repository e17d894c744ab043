package machine

import (
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestAMachineWhoseRunHasEndedWaitsForNoTimer(t *testing.T) {
	queue := priorityqueue.New[reconcile.Request]("test")
	defer queue.ShutDown()
	named := func(name string) reconcile.Request {
		return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: name}}
	}
	add := func(name string, result reconcile.Result) {
		queue.AddWithOpts(priorityqueue.AddOpts{Priority: result.Priority}, named(name))
	}
	add("timer", timed(reconcile.Result{RequeueAfter: time.Minute}))
	add("changed", timed(reconcile.Result{}))
	ended := &machinev1beta1.Machine{}
	ended.Namespace, ended.Name = "ns", "ended"
	endedRuns().Generic(t.Context(), event.GenericEvent{Object: ended}, queue)
	for queue.Len() < 3 {
		time.Sleep(time.Millisecond)
	}
	for _, want := range []string{"ended", "changed", "timer"} {
		if got, _ := queue.Get(); got != named(want) {
			t.Errorf("%s is reconciled, want %s", got, want)
		}
	}
}
