package machinehealthcheck

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/machine-iac/machine-iac-operator/internal/cluster/events"
)

// externalAnnotation on a Machine requests external remediation.
const externalAnnotation = "host.metal3.io/external-remediation"

// remediate remediates unhealthy targets.
type remediate struct {
	client   client.Client
	recorder events.Recorder
	metrics  *Metrics
}

// Reconcile implements pipeline.Step. An error about one target does not affect the others.
func (r *remediate) Reconcile(ctx context.Context, s *scope) (bool, error) {
	var failures []error
	for _, target := range s.plan.annotate {
		failures = append(failures, r.annotate(ctx, s, target))
	}
	for _, target := range s.plan.destroy {
		failures = append(failures, r.destroy(ctx, s, target))
	}
	return true, errors.Join(append(failures, r.external(ctx, s, s.plan.request))...)
}

// external creates the remediation requests of targets, and reports the result in a condition.
func (r *remediate) external(ctx context.Context, s *scope, targets []*target) error {
	if s.external == nil {
		return nil
	}
	if err := s.external.ready(); err != nil {
		if s.external.requestsErr != nil {
			setRequestsCondition(s, []error{s.external.requestsErr})
		} else {
			setRequestsCondition(s, nil)
		}
		if len(targets) == 0 {
			return nil
		}
		return fmt.Errorf("remediating %d Machines externally: %w", len(targets), err)
	}
	var failures []error
	for _, target := range targets {
		if err := r.request(ctx, s.external, target); err != nil {
			failures = append(failures, fmt.Errorf("creating the remediation request of Machine %s: %w", target.machine.Name,
				err))
		}
	}
	setRequestsCondition(s, failures)
	return errors.Join(failures...)
}

// request creates the remediation request of one target, unless it exists.
func (r *remediate) request(ctx context.Context, e *external, t *target) error {
	request, err := requestFrom(e.template, e.kind, t.machine)
	if err != nil {
		return err
	}
	if err := r.client.Create(ctx, request); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("%w; %s", err, fixFor(err, e.kind, "list, create and delete"))
	}
	t.requested = true
	log.FromContext(ctx).Info("Requested external remediation", "Machine", t.machine.Name, "kind", e.kind.Kind, "why",
		t.health.why)
	return nil
}

// annotate requests external remediation of one target by annotation.
func (r *remediate) annotate(ctx context.Context, s *scope, t *target) error {
	// With the UID, the API server refuses the patch for another Machine of the same name.
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": t.machine.UID, "annotations": map[string]string{externalAnnotation: ""},
	}})
	if err != nil {
		return fmt.Errorf("writing the annotation of Machine %s as JSON: %w", t.machine.Name, err)
	}
	err = r.client.Patch(ctx, sameName(t.machine), client.RawPatch(types.MergePatchType, patch))
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		r.sendUnlessStopping(ctx, externalAnnotationFailed(s.check, t, err))
		return fmt.Errorf("annotating Machine %s for external remediation: %w", t.machine.Name, err)
	}
	t.annotated = true
	externalAnnotationAdded(s.check, t).Send(r.recorder)
	return nil
}

// destroy deletes one target by UID, so that another Machine of the same name is not.
func (r *remediate) destroy(ctx context.Context, s *scope, t *target) error {
	err := r.client.Delete(ctx, sameName(t.machine), client.Preconditions{UID: &t.machine.UID})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // already deleted; the cache will show it
	}
	if err != nil {
		r.sendUnlessStopping(ctx, machineDeletionFailed(s.check, t, err))
		return fmt.Errorf("deleting Machine %s: %w", t.machine.Name, err)
	}
	t.deleting = true
	r.metrics.remediated(s.check)
	machineDeleted(s.check, t).Send(r.recorder)
	log.FromContext(ctx).Info("Deleted an unhealthy Machine", "Machine", t.machine.Name, "why", t.health.why)
	return nil
}

// sendUnlessStopping sends an event, unless the error comes from the manager stopping.
func (r *remediate) sendUnlessStopping(ctx context.Context, n events.Event) {
	if ctx.Err() == nil {
		n.Send(r.recorder)
	}
}

// sameName returns a new Machine with namespace and name of a cached one.
func sameName(machine *machinev1beta1.Machine) *machinev1beta1.Machine {
	out := &machinev1beta1.Machine{}
	out.SetNamespace(machine.Namespace)
	out.SetName(machine.Name)
	return out
}
