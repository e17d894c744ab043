package jobs_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/actuators/jobs"
	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
)

// jobsOf returns the Jobs of a namespace.
func (b *bench) jobsOf() []batchv1.Job {
	b.Helper()
	var found batchv1.JobList
	must(b.T, plane.Client.List(b.Context(), &found, client.InNamespace(b.namespace)))
	return found.Items
}

// oneJob waits for the only Job.
func (b *bench) oneJob() *batchv1.Job {
	b.Helper()
	for range 200 {
		if found := b.jobsOf(); len(found) == 1 {
			return &found[0]
		}
		time.Sleep(50 * time.Millisecond)
	}
	b.Fatal("no Job is made")
	return nil
}

func TestAJobIsMadeSafely(t *testing.T) {
	b := newBench(t)
	b.node = &node{bench: b, fails: true}
	with := b.inJobs(func(o *jobs.Options) { o.Template.Queue = "runs" })
	ctx, cancel := context.WithCancel(t.Context())
	opened := make(chan error, 1)
	run := b.run("safe", b.lock("safe"), nil)
	go func() {
		_, err := with.Open(ctx, run)
		opened <- err
	}()
	job := b.oneJob()
	var secret corev1.Secret
	for apierrors.IsNotFound(plane.Client.Get(t.Context(), client.ObjectKeyFromObject(job), &secret)) {
		time.Sleep(20 * time.Millisecond)
	}
	if !slices.ContainsFunc(secret.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == job.UID }) || !ptr.Deref(secret.Immutable, false) {
		t.Errorf("the Secret belongs to %v and is immutable: %v", secret.OwnerReferences, secret.Immutable)
	}
	for _, content := range secret.Data {
		if strings.Contains(string(content), b.token) {
			t.Error("the Secret has a credential")
		}
	}
	pod, container := job.Spec.Template.Spec, job.Spec.Template.Spec.Containers[0]
	switch {
	case ptr.Deref(pod.AutomountServiceAccountToken, true):
		t.Error("the Pod has a token for the API server")
	case !ptr.Deref(container.SecurityContext.ReadOnlyRootFilesystem, false) || ptr.Deref(container.SecurityContext.AllowPrivilegeEscalation, true) || !ptr.Deref(pod.SecurityContext.RunAsNonRoot, false):
		t.Errorf("the Pod is not confined: %+v", container.SecurityContext)
	case *job.Spec.BackoffLimit != 0 || pod.RestartPolicy != corev1.RestartPolicyNever:
		t.Error("the run is tried again by the Job")
	case !ptr.Deref(job.Spec.Suspend, false) || job.Labels[jobs.LabelQueue] != "runs":
		t.Errorf("the Job is not for the queue: suspended %v, labels %v", job.Spec.Suspend, job.Labels)
	}
	time.Sleep(500 * time.Millisecond) // the runner knows that it is made
	cancel()
	if err := <-opened; failure.ClassOf(err) != failure.Interrupted || !strings.Contains(err.Error(), `is in queue "runs": Kueue is not installed`) {
		t.Errorf("a run that waits in a queue until it is stopped fails with %v", err)
	}
	if left := b.jobsOf(); len(left) > 0 {
		t.Errorf("the Job is left: %v", left)
	}
}

func TestWhatAJobWaitsForIsReported(t *testing.T) {
	b := newBench(t)
	b.node = &node{bench: b, fails: true}
	with := b.inJobs(func(o *jobs.Options) { o.Template.Queue = "runs" })
	ctx, cancel := context.WithCancel(t.Context())
	opened, heard := make(chan error, 1), make(chan string, 100)
	run := b.run("waiting", b.lock("waiting"), nil)
	run.Waits = func(what string) { heard <- what }
	go func() {
		_, err := with.Open(ctx, run)
		opened <- err
	}()
	job := b.oneJob()
	if what := <-heard; what != "Job "+job.Name+` is in queue "runs": Kueue is not installed, and nothing else admits the Job` {
		t.Errorf("it waits for %q", what)
	}
	must(t, plane.Client.Patch(t.Context(), job, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"suspend":false}}`))))
	for <-heard != "" {
	}
	cancel()
	if err := <-opened; failure.ClassOf(err) != failure.Interrupted {
		t.Errorf("it fails with %v", err)
	}
	if what := <-heard; what != "" {
		t.Errorf("a run that has ended waits for %q", what)
	}
}

func TestAJobThatVanishesBeforeItsRunBeginsHasDoneNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		vanish func(*bench, *batchv1.Job)
		want   string
	}{
		"deleted": {func(b *bench, job *batchv1.Job) {
			must(b.T, plane.Client.Delete(b.Context(), job, client.PropagationPolicy("Background")))
		}, "was deleted"},
		"failed": {func(b *bench, job *batchv1.Job) {
			now := job.CreationTimestamp
			job.Status = batchv1.JobStatus{StartTime: &now, Failed: 1, Conditions: []batchv1.JobCondition{
				{Type: batchv1.JobFailureTarget, Status: corev1.ConditionTrue, Reason: "BackoffLimitExceeded", LastTransitionTime: now},
				{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: "BackoffLimitExceeded", Message: "it has failed", LastTransitionTime: now},
			}}
			must(b.T, plane.Client.Status().Update(b.Context(), job))
		}, "has ended: BackoffLimitExceeded: it has failed"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.node = &node{bench: b, fails: true}
			with := b.inJobs()
			opened := make(chan error, 1)
			run := b.run("vanishing", b.lock("vanishing"), nil)
			go func() {
				_, err := with.Open(t.Context(), run)
				opened <- err
			}()
			tc.vanish(b, b.oneJob())
			if err := <-opened; failure.ClassOf(err) != failure.Transient || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("the run fails with %v (%s), want %q", err, failure.ClassOf(err), tc.want)
			}
		})
	}
}

func TestALeaderDeletesTheJobsOfThoseBeforeIt(t *testing.T) {
	b := newBench(t)
	b.node = &node{bench: b, fails: true}
	first := b.inJobs()
	ctx, cancel := context.WithCancel(t.Context())
	opened := make(chan error, 1)
	run := b.run("earlier", b.lock("earlier"), nil)
	go func() {
		_, err := first.Open(ctx, run)
		opened <- err
	}()
	earlier := b.oneJob()
	b.inJobs(func(o *jobs.Options) { o.Manager = "manager-2" })
	if err := plane.Client.Get(t.Context(), client.ObjectKeyFromObject(earlier), &batchv1.Job{}); !apierrors.IsNotFound(err) {
		t.Errorf("the Job of the manager before is there: %v", err)
	}
	cancel()
	if err := <-opened; err == nil {
		t.Error("a run of the manager before is open")
	}
}

func TestAStateThatCannotBeSavedIsKept(t *testing.T) {
	b := newBench(t)
	b.node = &node{bench: b, fails: true}
	dir := t.TempDir()
	in := func(o *jobs.Options) { o.Dir = dir }
	with := b.inJobs(in)
	if err := jobs.Keep(with, b.run("kept", nil, nil), []byte("state")); err != nil {
		t.Fatal(err)
	}
	again := b.inJobs(in, func(o *jobs.Options) { o.Manager = "manager-2" })
	left, err := again.AbandonedRuns()
	if err != nil || len(left) != 1 || left[0].ID() != "kept-run" || string(left[0].Identity()) != `{"uid":"kept"}` {
		t.Fatalf("the abandoned runs of the next process are %v, %v", left, err)
	}
	if unsaved, err := left[0].Unsaved(nil, true); err != nil || string(unsaved) != "state" {
		t.Errorf("the state is %q, %v", unsaved, err)
	}
	must(t, again.Discard("kept-run"))
	if left, _ := again.AbandonedRuns(); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}
