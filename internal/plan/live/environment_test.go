package live

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/plan/offline"
	"github.com/machine-iac/machine-iac-operator/internal/plan/preview"
	"github.com/machine-iac/machine-iac-operator/test/long"
)

// around is a fixed environment.
type around struct {
	environment map[string]string
	sensitive   []string
	err         error
}

func (a around) Environment(context.Context, []v1alpha1.EnvironmentVariable) (map[string]string, []string, error) {
	return maps.Clone(a.environment), a.sensitive, a.err
}

// overhears is a planner that records the existing instances in its inputs.
type overhears struct {
	preview.Planner
	mu    sync.Mutex
	heard []*offline.Existing
}

func (o *overhears) Plan(ctx context.Context, m offline.Module, inputs []offline.Input) []offline.Outcome {
	o.mu.Lock()
	for _, one := range inputs {
		if one.Existing != nil {
			o.heard = append(o.heard, one.Existing)
		}
	}
	o.mu.Unlock()
	return o.Planner.Plan(ctx, m, inputs)
}

func TestProvidersSeeTheEnvironmentOfARun(t *testing.T) {
	long.Test(t)
	b, spec := newKubemark(t)
	set := b.set(1, spec)
	b.bring(b.machine(set, "a"))
	planned := around{environment: map[string]string{"NO_PROXY": ".svc", "KUBE_TOKEN": "the cluster's"},
		sensitive: []string{"pr0xy-secret"}}

	for name, refresh := range map[string]bool{"where they are configured": true,
		"not where only the API server is asked": false} {
		t.Run(name, func(t *testing.T) {
			planner := &overhears{Planner: b.planner}
			machineOf(t,
				b.plan(set, func(o *Options) { o.Refresh, o.Environment, o.Planner = refresh, planned, planner }),
				preview.Unchanged)
			if len(planner.heard) == 0 {
				t.Fatal("nothing was planned")
			}
			for _, one := range planner.heard { // for the edit, and for drift
				if (one.Environment["NO_PROXY"] == ".svc") != refresh ||
					slices.Contains(one.Sensitive, "pr0xy-secret") != refresh {
					t.Errorf("with a refresh: %t; providers see the environment: %t, their secrets are known: %t",
						refresh, one.Environment["NO_PROXY"] == ".svc", slices.Contains(one.Sensitive, "pr0xy-secret"))
				}
				if one.Environment["KUBE_TOKEN"] == "the cluster's" {
					t.Error("the environment wins over the Machine's credentials")
				}
			}
		})
	}
	t.Run("and are not guessed where they cannot be read", func(t *testing.T) {
		found := machineOf(t,
			b.plan(set,
				func(o *Options) {
					o.Refresh, o.Environment = true, around{err: errors.New("the API server is away")}
				}), preview.Undecided)
		wantText(t, found.Why, "reading how to reach the infrastructure: the API server is away")
	})
}
