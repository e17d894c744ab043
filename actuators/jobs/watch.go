package jobs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// firstRead and lastRead are how often a Job is read whose process has not connected: less often, the longer that takes.
	firstRead = time.Second
	lastRead  = 10 * time.Second
	// podRead is how often a Pod is read whose process is lost.
	podRead = 500 * time.Millisecond
)

// untilConnected waits for the process of the Job. An error says what keeps it.
func (b *begun) untilConnected(ctx context.Context) error {
	for pause := firstRead; ; pause = min(2*pause, lastRead) {
		select {
		case <-b.process.Connected():
			return nil
		case <-ctx.Done():
			lasting, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
			defer cancel()
			return fmt.Errorf("%w, while Job %s had no process yet: %s", context.Cause(ctx), b.job.Name, b.hindrance(lasting))
		case <-b.runner.options.Clock.After(pause):
		}
		job, err := b.read(ctx)
		if err != nil {
			return err
		}
		b.report(ctx, job)
	}
}

// report says what a Job that was not admitted waits for. A Job that was is not waited for but for a node, which counts as time of the run.
func (b *begun) report(ctx context.Context, job *batchv1.Job) {
	switch {
	case b.waits == nil || job == nil:
	case suspended(job):
		b.waits(b.inQueue(ctx))
	default:
		b.waits("")
	}
}

func suspended(job *batchv1.Job) bool { return job.Spec.Suspend != nil && *job.Spec.Suspend }

// read returns the Job, nil where it cannot be read now. An error says why it runs no more.
func (b *begun) read(ctx context.Context) (*batchv1.Job, error) {
	var job batchv1.Job
	err := b.runner.options.Client.Get(ctx, client.ObjectKeyFromObject(b.job), &job)
	switch {
	case apierrors.IsNotFound(err) || err == nil && job.UID != b.job.UID:
		return nil, fmt.Errorf("its Job %s was deleted", b.job.Name)
	case err != nil:
		b.runner.options.Logger.V(1).Info("Reading the Job of a run failed", "job", b.job.Name, "error", err.Error())
		return nil, nil
	case !job.DeletionTimestamp.IsZero():
		return nil, fmt.Errorf("its Job %s is being deleted", b.job.Name)
	}
	for _, condition := range job.Status.Conditions {
		if condition.Status == corev1.ConditionTrue && (condition.Type == batchv1.JobFailed || condition.Type == batchv1.JobComplete) {
			return nil, fmt.Errorf("its Job %s has ended: %s", b.job.Name, strings.Join([]string{condition.Reason, condition.Message, b.hindrance(ctx)}, ": "))
		}
	}
	return &job, nil
}

// hindrance returns what is known of the Pod of a Job that does not run, for people.
func (b *begun) hindrance(ctx context.Context) string {
	pods, err := b.pods(ctx)
	switch {
	case err != nil:
		return err.Error()
	case len(pods) == 0 && suspended(b.job):
		return b.inQueue(ctx)
	case len(pods) == 0:
		return "it has no Pod; see the events of the Job"
	}
	pod := &pods[0]
	for _, container := range pod.Status.ContainerStatuses {
		if waiting := container.State.Waiting; waiting != nil {
			return fmt.Sprintf("Pod %s waits: %s %s", pod.Name, waiting.Reason, waiting.Message)
		}
		if ended := container.State.Terminated; ended != nil {
			return fmt.Sprintf("Pod %s has ended with %d: %s %s", pod.Name, ended.ExitCode, ended.Reason, strings.TrimSpace(ended.Message))
		}
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Status == corev1.ConditionFalse && condition.Type == corev1.PodScheduled {
			return fmt.Sprintf("Pod %s is not scheduled: %s", pod.Name, condition.Message)
		}
	}
	return strings.TrimSpace(fmt.Sprintf("Pod %s is %s %s %s", pod.Name, pod.Status.Phase, pod.Status.Reason, pod.Status.Message))
}

func (b *begun) pods(ctx context.Context) ([]corev1.Pod, error) {
	var found corev1.PodList
	err := b.runner.options.Client.List(ctx, &found, client.InNamespace(b.job.Namespace), client.MatchingLabels{batchv1.JobNameLabel: b.job.Name})
	if err != nil {
		return nil, fmt.Errorf("listing the Pods of Job %s: %w", b.job.Name, err)
	}
	return found.Items, nil
}

// lost waits until the engine of a lost process can act no more: its Pod says that it has ended, or the time is over for which it may live without
// hearing that its manager leads. It returns the cause with what is known of the Job.
func (b *begun) lost(cause error) error {
	o := b.runner.options
	b.process.Close()
	until := b.process.Led().Add(o.Life + o.Grace + time.Second)
	ctx, cancel := context.WithTimeout(context.Background(), until.Sub(o.Clock.Now())+writeTimeout) //nolint:forbidigo // the run's may have ended
	defer cancel()
	job, over := b.read(ctx)
	if job != nil && suspended(job) {
		over = fmt.Errorf("it has lost its place: %s", b.inQueue(ctx))
	}
	why := errors.Join(cause, over)
	if err := b.runner.remove(ctx, b.job); err != nil {
		o.Logger.Error(err, "Deleting the Job of a run whose process is lost")
	}
	for o.Clock.Now().Before(until) {
		if ended, how := b.ended(ctx); ended {
			return errors.Join(why, how)
		}
		<-o.Clock.After(podRead)
	}
	return why
}

// ended reports whether the kubelet says that the process of the Job has ended. That there is no Pod does not say it: one may be removed while its
// node cannot be reached.
func (b *begun) ended(ctx context.Context) (bool, error) {
	pods, err := b.pods(ctx)
	if err != nil || len(pods) != 1 || len(pods[0].Status.ContainerStatuses) != 1 {
		return false, nil
	}
	how := pods[0].Status.ContainerStatuses[0].State.Terminated
	if how == nil {
		return false, nil
	}
	return true, fmt.Errorf("its Pod %s has ended with %d: %s", pods[0].Name, how.ExitCode, strings.TrimSpace(how.Reason+" "+pods[0].Status.Message))
}
