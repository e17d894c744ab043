//go:build e2e_jobs

package e2ejobs_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/hack/lab"
	"github.com/machine-iac/machine-iac-operator/test/apiproxy"
)

// A Job creates, changes and destroys each Machine, and no Job or Secret of a run stays.
func TestRunsInJobs(t *testing.T) {
	w := open(t)
	// No kubelet restarts a manager that loses its lease on a busy machine, so the lease is long.
	manager := w.startManager("--leader-elect-lease-duration=2m", "--leader-elect-renew-deadline=90s",
		"--leader-elect-retry-period=3s")

	w.step("Machines are made", func() {
		w.create("fleet", 3, credentials)
		w.until("three Machines are Running", w.settled(3))
		w.madeOnce(3)
	})
	w.step("nothing of a Job stays, and none has had an input", func() {
		w.until("there is no Job, Pod or Secret of a run", w.nothingLeft)
		if w.seen.jobs() < 3 {
			w.Errorf("%d Jobs were made for three Machines", w.seen.jobs())
		}
		w.seen.check(w.T)
	})
	w.step("no engine ran beside the Jobs", func() {
		if found := w.inManager(manager); len(found) > 0 {
			w.Errorf("the work folder of the manager has %v", found)
		}
	})
	w.step("a Machine is changed in place", func() {
		w.patch("fleet", map[string]any{"labels": map[string]any{"example.com/team": "changed"}})
		w.until("all Nodes have the label", w.labelled("example.com/team", "changed", 3))
		w.until("three Machines are Running", w.settled(3))
		w.madeOnce(3)
	})
	w.step("Machines are destroyed", func() {
		w.scale("fleet", 0)
		w.until("no Machine is left", w.settled(0))
		w.until("there is no Job, Pod or Secret of a run", w.nothingLeft)
	})
}

// If a run ends before its engine saves the new instance, the next run adopts the instance: no Machine has two.
func TestARunIsCutOff(t *testing.T) {
	w := open(t)
	manager := w.startManager()
	for _, tc := range []struct {
		name string
		cut  func(job *batchv1.Job)
	}{
		{"its Job is deleted", func(job *batchv1.Job) {
			w.must(w.client.Delete(w.Context(), job, client.PropagationPolicy(metav1.DeletePropagationBackground)))
		}},
		{"its Pod is killed", func(job *batchv1.Job) { w.signal(job, syscall.SIGKILL) }},
		{"its Pod is evicted at once", func(job *batchv1.Job) {
			pod := w.podOf(job)
			w.must(w.client.Delete(w.Context(), pod, client.GracePeriodSeconds(1)))
		}},
		{"the manager is killed", func(*batchv1.Job) {
			w.must(manager.Kill())
			again, err := manager.Restart(w.Context())
			w.must(err)
			manager, w.leads = again, again
		}},
	} {
		name := strings.ReplaceAll(strings.ToLower(tc.name), " ", "-")
		w.step(tc.name, func() {
			held := w.proxy.Hold(apiproxy.BeforeResponse, apiproxy.NodesMade)
			defer held.Lift()
			w.create(name, 1, w.proxyCredentials())
			w.reached(held) // the Node exists, but the engine does not know it
			job := w.onlyJob()
			tc.cut(job)
			w.until("its Pod has ended", w.ended(job))
			held.Lift()
			w.until("the Machine is Running", w.settled(1))
			w.madeOnce(1)
			w.scale(name, 0)
			w.until("no Machine is left", w.settled(0))
			w.nodes.Forget()
		})
	}
}

// ended returns a check that a Job's Pod or its process is gone.
func (w *world) ended(job *batchv1.Job) func(context.Context) error {
	return func(ctx context.Context) error {
		var pods corev1.PodList
		if err := w.client.List(ctx, &pods, client.InNamespace(lab.Namespace),
			client.MatchingLabels{"machine-iac.io/run": job.Labels["machine-iac.io/run"]}); err != nil {
			return err
		}
		for _, pod := range pods.Items {
			if pod.Status.Phase == corev1.PodRunning || pod.Status.Phase == corev1.PodPending {
				return fmt.Errorf("Pod %s is %s", pod.Name, pod.Status.Phase)
			}
		}
		return nil
	}
}

// madeOnce checks that count Machines had one instance each.
func (w *world) madeOnce(count int) {
	w.Helper()
	made := w.nodes.ByMachine()
	for machine, uids := range made {
		if len(uids) != 1 {
			w.Errorf("Machine %s has had the instances %v", machine, uids)
		}
	}
	if len(made) != count {
		w.Errorf("%d Machines have had instances, not %d", len(made), count)
	}
}

// onlyJob returns the only Job.
func (w *world) onlyJob() *batchv1.Job {
	w.Helper()
	var found batchv1.JobList
	w.must(w.client.List(w.Context(), &found, client.InNamespace(lab.Namespace)))
	if len(found.Items) != 1 {
		w.Fatalf("there are %d Jobs, not one", len(found.Items))
	}
	return &found.Items[0]
}

// seen are all Jobs and Secrets of runs that ever existed.
type seen struct {
	mu      sync.Mutex
	made    map[types.UID]batchv1.Job
	secrets map[types.UID]corev1.Secret
}

func (s *seen) add(jobs []batchv1.Job, secrets []corev1.Secret) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, job := range jobs {
		s.made[job.UID] = job
	}
	for _, secret := range secrets {
		s.secrets[secret.UID] = secret
	}
}

// jobs returns the number of Jobs.
func (s *seen) jobs() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.made)
}

// check fails the test for forbidden content of a Job or its Secret.
func (s *seen) check(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	wanted := []string{"address", "certificate.pem", "password", "run"}
	for _, secret := range s.secrets {
		var keys []string
		for key := range secret.Data {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		if !slices.Equal(keys, wanted) {
			t.Errorf("Secret %s has %v, want %v", secret.Name, keys, wanted)
		}
		if !slices.ContainsFunc(secret.OwnerReferences,
			func(o metav1.OwnerReference) bool { return o.Kind == "Job" && o.Name == secret.Name }) {
			t.Errorf("Secret %s belongs to no Job", secret.Name)
		}
	}
	for _, job := range s.made {
		pod := job.Spec.Template.Spec
		switch {
		case pod.AutomountServiceAccountToken == nil || *pod.AutomountServiceAccountToken:
			t.Errorf("Job %s gives its Pod a token for the API server", job.Name)
		case len(pod.Containers[0].Env) > 0:
			t.Errorf("Job %s has the environment %v", job.Name, pod.Containers[0].Env)
		case *job.Spec.BackoffLimit != 0:
			t.Errorf("Job %s is tried again", job.Name)
		}
	}
}
