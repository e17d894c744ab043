package machineset

import (
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/machine-iac/machine-iac-operator/api/v1beta1"
	"github.com/machine-iac/machine-iac-operator/test/builder"
)

func TestNumbersOfAnnotationsAreBounded(t *testing.T) {
	set := builder.MachineSet(builder.WithReplicas(1))
	set.Annotations = map[string]string{v1beta1.SurgeAnnotation: "7", v1beta1.DesiredReplicasAnnotation: "9223372036854775807"}
	if limit := 2*wanted(set) + 1; v1beta1.SurgeOf(set) != 1 || limit < 0 {
		t.Errorf("got a surge of %d and a limit of %d Machines", v1beta1.SurgeOf(set), limit)
	}
	set.OwnerReferences = []metav1.OwnerReference{{Controller: ptr.To(true)}}
	if surge := v1beta1.SurgeOf(set); surge != 0 {
		t.Errorf("got a surge of %d, though a MachineDeployment owns the MachineSet", surge)
	}
}

func TestASurgeIsAddedToTheReplicas(t *testing.T) {
	for name, tc := range map[string]struct {
		cached, live string
		machines     int
		wantGoOn     bool
		wantSurplus  int
	}{
		"one is to be created":                  {"1", "1", 1, true, -1},
		"it is there":                           {"1", "1", 2, false, 0},
		"its end deletes one":                   {"", "", 2, true, 1},
		"a cache that lags deletes none":        {"", "1", 2, false, 1},
		"a cache that lags creates none":        {"1", "", 1, false, -1},
		"a number that is none":                 {"one", "one", 1, false, 0},
		"a negative number deletes no Machines": {"-1", "-1", 1, false, 0},
		"a huge number creates one Machine":     {"9223372036854775807", "9223372036854775807", 1, true, -1},
	} {
		t.Run(name, func(t *testing.T) {
			set := builder.MachineSet(builder.WithReplicas(1))
			live := set.DeepCopy()
			set.Annotations = map[string]string{v1beta1.SurgeAnnotation: tc.cached}
			live.Annotations = map[string]string{v1beta1.SurgeAnnotation: tc.live}
			c := &stubClient{set: live}
			var machines []*machinev1beta1.Machine
			for range tc.machines {
				c.machines = append(c.machines, *builder.Machine(builder.WithOwner(set)))
				machines = append(machines, &c.machines[len(c.machines)-1])
			}
			s := scopeOf(t, set, machines...)
			read := &readLive{reader: c, inFlight: newInFlight(clocktesting.NewFakePassiveClock(now), time.Minute)}
			proceed, err := read.Reconcile(t.Context(), s)
			if err != nil || proceed != tc.wantGoOn || s.surplus() != tc.wantSurplus {
				t.Errorf("got %v, %v and a surplus of %d; want %v and %d", proceed, err, s.surplus(), tc.wantGoOn, tc.wantSurplus)
			}
		})
	}
}
