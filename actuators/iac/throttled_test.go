package iac

import (
	"net/http"
	"strings"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-iac/machine-iac-operator/actuators/reporting"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/test/apiproxy"
)

// throttled drives Machines until one of them waits for the infrastructure, and returns it.
func (b *bench) throttled(machines []*machinev1beta1.Machine) *machinev1beta1.Machine {
	b.t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(pause) {
		for _, machine := range machines {
			_ = b.Create(b.t.Context(), machine) // its outcome is in the conditions
			run := readProviderStatus(machine).Run
			if conditionOf(machine, reporting.Throttled).Status == metav1.ConditionTrue && run != nil && run.WaitsFor != "" {
				return machine
			}
		}
	}
	b.t.Fatal("no Machine waits for the infrastructure")
	return nil
}

func TestThrottledCredentialsWaitAndOthersGoOn(t *testing.T) {
	b := newBench(t)
	proxy, _ := b.watched()
	fault := proxy.Inject(apiproxy.Fault{At: apiproxy.BeforeRequest, Status: http.StatusTooManyRequests, Match: func(r *http.Request) bool {
		return strings.HasPrefix(r.URL.Path, "/api/v1/nodes")
	}})
	throttled := make([]*machinev1beta1.Machine, 5)
	for i := range throttled {
		throttled[i] = b.machine(func(spec map[string]any) { spec["credentialsSecret"] = map[string]any{"name": "watched"} })
	}
	waits := b.throttled(throttled)
	if said := readProviderStatus(waits).Run.WaitsFor; !strings.Contains(said, "has throttled the credentials Secret since ") {
		t.Errorf("the run waits for %q", said)
	}
	other := b.machine()
	b.bring(other) // with credentials of its own
	if got := conditionOf(other, reporting.Throttled); got.Type != "" {
		t.Errorf("a Machine with other credentials has %+v", got)
	}
	for range 20 {
		running := 0
		for _, machine := range throttled {
			_ = b.Create(t.Context(), machine)
			if run, _ := b.pool.Status(runs.Key(machine.UID)); run.Phase == runs.Running {
				running++
			}
		}
		if running > 1 {
			t.Errorf("%d runs of the throttled credentials at once", running)
		}
		time.Sleep(pause)
	}
	fault.Lift()
	for _, machine := range throttled {
		for deadline := time.Now().Add(patience); b.drive(b.Create, machine) != nil; time.Sleep(pause) {
			if time.Now().After(deadline) {
				t.Fatalf("Machine %s is not made", machine.Name)
			}
		}
		if err := b.drive(b.Update, machine); err != nil {
			t.Errorf("Machine %s: %v", machine.Name, err)
		}
		if got := conditionOf(machine, reporting.Throttled); got.Type != "" {
			t.Errorf("Machine %s still has %+v", machine.Name, got)
		}
	}
}
