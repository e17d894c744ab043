package chaos

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/api/v1beta1"
	"github.com/machine-iac/machine-iac-operator/hack/devcluster/cluster"
	"github.com/machine-iac/machine-iac-operator/hack/lab"
	"github.com/machine-iac/machine-iac-operator/test/openstack"
)

// Outcome is a round's result.
type Outcome struct {
	Plan       Plan
	Took       time.Duration
	Violations []Violation
	// Notes describe what each fault did.
	Injected, Missed []Kind
	Notes            []string
	// Remade counts instances that replaced incomplete ones.
	Remade int
}

// missedError means that a fault found nothing to affect.
type missedError struct{ reason string }

func (e *missedError) Error() string { return e.reason }

func missed(format string, values ...any) error { return &missedError{fmt.Sprintf(format, values...)} }

// round is a round in progress.
type round struct {
	*world
	plan Plan

	mu       sync.Mutex
	expected Expected
	outcome  Outcome
	// victims are Machines that faults have chosen.
	victims map[string]bool
	heals   []func(context.Context) error
	scaling sync.Mutex
}

// play plays a round and cleans up.
func (w *world) play(ctx context.Context, plan Plan) Outcome {
	began := time.Now()
	r := &round{
		world: w, plan: plan, outcome: Outcome{Plan: plan}, victims: map[string]bool{},
		expected: Expected{Replicas: map[string]int{}, MayFail: map[string]bool{}, Forced: map[string]bool{},
			Taken: map[string]string{}},
	}
	logs := w.logSizes()
	stopWatching := r.watchPools(ctx)
	if err := r.create(ctx); err != nil {
		r.violate(Violation{Stuck, "the round did not begin: " + err.Error()})
	} else {
		r.carryOut(ctx)
	}
	r.heal(ctx)
	if err := r.emptyOthersProject(ctx); err != nil {
		r.violate(Violation{Stuck, "deleting what was made with the credentials of another account: " + err.Error()})
	}
	r.settle(ctx, "fleet", Fleet)
	stopWatching()
	if err := r.deleteSets(ctx); err != nil {
		r.violate(Violation{Stuck, "deleting MachineSets: " + err.Error()})
	}
	r.settle(ctx, "nothing", Nothing)
	for _, v := range slices.Concat(Twice(w.cloud.History()), nodesTwice(w.nodes.ByMachine()), w.leaks(ctx, logs)) {
		r.violate(v)
	}
	r.outcome.Remade = remade(w.cloud.History())
	if len(r.outcome.Violations) > 0 || len(r.expected.Forced) > 0 {
		r.scrub(ctx)
	}
	w.cloud.Reset()
	w.nodes.Forget()
	r.outcome.Took = time.Since(began)
	return r.outcome
}

func (r *round) violate(v Violation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Contains(r.outcome.Violations, v) {
		r.outcome.Violations = append(r.outcome.Violations, v)
	}
}

// expect updates the expectation.
func (r *round) expect(change func(e *Expected)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.expected)
}

func (w *world) logSizes() map[string]int64 {
	sizes := map[string]int64{}
	for _, r := range w.replicas {
		if info, err := os.Stat(r.log()); err == nil {
			sizes[r.name] = info.Size()
		}
	}
	return sizes
}

func (r *round) create(ctx context.Context) error {
	for _, set := range r.plan.Sets {
		made, err := r.newObject(set)
		if err != nil {
			return err
		}
		if err := r.client.Create(ctx, made); err != nil {
			return err
		}
		r.expect(func(e *Expected) { e.Replicas[set.Name] = int(set.Replicas) })
	}
	return nil
}

// carryOut executes the plan's steps on schedule.
func (r *round) carryOut(ctx context.Context) {
	began := time.Now()
	var steps sync.WaitGroup
	for _, step := range r.plan.Steps {
		steps.Go(func() {
			select {
			case <-time.After(time.Until(began.Add(step.At))):
			case <-ctx.Done():
				return
			}
			if step.Action != "" {
				r.note(step, r.do(ctx, step))
				return
			}
			r.note(step, injectors[step.Fault](ctx, r, step))
		})
	}
	steps.Wait()
}

// note records a step's result.
func (r *round) note(step Step, err error) {
	r.say("%s: %v", step, err)
	r.mu.Lock()
	defer r.mu.Unlock()
	_, miss := errors.AsType[*missedError](err)
	switch {
	case step.Fault != "" && err == nil:
		r.outcome.Injected = append(r.outcome.Injected, step.Fault)
	case step.Fault != "":
		r.outcome.Missed = append(r.outcome.Missed, step.Fault)
	}
	if err != nil {
		r.outcome.Notes = append(r.outcome.Notes, fmt.Sprintf("%s%s: %v", step.Action, step.Fault, err))
	}
	if err != nil && !miss && step.Fault != "" {
		r.outcome.Violations = append(r.outcome.Violations,
			Violation{Stuck, fmt.Sprintf("fault %q could not be injected: %v", step.Fault, err)})
	}
}

// healLater schedules heal for the end of the round's actions, and returns a function that runs it earlier. It runs
// once.
func (r *round) healLater(heal func(context.Context) error) func(context.Context) error {
	var once sync.Once
	var err error
	healing := func(ctx context.Context) error {
		once.Do(func() { err = heal(ctx) })
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.heals = append(r.heals, healing)
	return healing
}

func (r *round) heal(ctx context.Context) {
	for _, component := range []cluster.Component{cluster.Etcd, cluster.APIServer} {
		if err := r.lab.Cluster.Start(ctx, component); err != nil {
			r.violate(Violation{Stuck, fmt.Sprintf("starting %s: %v", component, err)})
		}
	}
	for _, heal := range slices.Backward(r.heals) {
		if err := until(ctx, 20*time.Second, heal); err != nil {
			r.violate(Violation{Stuck, "healing: " + err.Error()})
		}
	}
}

// settle waits until two checks in a row find the expected state, and records remaining violations.
func (r *round) settle(ctx context.Context, what string, check func(*Facts, *Expected) []Violation) {
	began := time.Now()
	var last []Violation
	calm, logged := 0, ""
	err := until(ctx, r.options.Patience, func(ctx context.Context) error {
		f, err := r.facts(ctx)
		if err != nil {
			return err
		}
		r.mu.Lock()
		last = check(f, &r.expected)
		r.mu.Unlock()
		if len(last) > 0 {
			calm = 0
			if text := last[0].String(); text != logged {
				logged = text
				r.say("%s: %d wrong, %.200s", what, len(last), text)
			}
			return errors.New(last[0].Text)
		}
		if calm++; calm < 2 {
			return errors.New("it has come to rest only now")
		}
		return nil
	})
	r.say("%s settled after %.1fs: %v", what, time.Since(began).Seconds(), err == nil)
	if err == nil {
		return
	}
	for _, v := range last {
		r.violate(v)
	}
	if len(last) == 0 {
		r.violate(Violation{Stuck, what + " could not be looked at: " + err.Error()})
	}
}

// deleteSets deletes all MachineDeployments and MachineSets.
func (r *round) deleteSets(ctx context.Context) error {
	return until(ctx, 20*time.Second, func(ctx context.Context) error {
		return errors.Join(
			r.client.DeleteAllOf(ctx, &v1beta1.MachineDeployment{}, client.InNamespace(lab.Namespace)),
			r.client.DeleteAllOf(ctx, &machinev1beta1.MachineSet{}, client.InNamespace(lab.Namespace)))
	})
}

// remade counts the servers that replaced an incomplete one.
func remade(history []openstack.Made) int {
	machines, servers := map[string]bool{}, 0
	for _, made := range history {
		if made.Kind == "servers" {
			machines[made.Machine] = true
			servers++
		}
	}
	return servers - len(machines)
}

// scrub forcibly removes a round's leftovers before the next one.
func (r *round) scrub(ctx context.Context) {
	r.say("scrubbing")
	for _, replica := range r.replicas {
		if err := replica.end(); err != nil {
			r.say("ending manager %s: %v", replica.name, err)
		}
	}
	r.endRuns()
	backoff := wait.Backoff{Duration: 200 * time.Millisecond, Steps: 20, Factor: 1.2}
	err := wait.ExponentialBackoffWithContext(ctx, backoff, func(ctx context.Context) (bool, error) {
		return r.removeObjects(ctx) == nil, nil
	})
	if err != nil {
		r.violate(Violation{Stuck, "the round could not be cleaned up: " + err.Error()})
	}
	for _, replica := range r.replicas {
		for _, folder := range runDirs {
			_ = os.RemoveAll(cmp.Or(replica.workDir(), "/nonexistent") + "/" + folder) // only the next round needs this
		}
		if err := replica.start(ctx); err != nil {
			r.violate(Violation{Stuck, "starting a manager: " + err.Error()})
		}
	}
}
