package chaos

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/machine-iac/machine-iac-operator/test/apiproxy"
)

const (
	// crowd is the size of a MachineSet whose Machines share one process of the engine, each in a call of its own (ADR
	// 0018). At least so many together must share it.
	crowd, together = 24, 20
	// crash is how many Nodes are there before the provider dies.
	crash = 12
)

// ofBatches are faults of an engine process that serves many Machines.
var ofBatches = []Kind{providerDies, memberRefused, memberHangs}

// shared checks that so many Machines share a process.
func (r *round) shared(ctx context.Context) error {
	f, err := r.facts(ctx)
	if err != nil {
		return err
	}
	running, err := r.running()
	if err != nil {
		return err
	}
	engines, locked := 0, 0
	for _, process := range running {
		if process.Engine() {
			engines++
		}
	}
	for _, state := range f.States {
		if state.Lock != "" {
			locked++
		}
	}
	r.say("%d Machines are in the work of %d engines", locked, engines)
	if locked < together*engines {
		return missed("%d Machines have %d engines", locked, engines)
	}
	return nil
}

// dieInBatch kills every provider when half of the Nodes are there.
func dieInBatch(ctx context.Context, r *round, _ Step) error {
	var mu sync.Mutex
	made := 0
	held := r.infra.Hold(apiproxy.BeforeResponse, func(request *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		if apiproxy.NodesMade(request) {
			made++
		}
		return made == crash && apiproxy.NodesMade(request)
	})
	defer held.Lift()
	select {
	case <-held.Reached:
	case <-time.After(patient):
		return missed("fewer than %d Nodes were made in %s", crash, patient)
	}
	if err := r.shared(ctx); err != nil {
		return err
	}
	running, err := r.running()
	if err != nil {
		return err
	}
	for _, process := range running {
		if handle, err := os.FindProcess(process.PID); err == nil && process.Provider() {
			_ = handle.Kill() // it may have ended
		}
	}
	return nil
}

// refuseOne refuses the Node of one Machine for a while.
func refuseOne(ctx context.Context, r *round, step Step) error {
	on := r.infra.Inject(apiproxy.Fault{At: apiproxy.BeforeRequest, Match: oneNode(), Status: http.StatusForbidden})
	defer on.Lift()
	if err := lasts(Step{}, "Node", on.Met); err != nil {
		return err
	}
	if err := r.shared(ctx); err != nil {
		return err
	}
	return r.othersRun(ctx, step)
}

// hangOne holds the Node of one Machine until its run has passed its deadline.
func hangOne(ctx context.Context, r *round, step Step) error {
	held := r.infra.Hold(apiproxy.BeforeRequest, oneNode())
	defer held.Lift()
	began := time.Now()
	if err := lasts(Step{}, "Node", func() int { return len(held.Reached) }); err != nil {
		return err
	}
	if err := r.shared(ctx); err != nil {
		return err
	}
	err := r.othersRun(ctx, step)
	time.Sleep(time.Until(began.Add(runTimeout + 5*time.Second)))
	return err
}

// othersRun waits until every Machine of the step's MachineSet but one runs.
func (r *round) othersRun(ctx context.Context, step Step) error {
	return until(ctx, runTimeout-20*time.Second, func(ctx context.Context) error {
		machines, err := r.machines(ctx, r.plan.Sets[step.Set].Name)
		if err != nil {
			return err
		}
		waiting := 0
		for i := range machines {
			if !isRunning(&machines[i]) {
				waiting++
			}
		}
		if waiting > 1 {
			return fmt.Errorf("%d of %d Machines do not run beside the one that cannot", waiting-1, len(machines))
		}
		return nil
	})
}

// oneNode matches the requests that create the Node which is created first.
func oneNode() func(*http.Request) bool {
	var mu sync.Mutex
	var chosen string
	return func(request *http.Request) bool {
		name := apiproxy.NodeMade(request)
		mu.Lock()
		defer mu.Unlock()
		if chosen == "" {
			chosen = name
		}
		return name != "" && name == chosen
	}
}
