package machineset

import (
	"context"
	"fmt"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/machine-iac/machine-iac-operator/api/v1beta1"
	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
	"github.com/machine-iac/machine-iac-operator/controllers/pipeline"
)

// conditionHeld is True while a MachineDeployment holds the MachineSet and does not control it.
const conditionHeld machinev1beta1.ConditionType = "Held"

// explainHold sets the condition Held. Only a MachineDeployment's controller ends a hold, and there may be
// none.
type explainHold struct {
	clock clock.PassiveClock
}

// Reconcile implements pipeline.Step.
func (e *explainHold) Reconcile(_ context.Context, s *scope) (bool, error) {
	status := &s.set.Status
	if metav1.GetControllerOfNoCopy(s.set) != nil || !held(s.set) {
		status.Conditions = machineapi.WithoutCondition(status.Conditions, conditionHeld)
		return true, nil
	}
	status.Conditions = machineapi.WithCondition(status.Conditions, machinev1beta1.Condition{
		Type: conditionHeld, Status: corev1.ConditionTrue, Reason: "HeldByMachineDeployment",
		Message: fmt.Sprintf("Creates and deletes no Machines: MachineDeployment %s holds it without controlling it. If "+
			"the hold does not end, remove the annotation %s", s.set.Annotations[v1beta1.HoldAnnotation], v1beta1.HoldAnnotation),
	}, e.clock.Now())
	return true, nil
}

// readLive ends the reconcile if the number of replicas is right. Otherwise it reads the MachineSet
// and the replicas from the API server, so that scaling never relies on a lagging cache. That cache
// may lack Machines of an earlier process, or the deletion or annotation that the choice depends
// on. Machines that this process has just created or deleted are waited for, since a request whose
// response was lost may still take effect. The MachineSet is read last: if a MachineDeployment moved
// Machines while they were listed, the MachineSet is held, or has another generation.
type readLive struct {
	reader   client.Reader
	inFlight *inFlight
}

// Reconcile implements pipeline.Step.
func (l *readLive) Reconcile(ctx context.Context, s *scope) (bool, error) {
	wait := l.inFlight.observe(s.set, s.machines, s.replicas)
	if s.surplus() == 0 || held(s.set) {
		return false, nil
	}
	if wait > 0 {
		log.FromContext(ctx).V(1).Info("Waiting for the cache to show Machines created or deleted before", "wait", wait)
		s.RequeueAfter(wait)
		return false, nil
	}
	machines := &machinev1beta1.MachineList{}
	if err := l.reader.List(ctx, machines, client.InNamespace(s.set.Namespace),
		client.MatchingLabelsSelector{Selector: s.selector}); err != nil {
		return false, fmt.Errorf("listing Machines at the API server: %w", err)
	}
	set, err := liveSet(ctx, l.reader, s.set)
	if err != nil {
		return false, err
	}
	live := sortClaims(s.set.UID, s.selector, pointers(machines.Items))
	if set == nil || set.Generation != s.set.Generation || v1beta1.SurgeOf(set) != v1beta1.SurgeOf(s.set) || held(set) ||
		len(live.adopt) > 0 {
		s.RequeueAfter(pipeline.ConflictRetry) // the cache is about to show it
		return false, nil
	}
	l.inFlight.forget(keyOf(s.set))
	s.replicas = live.replicas
	return true, nil
}

// liveSet returns the MachineSet from the API server. It returns nil if the MachineSet is gone,
// being deleted, managed by another API, or replaced.
func liveSet(ctx context.Context, reader client.Reader,
	set *machinev1beta1.MachineSet) (*machinev1beta1.MachineSet, error) {
	live := &machinev1beta1.MachineSet{}
	err := reader.Get(ctx, keyOf(set), live)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("getting the MachineSet from the API server: %w", err)
	}
	ours := machineapi.AuthorityOfMachineSet(live).IsMachineAPI()
	if err != nil || live.UID != set.UID || !live.DeletionTimestamp.IsZero() || !ours {
		return nil, nil
	}
	return live, nil
}

// held reports whether a MachineDeployment moves Machines from or to the MachineSet. Meanwhile it
// creates and deletes none. That also holds if the MachineDeployment was deleted and left it as an
// orphan: the MachineDeployment's controller ends the hold.
func held(set *machinev1beta1.MachineSet) bool {
	name := set.Annotations[v1beta1.HoldAnnotation]
	owner := metav1.GetControllerOfNoCopy(set)
	if owner == nil {
		return name != ""
	}
	return owner.Kind == v1beta1.MachineDeploymentKind && groupOf(owner.APIVersion) == v1beta1.GroupVersion.Group &&
		name == owner.Name
}

func pointers(machines []machinev1beta1.Machine) []*machinev1beta1.Machine {
	out := make([]*machinev1beta1.Machine, 0, len(machines))
	for i := range machines {
		out = append(out, &machines[i])
	}
	return out
}
