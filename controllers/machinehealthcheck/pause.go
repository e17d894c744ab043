package machinehealthcheck

import "context"

// pausedAnnotation pauses a MachineHealthCheck by being there.
const pausedAnnotation = "cluster.x-k8s.io/paused"

// pause ends the pass of a MachineHealthCheck that is paused.
type pause struct{}

// Reconcile implements step.
func (*pause) Reconcile(_ context.Context, s *scope) (bool, error) {
	_, paused := s.check.Annotations[pausedAnnotation]
	return !paused, nil
}
