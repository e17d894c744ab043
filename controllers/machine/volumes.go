package machine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
	"github.com/machine-iac/machine-iac-operator/internal/cluster/events"
)

const (
	// VolumesDetached reports whether all pod volumes are detached from the Node of a Machine that
	// is being deleted. It is set only if the deletion of the instance has to wait for volumes.
	VolumesDetached machinev1beta1.ConditionType = "VolumesDetached"

	// volumesAttached surfaces on VolumesDetached while the deletion waits.
	volumesAttached = "VolumesAttached"
	// volumeWaitEnded surfaces when the deletion continues because the module's time limit has
	// expired.
	volumeWaitEnded = "WaitEnded"
	// nodeUnreachable surfaces when the deletion continues because the Node's kubelet, which would
	// unmount the volumes, is unreachable.
	nodeUnreachable = "NodeUnreachable"

	// volumeInterval is how often the Node is read while waiting.
	volumeInterval = 10 * time.Second
	// maxVolumes is how many volumes a message names.
	maxVolumes = 5
)

// waitForVolumes waits, after the drain, until pod volumes are detached from the Machine's Node, so
// that they are not detached from an instance that is being deleted. The actuator limits the wait.
// There is none if the drain was skipped or the kubelet is unreachable: the actuator then keeps the
// volumes that it finds. Pods of such a Node are not deleted here, because they may still run.
type waitForVolumes struct {
	waiter   actuators.VolumeWaiter
	reader   client.Reader
	recorder events.Recorder
	clock    clock.PassiveClock
}

// newVolumeWait returns the step. It is a no-op if the actuator has no volume wait.
func newVolumeWait(options *Options) *waitForVolumes {
	waiter, _ := options.Actuator.(actuators.VolumeWaiter)
	return &waitForVolumes{waiter: waiter, reader: options.Reader, recorder: options.Recorder, clock: options.Clock}
}

// Reconcile implements pipeline.Step.
func (v *waitForVolumes) Reconcile(ctx context.Context, s *scope) (bool, error) {
	limit := v.limit(s.machine)
	if limit == 0 {
		return true, nil
	}
	node, err := v.node(ctx, s.machine.Status.NodeRef)
	if err != nil {
		return false, err
	}
	if node == nil || len(node.Status.VolumesAttached) == 0 {
		v.detached(s)
		return true, nil
	}
	now, attached := v.clock.Now(), fmt.Sprintf("Node %s has volumes attached: %s", node.Name, volumeNames(node))
	until := v.begun(s.machine).Add(limit)
	switch {
	case unreachable(node):
		v.report(s, nodeUnreachable,
			attached+". Its kubelet is unreachable, so that nothing would detach them: deleting the instance; they are "+
				"detached once it has stopped", volumesStay)
		return true, nil
	case !now.Before(until):
		v.report(s, volumeWaitEnded,
			fmt.Sprintf("%s, %s after the drain: deleting the instance; they are detached once it has stopped", attached,
				limit), volumesStay)
		return true, nil
	}
	v.report(s, volumesAttached,
		fmt.Sprintf("%s. The instance is deleted once they are detached, or at %s. List them with 'kubectl get "+
			"volumeattachments'; a pod on the Node that "+
			"uses one keeps it attached. To stop waiting, set the annotation %s", attached, until.UTC().Format(time.RFC3339),
			machineapi.ExcludeDrainAnnotation), waitsForVolumes)
	s.RequeueAfter(min(volumeInterval, until.Sub(now)))
	return false, nil
}

// limit returns how long the Machine waits for volumes; zero for not at all.
func (v *waitForVolumes) limit(machine *machinev1beta1.Machine) time.Duration {
	_, skipped := machine.Annotations[machineapi.ExcludeDrainAnnotation]
	if v.waiter == nil || skipped || machine.Status.NodeRef == nil {
		return 0
	}
	return v.waiter.VolumeWait(machine)
}

// node reads the Node from the API server, not from a cache that may lag. It returns nil if the
// Node is gone or replaced.
func (v *waitForVolumes) node(ctx context.Context, ref *corev1.ObjectReference) (*corev1.Node, error) {
	node := &corev1.Node{}
	if err := v.reader.Get(ctx, client.ObjectKey{Name: ref.Name}, node); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return nil, nil
		}
		return nil, fmt.Errorf("reading Node %s for the volumes that are attached to it: %w", ref.Name, err)
	}
	if ref.UID != "" && ref.UID != node.UID {
		return nil, nil
	}
	return node, nil
}

// begun returns when the wait began: at the end of the drain, as recorded by the drain controller.
func (v *waitForVolumes) begun(machine *machinev1beta1.Machine) time.Time {
	if drained := machineapi.FindCondition(machine.Status.Conditions, machinev1beta1.MachineDrained); drained != nil {
		return drained.LastTransitionTime.Time
	}
	return v.clock.Now()
}

// report sets the condition. The event is sent once for a reason.
func (v *waitForVolumes) report(s *scope, reason, message string,
	event func(*machinev1beta1.Machine, string) events.Event) {
	before := machineapi.FindCondition(s.machine.Status.Conditions, VolumesDetached)
	if before == nil || before.Reason != reason {
		event(s.original, message).Send(v.recorder)
	}
	wanted := condition(VolumesDetached, corev1.ConditionFalse, reason, message)
	if reason == volumesAttached {
		wanted.Severity = machinev1beta1.ConditionSeverityInfo
	}
	setCondition(s.machine, wanted, v.clock.Now())
}

// detached reports the end of a wait.
func (v *waitForVolumes) detached(s *scope) {
	if machineapi.FindCondition(s.machine.Status.Conditions, VolumesDetached) != nil {
		setCondition(s.machine, condition(VolumesDetached, corev1.ConditionTrue, "", ""), v.clock.Now())
	}
}

// unreachable reports whether the Node's kubelet has stopped reporting.
func unreachable(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionUnknown
	})
}

// volumeNames lists the first volumes by name, and counts the others.
func volumeNames(node *corev1.Node) string {
	var names []string
	for _, volume := range node.Status.VolumesAttached {
		names = append(names, string(volume.Name))
	}
	slices.Sort(names)
	if len(names) > maxVolumes {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxVolumes], ", "), len(names)-maxVolumes)
	}
	return strings.Join(names, ", ")
}
