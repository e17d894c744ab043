package machine

import (
	"context"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

const defaultConcurrency = 10

// endedRunPriority is the queue priority of Machines whose run has ended, ahead of changed Machines
// (0) and timers (handler.LowPriority).
const endedRunPriority = 1

// endedRuns enqueues Machines whose run has ended.
func endedRuns() handler.EventHandler {
	return handler.Funcs{GenericFunc: func(_ context.Context, ended event.GenericEvent,
		queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(ended.Object)}
		if byPriority, ok := queue.(priorityqueue.PriorityQueue[reconcile.Request]); ok {
			byPriority.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(endedRunPriority)}, request)
			return
		}
		queue.Add(request)
	}}
}

// timed returns a reconcile's result with the priority of a timer, if it has one. Otherwise the
// timers of many Machines that wait for runs would delay Machines that have news.
func timed(result reconcile.Result) reconcile.Result {
	if result.RequeueAfter > 0 {
		result.Priority = ptr.To(handler.LowPriority)
	}
	return result
}

// SetupWithManager creates a Controller and registers it and its watches with the manager. Client
// and Recorder default to the manager's.
func SetupWithManager(mgr manager.Manager, options Options) error {
	options.Complete(mgr, Name, defaultConcurrency)
	c, err := New(options)
	if err != nil {
		return err
	}
	return options.Register(mgr, Name, c, func(build *builder.Builder) {
		build.For(&machinev1beta1.Machine{}, builder.WithPredicates(machineChanged()))
		if options.Events != nil {
			build.WatchesRawSource(source.Channel(options.Events, endedRuns()))
		}
	})
}
