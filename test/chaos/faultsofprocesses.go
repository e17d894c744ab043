package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/hack/devcluster/cluster"
	"github.com/machine-iac/machine-iac-operator/hack/lab"
	"github.com/machine-iac/machine-iac-operator/test/observe"
)

// injector injects a fault, and returns when it is over or sure to end with the round.
type injector func(ctx context.Context, r *round, step Step) error

var injectors map[Kind]injector

func init() {
	injectors = map[Kind]injector{
		killEngine:         killing("engine", observe.Process.Engine),
		killProvider:       killing("provider", observe.Process.Provider),
		killHost:           killing("language host", observe.Process.Host),
		killSupervisor:     killing("supervisor", isSupervisor),
		killManager:        killLeader,
		pauseManager:       pauseLeader,
		deleteLease:        removeLease,
		stopManager:        stopLeader,
		apiServerAway:      away(cluster.APIServer),
		etcdAway:           away(cluster.Etcd),
		stateConflict:      stateWrites(409),
		stateTooLarge:      stateWrites(413),
		stateThrottled:     stateWrites(429),
		stateError:         stateWrites(500),
		stateSilence:       stateWrites(0),
		fullDisk:           fillDisk,
		credentialsRotated: rotateCredentials,
		credentialsDeleted: deleteCredentials,
		credentialsOthers:  othersCredentials,
		placeEdited:        editPlace,
		instanceRemoved:    removeInstance,
		instanceEdited:     editInstance,
		providerHangs:      hangProvider,
		providerFails:      failProvider,
		providerSlow:       slowProvider,
		finalizerRemoved:   removeFinalizer,
		stateDeleted:       deleteState,
		stateRestored:      restoreState,
		providerDies:       dieInBatch,
		memberRefused:      refuseOne,
		memberHangs:        hangOne,
	}
}

const (
	// sight is the polling interval for processes that live for a second.
	sight = 15 * time.Millisecond
	// hunt bounds the search for them.
	hunt = 12 * time.Second
)

func isSupervisor(p observe.Process) bool { return p.Supervises() != "" }

// killing kills a process of a kind, some time after it appeared.
func killing(what string, is func(observe.Process) bool) injector {
	return func(ctx context.Context, r *round, step Step) error {
		for end := time.Now().Add(hunt); time.Now().Before(end) && ctx.Err() == nil; time.Sleep(sight) {
			running, err := r.running()
			if err != nil {
				return err
			}
			var found []observe.Process
			for _, process := range running {
				if is(process) && !r.isManager(process.PID) {
					found = append(found, process)
				}
			}
			if len(found) == 0 {
				continue
			}
			chosen := found[step.Draw%len(found)]
			handle, err := os.FindProcess(chosen.PID) // the pid may be reused
			if err != nil {
				continue
			}
			time.Sleep(time.Duration(step.Draw%900) * time.Millisecond)
			if handle.Kill() == nil {
				r.say("killed %s", chosen)
				return nil
			}
		}
		return missed("no %s was met", what)
	}
}

func (w *world) isManager(pid int) bool {
	for _, r := range w.replicas {
		if manager := r.current(); manager != nil && manager.PID() == pid {
			return true
		}
	}
	return false
}

// signalLeader sends a signal to the leader, after restarting it if another fault ended it.
func (r *round) signalLeader(ctx context.Context, signal syscall.Signal) (leads, waits *replica, err error) {
	err = until(ctx, asking, func(context.Context) error {
		leads, waits = r.leader()
		return leads.signal(signal)
	})
	if err != nil {
		err = missed("no manager led within %s: %v", asking, err)
	}
	return leads, waits, err
}

func killLeader(ctx context.Context, r *round, _ Step) error {
	_, _, err := r.signalLeader(ctx, syscall.SIGKILL)
	return err
}

// pauseLeader stops the leader until another leads, and a while longer.
func pauseLeader(ctx context.Context, r *round, step Step) error {
	leads, waits, err := r.signalLeader(ctx, syscall.SIGSTOP)
	if err != nil {
		return err
	}
	began := time.Now()
	resume := r.healLater(func(context.Context) error {
		if err := leads.signal(syscall.SIGCONT); !errors.Is(err, syscall.ESRCH) {
			return err
		}
		return nil
	})
	taken := until(ctx, 3*r.options.Lease, func(context.Context) error {
		if waits.lastRenewed().Before(began) {
			return missed("nobody took the Lease of the paused manager within %s", 3*r.options.Lease)
		}
		return nil
	})
	time.Sleep(step.For / 3) // the successor starts to work
	r.say("manager %s was paused for %.1fs", leads.name, time.Since(began).Seconds())
	return errors.Join(resume(ctx), taken)
}

func removeLease(ctx context.Context, r *round, _ Step) error {
	return until(ctx, asking, func(ctx context.Context) error {
		return r.client.DeleteAllOf(ctx, &coordinationv1.Lease{}, client.InNamespace(lab.Namespace))
	})
}

// stopLeader terminates the leader, and kills it before its engines can end.
func stopLeader(ctx context.Context, r *round, step Step) error {
	leads, _, err := r.signalLeader(ctx, syscall.SIGTERM)
	if err != nil {
		return err
	}
	manager := leads.current()
	select {
	case <-manager.Ended():
	case <-time.After(step.For / 4):
		return manager.Kill()
	}
	return nil
}

// away stops a control plane component for a while.
func away(component cluster.Component) injector {
	return func(ctx context.Context, r *round, step Step) error {
		back := r.healLater(func(ctx context.Context) error { return r.lab.Cluster.Start(ctx, component) })
		if err := r.lab.Cluster.Stop(ctx, component); err != nil {
			return err
		}
		time.Sleep(step.For)
		return back(ctx)
	}
}

// fillDisk fills the managers' work folders.
func fillDisk(ctx context.Context, r *round, step Step) error {
	var free []func(context.Context) error
	for _, replica := range r.replicas {
		if !replica.disk {
			return missed("the work folder is no file system of its own: run the rounds as root")
		}
		filler := filepath.Join(replica.workDir(), ".filler")
		free = append(free, r.healLater(func(context.Context) error { return os.RemoveAll(filler) }))
		if err := fill(filler); err != nil {
			return err
		}
	}
	time.Sleep(step.For)
	var failed []error
	for _, one := range free {
		failed = append(failed, one(ctx))
	}
	return errors.Join(failed...)
}

// fill writes until the disk is full.
func fill(path string) error {
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("filling the disk: %w", err)
	}
	defer file.Close() //nolint:errcheck // it is full
	block := make([]byte, 1<<20)
	for size := len(block); size > 0; {
		if _, err := file.Write(block[:size]); errors.Is(err, syscall.ENOSPC) {
			size /= 2
		} else if err != nil {
			return fmt.Errorf("filling the disk: %w", err)
		}
	}
	return nil
}
