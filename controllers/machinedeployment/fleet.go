package machinedeployment

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/api/v1beta1"
)

// readFleet reads the MachineSets and their Machines, and finds the current revision.
type readFleet struct {
	nodes client.Reader
	clock clock.PassiveClock
}

// Reconcile implements pipeline.Step. Machines are read before MachineSets: a MachineSet that is found
// to have as many Machines as it should has no request for one in flight.
func (r *readFleet) Reconcile(ctx context.Context, s *scope) (bool, error) {
	options := []client.ListOption{client.InNamespace(s.deployment.Namespace), client.UnsafeDisableDeepCopy}
	machines := &machinev1beta1.MachineList{}
	if err := s.reader.List(ctx, machines, append(options, client.MatchingLabelsSelector{Selector: s.selector})...); err != nil {
		return false, fmt.Errorf("listing Machines: %w", err)
	}
	sets := &machinev1beta1.MachineSetList{}
	if err := s.reader.List(ctx, sets, options...); err != nil {
		return false, fmt.Errorf("listing MachineSets: %w", err)
	}
	owned := map[types.UID]*revision{}
	for i := range sets.Items {
		set := &sets.Items[i]
		s.all = append(s.all, set)
		if metav1.IsControlledBy(set, s.deployment) && set.DeletionTimestamp.IsZero() {
			owned[set.UID] = &revision{set: set}
			s.revisions = append(s.revisions, owned[set.UID])
		} else if metav1.GetControllerOfNoCopy(set) == nil && set.Annotations[v1beta1.HoldAnnotation] == s.deployment.Name {
			s.orphans = append(s.orphans, &revision{set: set})
		}
	}
	slices.SortFunc(s.revisions, older)
	for i := range machines.Items {
		machine := &machines.Items[i]
		owner := metav1.GetControllerOfNoCopy(machine)
		if owner == nil || owned[owner.UID] == nil {
			continue
		}
		if err := r.add(ctx, s, owned[owner.UID], machine); err != nil {
			return false, err
		}
	}
	for _, orphan := range s.orphans {
		if err := r.readOrphan(ctx, s, orphan); err != nil {
			return false, err
		}
	}
	s.read = true
	var err error
	s.current, err = s.find()
	return err == nil, err
}

// readOrphan reads the Machines of an orphan by its own selector, which may be another one than the
// MachineDeployment's: those that it controls, and those without a controller, which it will adopt.
func (r *readFleet) readOrphan(ctx context.Context, s *scope, orphan *revision) error {
	selector, err := metav1.LabelSelectorAsSelector(&orphan.set.Spec.Selector)
	if err != nil {
		return fmt.Errorf("reading spec.selector of MachineSet %s: %w", orphan.set.Name, err)
	}
	machines := &machinev1beta1.MachineList{}
	if err := s.reader.List(ctx, machines, client.InNamespace(orphan.set.Namespace), client.UnsafeDisableDeepCopy,
		client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return fmt.Errorf("listing Machines of MachineSet %s: %w", orphan.set.Name, err)
	}
	for i := range machines.Items {
		machine := &machines.Items[i]
		if owner := metav1.GetControllerOfNoCopy(machine); owner == nil || owner.UID == orphan.set.UID {
			if err := r.add(ctx, s, orphan, machine); err != nil {
				return err
			}
		}
	}
	return nil
}

// add adds a Machine to its revision.
func (r *readFleet) add(ctx context.Context, s *scope, to *revision, machine *machinev1beta1.Machine) error {
	if !machine.DeletionTimestamp.IsZero() {
		to.leaving++
		return nil
	}
	since, ready, err := r.readySince(ctx, machine)
	if err != nil {
		return err
	}
	least := time.Duration(s.deployment.Spec.MinReadySeconds) * time.Second
	to.machines = append(to.machines, machine)
	to.ready = append(to.ready, ready)
	to.available = append(to.available, ready && (least == 0 || r.clock.Now().Sub(since) > least))
	return nil
}

// readySince returns since when the Machine's Node is ready, and whether it is.
func (r *readFleet) readySince(ctx context.Context, machine *machinev1beta1.Machine) (time.Time, bool, error) {
	if machine.Status.NodeRef == nil {
		return time.Time{}, false, nil
	}
	node := &corev1.Node{}
	err := r.nodes.Get(ctx, types.NamespacedName{Name: machine.Status.NodeRef.Name}, node, client.UnsafeDisableDeepCopy)
	if client.IgnoreNotFound(err) != nil {
		return time.Time{}, false, fmt.Errorf("getting the Node of Machine %s: %w", machine.Name, err)
	}
	for _, condition := range node.Status.Conditions {
		if err == nil && condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
			return condition.LastTransitionTime.Time, true, nil
		}
	}
	return time.Time{}, false, nil
}

// older orders revisions by number, then by age.
func older(x, y *revision) int {
	return cmp.Or(cmp.Compare(x.number(), y.number()),
		x.set.CreationTimestamp.Compare(y.set.CreationTimestamp.Time), cmp.Compare(x.set.Name, y.set.Name))
}

// number returns the revision's number, or 0 if it has none yet.
func (r *revision) number() int64 { return v1beta1.Revision(r.set) }

// replicas returns the number of Machines that the MachineSet should have.
func (r *revision) replicas() int {
	if r.set.Spec.Replicas == nil {
		return 1
	}
	return int(*r.set.Spec.Replicas)
}

// settled reports whether the MachineSet has its desired number of Machines.
func (r *revision) settled() bool { return len(r.machines) == r.replicas() }

// held reports whether the MachineDeployment holds the MachineSet.
func (s *scope) held(r *revision) bool {
	return r.set.Annotations[v1beta1.HoldAnnotation] == s.deployment.Name
}

// find returns the revision of the template: the one with an equal providerSpec, or the one that was
// created for it, whose providerSpec admission may have completed.
func (s *scope) find() (*revision, error) {
	hash, err := templateHash(s.deployment)
	if err != nil {
		return nil, err
	}
	var made *revision
	for _, r := range s.revisions {
		if sameTemplate(s.deployment, r.set) {
			return r, nil
		}
		if r.set.Labels[v1beta1.TemplateHashLabel] == hash {
			made = r
		}
	}
	return made, nil
}
