package machinedeployment

import (
	"context"
	"fmt"
	"strconv"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/machine-iac/machine-iac-operator/api/v1beta1"
	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
)

// scale sets the numbers of the MachineSets.
type scale struct {
	writer
}

// Reconcile implements pipeline.Step.
func (c *scale) Reconcile(ctx context.Context, s *scope) (bool, error) {
	f, revisions := s.fleet()
	if f == nil {
		return true, nil
	}
	f.plan()
	for i, g := range f.groups() {
		if err := c.mark(ctx, s, revisions[i], g); err != nil {
			return false, err
		}
		if err := c.resize(ctx, s, revisions[i], g.number); err != nil {
			return false, err
		}
	}
	return !s.wrote, nil
}

// fleet returns the numbers, and the revisions in the order of their groups. It returns none if there
// is no MachineSet.
func (s *scope) fleet() (*fleet, []*revision) {
	if len(s.revisions) == 0 {
		return nil, nil
	}
	current, old := s.current, s.old()
	if current == nil { // paused before the revision was created
		current = s.revisions[len(s.revisions)-1]
		old = s.revisions[:len(s.revisions)-1]
	}
	f := &fleet{
		replicas: s.bounds.replicas, surge: s.bounds.surge, unavailable: s.bounds.unavailable, stopped: s.stopped(),
		recreate: s.strategy() == v1beta1.Recreate && !s.deployment.Spec.Paused, current: s.group(current),
	}
	f.last, _ = strconv.Atoi(current.set.Annotations[v1beta1.DesiredReplicasAnnotation]) // 0 if absent
	for _, r := range old {
		g := s.group(r)
		g.replace = s.replaces(r)
		if s.held(r) { // OnDelete: what is deleted is not created again
			g.number = min(g.number, g.alive)
		}
		f.old = append(f.old, g)
	}
	return f, append(old[:len(old):len(old)], current)
}

func (s *scope) group(r *revision) *group {
	g := &group{number: r.replicas(), alive: len(r.machines), leaving: r.leaving}
	for i, machine := range r.machines {
		if r.available[i] {
			g.available++
		}
		if machineapi.MarkedForDeletion(machine) {
			g.chosen++
			if r.available[i] {
				g.chosenAvailable++
			}
		}
	}
	return g
}

// replaces reports whether the Machines of an old revision are replaced.
func (s *scope) replaces(old *revision) bool {
	switch s.strategy() {
	case v1beta1.RollingUpdate, v1beta1.Recreate:
		return !s.deployment.Spec.Paused
	case v1beta1.InPlaceOrReplace:
		return !s.deployment.Spec.Paused && s.current != nil && len(s.movable(old)) == 0
	default:
		return false
	}
}

// mark marks the unavailable Machines that are to be deleted before others.
func (c *scale) mark(ctx context.Context, s *scope, r *revision, g *group) error {
	left := g.marks()
	if g.number >= r.replicas() {
		return nil
	}
	for i, machine := range r.machines {
		if left == 0 || r.available[i] || machineapi.MarkedForDeletion(machine) {
			continue
		}
		left--
		if err := c.writer.mark(ctx, s, machine, "unavailable"); err != nil {
			return err
		}
	}
	return nil
}

// mark marks a Machine that is to be deleted before others.
func (w writer) mark(ctx context.Context, s *scope, machine *machinev1beta1.Machine, why string) error {
	marked := machine.DeepCopy()
	metav1.SetMetaDataAnnotation(&marked.ObjectMeta, machineapi.DeleteAnnotation, why)
	if err := w.patch(ctx, s, machine, marked); err != nil {
		return fmt.Errorf("marking Machine %s for deletion: %w", machine.Name, err)
	}
	return nil
}

// resize writes the number of a MachineSet. The old MachineSets of OnDelete are held, so that they do
// not create a Machine again that was deleted; they are free while they must delete some.
func (c *scale) resize(ctx context.Context, s *scope, r *revision, number int) error {
	set := r.set.DeepCopy()
	set.Spec.Replicas = ptr.To(int32(number))
	held := s.held(r)
	if r != s.current && s.strategy() == v1beta1.OnDelete && s.current != nil {
		held = number > 0 && number == len(r.machines)
	}
	if r == s.current {
		metav1.SetMetaDataAnnotation(&set.ObjectMeta, v1beta1.DesiredReplicasAnnotation, strconv.Itoa(s.bounds.replicas))
	}
	switch {
	case held:
		metav1.SetMetaDataAnnotation(&set.ObjectMeta, v1beta1.HoldAnnotation, s.deployment.Name)
	case s.held(r):
		delete(set.Annotations, v1beta1.HoldAnnotation)
	}
	if number == r.replicas() && held == s.held(r) && set.Annotations[v1beta1.DesiredReplicasAnnotation] ==
		r.set.Annotations[v1beta1.DesiredReplicasAnnotation] {
		return nil
	}
	if err := c.patch(ctx, s, r.set, set); err != nil {
		return fmt.Errorf("scaling MachineSet %s: %w", r.set.Name, err)
	}
	return nil
}
