//go:build e2e_jobs

package e2ejobs_test

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/hack/lab"
	"github.com/machine-iac/machine-iac-operator/test/apiproxy"
	"github.com/machine-iac/machine-iac-operator/test/observe"
)

const (
	waitsInQueue = `is in queue "` + queue + `"`
	runTimeout   = time.Minute
)

// Kueue admits runs up to its quota, and each waiting Machine reports why.
func TestRunsAreQueued(t *testing.T) {
	w := open(t)
	w.startKueue()
	admitted := w.watchAdmitted()
	w.startManager("--run-queue="+queue, "--run-cpu=250m", "--run-memory=768Mi", "--max-concurrent-runs=8",
		"--run-timeout="+runTimeout.String(),
		"--leader-elect-lease-duration=2m", "--leader-elect-renew-deadline=90s", "--leader-elect-retry-period=3s")

	w.step("six Machines are made by two runs at a time", func() {
		w.create("fleet", 6, credentials)
		w.until("one of them says that it waits for a place", w.waiting("fleet", "insufficient unused quota"))
		w.until("six Machines are Running", w.settled(6))
		w.madeOnce(6)
		if most := admitted.atMost(); len(most) != 2 {
			w.Errorf("at most %d Jobs were admitted at a time: %v; the quota has room for two", len(most), most)
		}
	})
	w.step("a run that waits can be seen for what it is", func() {
		w.stopQueue("Hold")
		w.create("seen", 1, credentials)
		w.until("its Machine says that it waits", w.waiting("seen", "ClusterQueue "+queue+" is "))
		w.until("kubectl machine runs shows it", func(ctx context.Context) error {
			out, err := exec.CommandContext(ctx, w.lab.Path("bin", "kubectl-machine"), "runs", "--active", "-o", "wide",
				"--kubeconfig", w.lab.Cluster.AdminKubeconfig(), "-n", lab.Namespace).CombinedOutput()
			if err == nil && (!strings.Contains(string(out), "Waiting") ||
				!strings.Contains(string(out), waitsInQueue)) {
				err = errors.New("it does not")
			}
			if err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
			return nil
		})
	})
	w.step("the time in the queue is none of a run's", func() {
		job := w.onlyJob()
		time.Sleep(runTimeout + 10*time.Second)
		if still := w.onlyJob(); still.UID != job.UID {
			w.Errorf("after %s, Job %s waits in place of Job %s", runTimeout, still.Name, job.Name)
		}
	})
	w.step("a run that waits goes when its Machine is deleted", func() {
		w.scale("seen", 0)
		w.until("the Machine is gone, though the queue stands still", w.settled(6))
		w.until("there is no Job, Pod or Secret of a run", w.nothingLeft)
		w.until("Kueue has nothing of it", w.noWorkload)
		w.madeOnce(6)
		w.stopQueue("None")
	})
	w.step("Machines are destroyed by two runs at a time", func() {
		w.scale("fleet", 0)
		w.until("no Machine is left", w.settled(0))
		w.noInstance()
		w.until("there is no Job, Pod or Secret of a run", w.nothingLeft)
		w.until("Kueue has nothing of them", w.noWorkload)
		if most := admitted.atMost(); len(most) != 2 {
			w.Errorf("at most %d Jobs were admitted at a time: %v; the quota has room for two", len(most), most)
		}
	})
}

// Neither a manager that dies while a run waits in the queue or executes, nor an evicted run, causes a second instance
// or an orphan.
func TestAQueuedRunIsCutOff(t *testing.T) {
	w := open(t)
	w.startKueue()
	// The lease is long enough for a busy machine, and short enough to wait for after each kill.
	manager := w.startManager("--run-queue="+queue, "--run-cpu=250m", "--run-memory=768Mi",
		"--leader-elect-lease-duration=60s", "--leader-elect-renew-deadline=45s", "--leader-elect-retry-period=2s")
	again := func() {
		w.must(manager.Kill())
		started, err := manager.Restart(w.Context())
		w.must(err)
		manager, w.leads = started, started
	}

	w.step("the manager is killed while a run waits", func() {
		w.stopQueue("Hold")
		w.create("waiting", 1, credentials)
		w.until("its Machine says that it waits", w.waiting("waiting", "ClusterQueue "+queue+" is "))
		job := w.onlyJob()
		again()
		w.until("the Job of the manager before is gone", w.gone(job))
		w.until("another waits in its place", w.waiting("waiting", "ClusterQueue "+queue+" is "))
		w.stopQueue("None")
		w.madeAndDestroyed("waiting")
	})
	w.step("the manager is killed while a run executes", func() {
		held := w.proxy.Hold(apiproxy.BeforeResponse, apiproxy.NodesMade)
		defer held.Lift()
		w.create("executing", 1, w.proxyCredentials())
		w.reached(held) // the Node exists, but the engine does not know it
		job := w.onlyJob()
		again()
		w.until("its Pod has ended", w.ended(job))
		held.Lift()
		w.madeAndDestroyed("executing")
	})
	w.step("Kueue evicts a run", func() {
		held := w.proxy.Hold(apiproxy.BeforeResponse, apiproxy.NodesMade)
		defer held.Lift()
		w.create("evicted", 1, w.proxyCredentials())
		w.reached(held)
		job := w.onlyJob()
		w.stopQueue("HoldAndDrain")
		w.until("its Pod has ended", w.ended(job))
		held.Lift()
		w.until("its next run waits", w.waiting("evicted", "ClusterQueue "+queue+" is "))
		w.stopQueue("None")
		w.madeAndDestroyed("evicted")
	})
}

// madeAndDestroyed waits until the only Machine of a MachineSet is Running, and deletes it.
func (w *world) madeAndDestroyed(set string) {
	w.Helper()
	w.until("the Machine is Running", w.settled(1))
	w.madeOnce(1)
	w.scale(set, 0)
	w.until("no Machine is left", w.settled(0))
	w.noInstance()
	w.until("there is no Job, Pod or Secret of a run", w.nothingLeft)
	w.nodes.Forget()
}

// noInstance checks that no Machine left an instance.
func (w *world) noInstance() {
	w.Helper()
	var found corev1.NodeList
	w.must(w.client.List(w.Context(), &found, client.HasLabels{observe.UIDLabel}))
	for _, node := range found.Items {
		w.Errorf("Node %s is left, of Machine %s", node.Name, node.Labels[observe.UIDLabel])
	}
}

// waiting returns a check that a set's Machine has a condition that it waits in the queue, with a part of Kueue's
// message.
func (w *world) waiting(set, words string) func(context.Context) error {
	return func(ctx context.Context) error {
		var machines machinev1beta1.MachineList
		if err := w.client.List(ctx, &machines, client.InNamespace(lab.Namespace),
			client.MatchingLabels{"machine.openshift.io/cluster-api-machineset": set}); err != nil {
			return err
		}
		var found []string
		for _, machine := range machines.Items {
			for _, condition := range machine.Status.Conditions {
				if strings.Contains(condition.Message, waitsInQueue) && strings.Contains(condition.Message, words) {
					return nil
				}
				found = append(found, fmt.Sprintf("%s: %s", condition.Type, condition.Message))
			}
		}
		return fmt.Errorf("the conditions are %q", found)
	}
}

func (w *world) gone(job *batchv1.Job) func(context.Context) error {
	return func(ctx context.Context) error {
		err := w.client.Get(ctx, client.ObjectKeyFromObject(job), &batchv1.Job{})
		if err == nil {
			return fmt.Errorf("Job %s is there", job.Name)
		}
		return client.IgnoreNotFound(err)
	}
}

// noWorkload checks that Kueue has no workload of a run.
func (w *world) noWorkload(ctx context.Context) error {
	left, err := w.lab.Kubectl(ctx, "get", "workloads.kueue.x-k8s.io", "-o", "name")
	if err == nil && left != "" {
		err = errors.New(left)
	}
	return err
}
