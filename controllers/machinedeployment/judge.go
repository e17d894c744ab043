package machinedeployment

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/api/v1beta1"
)

// verdict is what is known of a Machine that changes in place.
type verdict int

const (
	// unmoved: it does not change.
	unmoved verdict = iota
	changing
	changed
	// refused: the plan needs another instance or would disrupt this one, which is as it was.
	refused
	failed
)

// verdictOf returns the verdict about a Machine's generation.
func verdictOf(machine *machinev1beta1.Machine) verdict {
	if machine.Annotations[v1beta1.MovedFromAnnotation] == "" {
		return unmoved
	}
	condition := upToDate(machine)
	checked := machine.Annotations[v1beta1.CheckedGenerationAnnotation] == strconv.FormatInt(machine.Generation, 10)
	switch {
	case !checked || condition == nil || condition.Status == corev1.ConditionUnknown:
		return changing
	case condition.Status == corev1.ConditionTrue:
		return changed
	case condition.Reason == string(machinev1beta1.UnsupportedChangeMachineError):
		return refused
	default:
		return failed
	}
}

// judge ends the changes in place that have a result: a Machine that has changed stays, and one whose
// plan was refused goes back.
type judge struct {
	writer
}

// Reconcile implements pipeline.Step.
func (j *judge) Reconcile(ctx context.Context, s *scope) (bool, error) {
	for _, r := range s.revisions {
		back := map[string][]*machinev1beta1.Machine{}
		for _, machine := range r.machines {
			switch verdictOf(machine) {
			case changed:
				if err := j.finish(ctx, s, machine); err != nil {
					return false, err
				}
			case refused:
				from := machine.Annotations[v1beta1.MovedFromAnnotation]
				back[from] = append(back[from], machine)
			}
		}
		for name, machines := range back {
			if err := j.refuse(ctx, s, r, s.named(name), machines); err != nil || s.wrote {
				return false, err
			}
		}
	}
	return !s.wrote, nil
}

func (j *judge) finish(ctx context.Context, s *scope, machine *machinev1beta1.Machine) error {
	if err := j.patch(ctx, s, machine, finished(machine)); err != nil {
		return fmt.Errorf("noting the result of the change of Machine %s: %w", machine.Name, err)
	}
	return nil
}

// finished returns a Machine whose change in place has a result.
func finished(machine *machinev1beta1.Machine) *machinev1beta1.Machine {
	out := machine.DeepCopy()
	for _, key := range []string{v1beta1.MovedFromAnnotation, v1beta1.CheckedGenerationAnnotation,
		v1beta1.FormerSpecAnnotation} {
		delete(out.Annotations, key)
	}
	return out
}

// refuse moves Machines back whose plans were refused, and notes at them why. The second one of a
// revision condemns all: the first may have been changed by hand. If their revision is gone, they stay
// with their error. So do those that began to change before their MachineSet was adopted, but they hold no slot.
func (j *judge) refuse(ctx context.Context, s *scope, to, from *revision, machines []*machinev1beta1.Machine) error {
	if from == nil {
		return nil
	}
	if from == to {
		return j.finish(ctx, s, machines[0])
	}
	before := slices.ContainsFunc(from.machines, func(m *machinev1beta1.Machine) bool { return refusalOf(m, to.set.Name) != "" })
	if refusalOf(from.set, to.set.Name) == "" && (before || len(machines) > 1) {
		return j.note(ctx, s, from, to, upToDate(machines[0]).Message)
	}
	if !from.settled() || !to.settled() {
		return nil
	}
	return j.transfer(ctx, s, to, from, machines, true)
}

// note writes why Machines of a revision cannot change to another one in place.
func (w writer) note(ctx context.Context, s *scope, from, to *revision, why string) error {
	noted := from.set.DeepCopy()
	metav1.SetMetaDataAnnotation(&noted.ObjectMeta, v1beta1.RefusalAnnotation, refusalTo(to.set.Name, why))
	if err := w.patch(ctx, s, from.set, noted); err != nil {
		return fmt.Errorf("noting at MachineSet %s that its Machines cannot change in place: %w", from.set.Name, err)
	}
	return nil
}

// maxRefusal bounds the text of a refusal.
const maxRefusal = 1024

// refusalTo returns the annotation about a refused change to a revision.
func refusalTo(revision, why string) string {
	if len(why) > maxRefusal {
		why = strings.ToValidUTF8(why[:maxRefusal], "") + "..."
	}
	return revision + " " + why
}

// refusalOf returns why a Machine or all of a MachineSet cannot change to a revision in place, or "".
func refusalOf(object client.Object, revision string) string {
	name, why, _ := strings.Cut(object.GetAnnotations()[v1beta1.RefusalAnnotation], " ")
	if name != revision {
		return ""
	}
	return why
}
