package machinehealthcheck

import "context"

// pausedAnnotation pauses a MachineHealthCheck, whatever its value.
const pausedAnnotation = "cluster.x-k8s.io/paused"

// checkPaused ends the reconcile of a paused MachineHealthCheck.
type checkPaused struct{}

// Reconcile implements pipeline.Step.
func (*checkPaused) Reconcile(_ context.Context, s *scope) (bool, error) {
	_, paused := s.check.Annotations[pausedAnnotation]
	return !paused, nil
}
