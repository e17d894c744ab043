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
	// firstRead and lastRead bound the interval at which a Job is read until its process connects.
	// The interval grows over time.
	firstRead = time.Second
	lastRead  = 10 * time.Second
	// podRead is the interval at which the Pod of a lost process is read.
	podRead = 500 * time.Millisecond
)

// untilConnected blocks until the Job's process connects, or returns why it cannot.
func (b *begun) untilConnected(ctx context.Context) error {
	for pause := firstRead; ; pause = min(2*pause, lastRead) {
		select {
		case <-b.process.Connected():
			return nil
		case <-ctx.Done():
			lasting, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
			defer cancel()
			return fmt.Errorf("%w before Job %s had a process: %s", context.Cause(ctx), b.job.Name, b.hindrance(lasting))
		case <-b.runner.options.Clock.After(pause):
		}
		job, err := b.read(ctx)
		if err != nil {
			return err
		}
		b.report(ctx, job)
	}
}

// report reports what a suspended Job waits for. An admitted Job waits only for a node, which
// counts as run time.
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

// read returns the Job, or nil if it cannot be read now. An error says why it no longer runs.
func (b *begun) read(ctx context.Context) (*batchv1.Job, error) {
	var job batchv1.Job
	err := b.runner.options.Client.Get(ctx, client.ObjectKeyFromObject(b.job), &job)
	switch {
	case apierrors.IsNotFound(err) || err == nil && job.UID != b.job.UID:
		return nil, fmt.Errorf("the run's Job %s was deleted", b.job.Name)
	case err != nil:
		b.runner.options.Logger.V(1).Info("Cannot read the Job of a run", "job", b.job.Name, "error", err.Error())
		return nil, nil
	case !job.DeletionTimestamp.IsZero():
		return nil, fmt.Errorf("the run's Job %s is being deleted", b.job.Name)
	}
	for _, condition := range job.Status.Conditions {
		if condition.Status == corev1.ConditionTrue && (condition.Type == batchv1.JobFailed ||
			condition.Type == batchv1.JobComplete) {
			return nil, fmt.Errorf("the run's Job %s has ended: %s", b.job.Name,
				strings.Join([]string{condition.Reason, condition.Message, b.hindrance(ctx)}, ": "))
		}
	}
	return &job, nil
}

// hindrance describes, for people, the Pod of a Job that does not run.
func (b *begun) hindrance(ctx context.Context) string {
	pods, err := b.pods(ctx)
	switch {
	case err != nil:
		return err.Error()
	case len(pods) == 0 && suspended(b.job):
		return b.inQueue(ctx)
	case len(pods) == 0:
		return "the Job has no Pod; see its events"
	}
	pod := &pods[0]
	for _, container := range pod.Status.ContainerStatuses {
		if waiting := container.State.Waiting; waiting != nil {
			return fmt.Sprintf("Pod %s waits: %s %s", pod.Name, waiting.Reason, waiting.Message)
		}
		if ended := container.State.Terminated; ended != nil {
			return fmt.Sprintf("Pod %s has ended with %d: %s %s", pod.Name, ended.ExitCode, ended.Reason,
				strings.TrimSpace(ended.Message))
		}
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Status == corev1.ConditionFalse && condition.Type == corev1.PodScheduled {
			return fmt.Sprintf("Pod %s is not scheduled: %s", pod.Name, condition.Message)
		}
	}
	return strings.TrimSpace(fmt.Sprintf("Pod %s is %s %s %s", pod.Name, pod.Status.Phase, pod.Status.Reason,
		pod.Status.Message))
}

func (b *begun) pods(ctx context.Context) ([]corev1.Pod, error) {
	var found corev1.PodList
	err := b.runner.options.Client.List(ctx, &found, client.InNamespace(b.job.Namespace),
		client.MatchingLabels{batchv1.JobNameLabel: b.job.Name})
	if err != nil {
		return nil, fmt.Errorf("listing the Pods of Job %s: %w", b.job.Name, err)
	}
	return found.Items, nil
}

// lost blocks until the engine of a lost process can no longer act. Either its Pod reports that it
// has ended, or its time to live without a leader has expired. It returns the cause with details of
// the Job.
func (b *begun) lost(cause error) error {
	o := b.runner.options
	b.process.Close()
	until := b.process.Led().Add(o.Life + o.Grace + time.Second)
	//nolint:forbidigo // the run's context may have ended
	ctx, cancel := context.WithTimeout(context.Background(), until.Sub(o.Clock.Now())+writeTimeout)
	defer cancel()
	job, over := b.read(ctx)
	if job != nil && suspended(job) {
		over = fmt.Errorf("the Job was preempted: %s", b.inQueue(ctx))
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

// ended reports whether the kubelet says that the Job's process has ended. A missing Pod proves
// nothing: it may be removed while its node is unreachable.
func (b *begun) ended(ctx context.Context) (bool, error) {
	pods, err := b.pods(ctx)
	if err != nil || len(pods) != 1 || len(pods[0].Status.ContainerStatuses) != 1 {
		return false, nil
	}
	how := pods[0].Status.ContainerStatuses[0].State.Terminated
	if how == nil {
		return false, nil
	}
	return true, fmt.Errorf("the run's Pod %s has ended with %d: %s", pods[0].Name, how.ExitCode,
		strings.TrimSpace(how.Reason+" "+pods[0].Status.Message))
}
