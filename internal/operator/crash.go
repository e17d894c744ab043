package operator

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/internal/operator/operands"
)

// crashLoop is how long a container must have run for the kubelet to reset its backoff.
const crashLoop = 10 * time.Minute

// stuckReasons are why a container waits until somebody changes something.
var stuckReasons = []string{"ImagePullBackOff", "InvalidImageName", "CreateContainerConfigError",
	"CreateContainerError"}

// crashError is why Pods of the controllers do not start.
type crashError struct{ message string }

func (e *crashError) Error() string { return e.message }

// crash returns a crashError if a Pod of the controllers does not start, or nil.
func (r *Reconciler) crash(ctx context.Context) error {
	pods := &corev1.PodList{}
	if err := r.live.List(ctx, pods, client.InNamespace(r.options.Namespace),
		client.MatchingLabels(operands.ControllerLabels)); err != nil {
		return fmt.Errorf("listing the controllers' Pods: %w", err)
	}
	for _, pod := range pods.Items {
		if pod.DeletionTimestamp != nil {
			continue
		}
		for _, one := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
			if why := crashed(one); why != "" {
				return &crashError{fmt.Sprintf("container %s of Pod %s/%s %s", one.Name, pod.Namespace, pod.Name, why)}
			}
		}
	}
	return nil
}

// crashed returns why a container does not start, or "". One restart does not count.
func crashed(one corev1.ContainerStatus) string {
	if waits := one.State.Waiting; waits != nil && slices.Contains(stuckReasons, waits.Reason) {
		return fmt.Sprintf("waits with %s: %s", waits.Reason, waits.Message)
	}
	ended := one.State.Terminated
	if ended == nil {
		ended = one.LastTerminationState.Terminated
	}
	if one.Ready || one.RestartCount < 2 || ended == nil || ended.ExitCode == 0 ||
		ended.FinishedAt.Sub(ended.StartedAt.Time) >= crashLoop {
		return ""
	}
	why := fmt.Sprintf("has crashed %d times, last with exit code %d", one.RestartCount, ended.ExitCode)
	if ended.Reason != "" && ended.Reason != "Error" {
		why += " (" + ended.Reason + ")"
	}
	lines := strings.Split(strings.TrimSpace(ended.Message), "\n")
	if last := strings.TrimSpace(lines[len(lines)-1]); last != "" {
		why += ": " + last
	}
	return why
}
