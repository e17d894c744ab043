package iac

import (
	"net/http"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/internal/runs"
)

// sessions returns how many sessions of the vCenter's two APIs are open.
func (v *vcenter) sessions() (open int) {
	v.t.Helper()
	if !v.ask(http.MethodGet, "/test/sessions", &open) {
		v.t.Fatal("this vcsim does not count its sessions; run 'make tools'")
	}
	return open
}

// TestAProviderHasOneSessionOfEachAPI starts many engines. A vCenter allows some hundred sessions, and ends one that was
// idle for half an hour. Checks use no more sessions for more Machines, nor with time.
func TestAProviderHasOneSessionOfEachAPI(t *testing.T) {
	const workers, apis = 4, 2 // workers of the bench
	for name, tc := range map[string]struct{ machines, batch, warm, rounds int }{
		"warm providers":                {machines: workers, warm: workers, rounds: 3},
		"providers of the engine's own": {machines: workers, rounds: 3},
		"fifty Machines":                {machines: 50, batch: 10, warm: workers, rounds: 6},
	} {
		t.Run(name, func(t *testing.T) {
			v := newVCenterReached(t, func(b *bench, environment map[string]string) {
				b.environment, b.warm, b.batch = environment, tc.warm, tc.batch
			})
			machines := make([]*machinev1beta1.Machine, tc.machines)
			for i := range machines {
				machines[i] = v.machine()
				_ = v.Create(t.Context(), machines[i]) // it has begun
			}
			most := 0
			for _, machine := range machines {
				v.bring(machine)
			}
			for range tc.rounds {
				v.later(2 * time.Hour)
				for _, machine := range machines {
					_ = v.Update(t.Context(), machine) // starts a check
				}
				for _, machine := range machines {
					for run, _ := v.pool.Status(runs.Key(machine.UID)); run.Active(); run, _ = v.pool.Status(runs.Key(machine.UID)) {
						most = max(most, v.sessions())
						time.Sleep(pause)
					}
				}
				if left := v.sessions(); left > tc.warm*apis {
					t.Errorf("%d sessions while nothing runs, want those of %d warm providers", left, tc.warm)
				}
			}
			if most = max(most, v.sessions()); most > workers*apis {
				t.Errorf("%d engines had up to %d sessions at once, want those of %d providers", v.starts(), most, workers)
			}
			v.stop()
			if left := v.sessions(); left > 0 {
				t.Errorf("%d sessions are left", left)
			}
		})
	}
}
