package machinedeployment

import (
	"context"
	"fmt"
	"slices"
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/machine-iac/machine-iac-operator/api/v1beta1"
	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
)

// move lets more Machines change in place.
type move struct {
	writer
}

// Reconcile implements pipeline.Step.
func (m *move) Reconcile(ctx context.Context, s *scope) (bool, error) {
	if !s.inPlace() || s.current == nil || !s.current.settled() || s.deployment.Spec.Paused || s.stopped() {
		return true, nil
	}
	slots := s.slots()
	moves := func(m *machinev1beta1.Machine) bool { return verdictOf(m) != unmoved }
	superseded := slices.ContainsFunc(s.old(), func(r *revision) bool { return slices.ContainsFunc(s.movable(r), moves) })
	for _, from := range s.old() {
		machines := s.movable(from)
		if superseded { // Machines that move to a superseded revision already hold a slot
			machines = slices.DeleteFunc(machines, func(m *machinev1beta1.Machine) bool { return !moves(m) })
			slots = len(machines)
		}
		if slots <= 0 || len(machines) == 0 || !from.settled() {
			continue
		}
		machines = machines[:min(slots, len(machines))]
		if err := m.transfer(ctx, s, from, s.current, machines, false); err != nil {
			return false, err
		}
		log.FromContext(ctx).Info("Changing Machines in place", "from", from.set.Name, "to", s.current.set.Name,
			"machines", len(machines))
		return false, nil
	}
	return true, nil
}

func (s *scope) inPlace() bool {
	return s.strategy() == v1beta1.InPlace || s.strategy() == v1beta1.InPlaceOrReplace
}

// slots returns how many more Machines may change in place now. The first one of a revision asks for
// all: its plan may be refused. A failed change stops the next ones.
func (s *scope) slots() int {
	window, busy, done := max(1, s.bounds.unavailable), 0, 0
	for i, machine := range s.current.machines {
		switch verdict := verdictOf(machine); {
		case verdict == failed:
			return 0
		case verdict != unmoved || !s.current.available[i]:
			busy++
		default:
			done++
		}
	}
	if done == 0 {
		window = 1
	}
	return window - busy
}

// movable returns the Machines of an old revision that can change in place as far as is known.
func (s *scope) movable(from *revision) []*machinev1beta1.Machine {
	if !s.inPlace() || s.current == nil || refusalOf(from.set, s.current.set.Name) != "" || s.restarted(from) {
		return nil
	}
	var out []*machinev1beta1.Machine
	for _, machine := range from.machines {
		origin := s.named(machine.Annotations[v1beta1.MovedFromAnnotation])
		if machine.Status.ErrorReason == nil && machine.Status.ErrorMessage == nil && !machineapi.MarkedForDeletion(machine) &&
			!controlPlane(machine.Labels) && refusalOf(machine, s.current.set.Name) == "" &&
			(origin == nil || origin == s.current || refusalOf(origin.set, s.current.set.Name) == "") {
			out = append(out, machine)
		}
	}
	slices.SortFunc(out, func(x, y *machinev1beta1.Machine) int {
		if x.Name < y.Name {
			return -1
		}
		return 1
	})
	return out
}

// restarted reports whether the current revision asks for new instances.
func (s *scope) restarted(from *revision) bool {
	return from.set.Annotations[v1beta1.RestartedAtAnnotation] != s.current.set.Annotations[v1beta1.RestartedAtAnnotation]
}

// transfer moves Machines from one MachineSet to another one. Both are held meanwhile, and released by
// the next reconcile. A Machine that has changed since it was read stays.
func (w writer) transfer(ctx context.Context, s *scope, from, to *revision, machines []*machinev1beta1.Machine,
	back bool) error {
	if err := w.hold(ctx, s, from, to); err != nil {
		return err
	}
	for _, machine := range machines {
		moved := s.moved(machine, from, to, back)
		err := w.patch(ctx, s, machine, moved)
		if back && err != nil && strings.Contains(err.Error(), refusedByWebhook) {
			// Admission has become stricter: the Machine goes back with the providerSpec that was not applied.
			moved.Spec.ProviderSpec = machine.Spec.ProviderSpec
			err = w.patch(ctx, s, machine, moved)
		}
		switch {
		case err == nil, apierrors.IsConflict(err), apierrors.IsNotFound(err):
		case !back && strings.Contains(err.Error(), refusedByWebhook):
			return w.refusedByAPI(ctx, s, from, to, err)
		default:
			return fmt.Errorf("moving Machine %s to MachineSet %s: %w", machine.Name, to.set.Name, err)
		}
	}
	return nil
}

// refusedByWebhook is in the error of a write that this operator's webhook refuses. Other refusals, such as
// a policy's that freezes updates, say nothing about the instance.
const refusedByWebhook = `"validation.machine.machine.openshift.io" denied the request`

// refusedByAPI treats a write that the webhook refuses like a refused plan.
func (w writer) refusedByAPI(ctx context.Context, s *scope, from, to *revision, why error) error {
	held := &machinev1beta1.MachineSet{}
	if err := s.reader.Get(ctx, client.ObjectKeyFromObject(from.set), held); err != nil {
		return fmt.Errorf("getting MachineSet %s: %w", from.set.Name, err)
	}
	return w.note(ctx, s, &revision{set: held}, to, why.Error())
}

// moved returns a Machine as a member of another MachineSet. One that goes on to a third revision
// before the plan for the second has a result still comes from the first.
func (s *scope) moved(machine *machinev1beta1.Machine, from, to *revision, back bool) *machinev1beta1.Machine {
	out := machine.DeepCopy()
	out.OwnerReferences = slices.DeleteFunc(out.OwnerReferences, func(owner metav1.OwnerReference) bool {
		return owner.UID == from.set.UID
	})
	out.OwnerReferences = append(out.OwnerReferences, *metav1.NewControllerRef(to.set,
		machinev1beta1.GroupVersion.WithKind(setKind)))
	out.Labels = withDifference(out.Labels, from.set.Spec.Template.Labels, to.set.Spec.Template.Labels)
	out.Spec.ProviderSpec = *to.set.Spec.Template.Spec.ProviderSpec.DeepCopy()
	delete(out.Annotations, v1beta1.CheckedGenerationAnnotation)
	origin := machine.Annotations[v1beta1.MovedFromAnnotation]
	switch {
	case back:
		delete(out.Annotations, v1beta1.MovedFromAnnotation)
		metav1.SetMetaDataAnnotation(&out.ObjectMeta, v1beta1.RefusalAnnotation, refusalTo(from.set.Name, upToDate(machine).Message))
	case origin == to.set.Name || s.named(origin) == nil:
		metav1.SetMetaDataAnnotation(&out.ObjectMeta, v1beta1.MovedFromAnnotation, from.set.Name)
	}
	return out
}
