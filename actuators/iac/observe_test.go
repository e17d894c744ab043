package iac

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/machine-iac/machine-iac-operator/internal/desired"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state"
	"github.com/machine-iac/machine-iac-operator/test/builder"
)

// held is a run that goes on until it is let go.
type held chan struct{}

func (held) Intend(context.Context) error { return nil }

func (h held) Execute(ctx context.Context) error {
	select {
	case <-h:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (held) Settle(_ context.Context, outcome error) error { return outcome }

// A run that is over beside a state from before its end would look like one that got lost, and be
// made again.
func TestARunThatEndsWhileTheStateIsReadIsNotOverYet(t *testing.T) {
	for _, operation := range []runs.Operation{runs.Create, runs.Destroy} {
		t.Run(string(operation), func(t *testing.T) {
			pool := runs.New(runs.Options{})
			go func() { _ = pool.Start(t.Context()) }()
			machine := builder.Machine()
			machine.UID = types.UID("of-" + string(operation))
			task := make(held)
			if _, err := pool.Submit(runs.Request{Machine: client.ObjectKeyFromObject(machine), Key: runs.Key(machine.UID), Operation: operation, Task: task}); err != nil {
				t.Fatal(err)
			}
			reading := interceptor.NewClient(fake.NewClientBuilder().WithScheme(plane.Scheme).Build(), interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
					err := c.Get(ctx, key, object, options...)
					close(task)
					for active(pool, machine.UID) && ctx.Err() == nil {
						time.Sleep(time.Millisecond)
					}
					return err
				},
			})
			reader, err := desired.NewReader(desired.Options{States: state.New(reading, state.Options{})})
			if err != nil {
				t.Fatal(err)
			}
			actuator := &Actuator{desired: reader, pool: pool}
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			f, err := actuator.facts(ctx, machine)
			if err != nil {
				t.Fatal(err)
			}
			if !f.Active() {
				t.Errorf("the state is from before the end of the run, which is %+v; want it active", f.Run)
			}
			if active(pool, machine.UID) {
				t.Error("the run goes on, so that the test shows nothing")
			}
		})
	}
}

func active(pool *runs.Pool, uid types.UID) bool {
	status, known := pool.Status(runs.Key(uid))
	return known && status.Active()
}
