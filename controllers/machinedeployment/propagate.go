package machinedeployment

import (
	"context"
	"fmt"
	"maps"
	"slices"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/machine-iac/machine-iac-operator/api/v1beta1"
)

// propagate brings what needs no rollout to the MachineSets and their Machines. A Machine gets the
// changes only, so that what others have written stays. Machines come first: the MachineSet still
// knows what there was before.
type propagate struct {
	writer
}

// Reconcile implements pipeline.Step.
func (p *propagate) Reconcile(ctx context.Context, s *scope) (bool, error) {
	for _, r := range s.revisions {
		wanted := r.set.DeepCopy()
		wanted.Spec.MinReadySeconds, wanted.Spec.DeletePolicy = s.deployment.Spec.MinReadySeconds, s.deletePolicy()
		given, template := s.deployment.Spec.Template.DeepCopy(), &wanted.Spec.Template
		template.Labels, template.Annotations = s.labelsOf(r.set), given.Annotations
		template.Spec.Labels, template.Spec.Annotations = given.Spec.Labels, given.Spec.Annotations
		template.Spec.Taints, template.Spec.LifecycleHooks = given.Spec.Taints, given.Spec.LifecycleHooks
		if equality.Semantic.DeepEqual(wanted.Spec, r.set.Spec) {
			continue
		}
		for _, machine := range r.machines {
			changed := updated(machine, &r.set.Spec.Template, template)
			if equality.Semantic.DeepEqual(machine, changed) {
				continue
			}
			if err := p.patch(ctx, s, machine, changed); err != nil {
				return false, fmt.Errorf("bringing the template's labels, annotations, taints and hooks to Machine %s: %w",
					machine.Name, err)
			}
		}
		if err := p.patch(ctx, s, r.set, wanted); err != nil {
			return false, fmt.Errorf("bringing the template to MachineSet %s: %w", r.set.Name, err)
		}
	}
	return !s.wrote, nil
}

// labelsOf returns the labels of a MachineSet's template: the MachineDeployment's, those that the
// MachineSet selects, and the hash.
func (s *scope) labelsOf(set *machinev1beta1.MachineSet) map[string]string {
	out := map[string]string{}
	maps.Copy(out, s.deployment.Spec.Template.Labels)
	maps.Copy(out, set.Spec.Selector.MatchLabels)
	out[v1beta1.TemplateHashLabel] = set.Labels[v1beta1.TemplateHashLabel]
	return out
}

// updated returns a Machine with what differs between two templates.
func updated(machine *machinev1beta1.Machine, before, after *machinev1beta1.MachineTemplateSpec) *machinev1beta1.Machine {
	out := machine.DeepCopy()
	out.Labels = withDifference(out.Labels, before.Labels, after.Labels)
	out.Annotations = withDifference(out.Annotations, before.Annotations, after.Annotations)
	out.Spec.Labels = withDifference(out.Spec.Labels, before.Spec.Labels, after.Spec.Labels)
	out.Spec.Annotations = withDifference(out.Spec.Annotations, before.Spec.Annotations, after.Spec.Annotations)
	sameTaint := func(x, y corev1.Taint) bool { return x.MatchTaint(&y) }
	sameHook := func(x, y machinev1beta1.LifecycleHook) bool { return x.Name == y.Name }
	out.Spec.Taints = listWithDifference(out.Spec.Taints, before.Spec.Taints, after.Spec.Taints, sameTaint)
	hooks, from, to := &out.Spec.LifecycleHooks, &before.Spec.LifecycleHooks, &after.Spec.LifecycleHooks
	hooks.PreDrain = listWithDifference(hooks.PreDrain, from.PreDrain, to.PreDrain, sameHook)
	hooks.PreTerminate = listWithDifference(hooks.PreTerminate, from.PreTerminate, to.PreTerminate, sameHook)
	return out
}

// withDifference returns the map with the difference between two others applied.
func withDifference(of, before, after map[string]string) map[string]string {
	out := maps.Clone(of)
	for key := range before {
		if _, stays := after[key]; !stays {
			delete(out, key)
		}
	}
	for key, value := range after {
		if old, there := before[key]; there && old == value {
			continue
		}
		if out == nil {
			out = map[string]string{}
		}
		out[key] = value
	}
	return out
}

// listWithDifference does the same for lists whose elements have an identity.
func listWithDifference[T any](of, before, after []T, same func(x, y T) bool) []T {
	if equality.Semantic.DeepEqual(before, after) {
		return of
	}
	out := slices.Clone(of)
	without := func(gone T) { out = slices.DeleteFunc(out, func(x T) bool { return same(x, gone) }) }
	for _, gone := range before {
		if !slices.ContainsFunc(after, func(x T) bool { return same(x, gone) }) {
			without(gone)
		}
	}
	for _, added := range after {
		if !slices.ContainsFunc(before, func(x T) bool { return equality.Semantic.DeepEqual(x, added) }) {
			without(added)
			out = append(out, added)
		}
	}
	return out
}
