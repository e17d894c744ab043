package machine

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/actuators/fake"
	"github.com/machine-iac/machine-iac-operator/controllers/pipeline"
	"github.com/machine-iac/machine-iac-operator/test/builder"
)

var errStateLost = actuators.Uncertain(time.Minute, "StateLost", "the state is lost")

func wasUpToDate(status corev1.ConditionStatus) modifier {
	return func(m *machinev1beta1.Machine) {
		setCondition(m, upToDate(status, "", ""), now.Add(-time.Hour))
	}
}

// normal runs the steps of a Machine that exists, from the question whether its instance does.
func normal(t *testing.T, actuator actuators.Actuator, s *scope, at time.Time) stepResult {
	t.Helper()
	clock := clockAt(at)
	var got stepResult
	for _, step := range []pipeline.Step[*scope]{&checkFailed{}, &checkExists{actuator, clock}, &updateInstance{actuator, clock}, &createInstance{actuator, clock}} {
		if got = runStep(t, step, s); !got.Proceed || got.Error != "" {
			break
		}
	}
	return got
}

func TestADoubtIsNoFailure(t *testing.T) {
	const lost = "Unknown:StateLost:the state is lost"
	running := []modifier{builder.WithPhase("Running"), builder.WithProviderID("fake://1"), wasUpToDate(corev1.ConditionTrue)}
	cases := map[string]struct {
		update error
		mods   []modifier
		want   stepResult
	}{
		"Update is uncertain too": {actuators.Uncertain(2*time.Minute, "NotAdopted", "it is another's"), running, stepResult{
			Phase: "Running", After: time.Minute, Exists: lost, UpToDate: "Unknown:NotAdopted:it is another's",
		}},
		"Update is looking": {actuators.InProgress(5*time.Second, "looking"), running, stepResult{
			Phase: "Running", After: 5 * time.Second, Exists: lost, UpToDate: "Unknown:InProgress:looking",
		}},
		"Update fails": {errors.New("connection refused"), running, stepResult{
			Phase: "Running", After: 30 * time.Second, Exists: lost, UpToDate: "False:UpdateError:connection refused",
		}},
		"Update has found out: Exists says what, next time": {nil, running, stepResult{
			Phase: "Running", After: time.Minute, Exists: lost, UpToDate: lost,
		}},
		"a Machine that has no phase gets none": {actuators.InProgress(5*time.Second, "looking"), []modifier{builder.WithProviderID("fake://1")}, stepResult{
			After: 5 * time.Second, Exists: lost,
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			actuator := &doubting{update: tc.update}
			s := scopeFor(tc.mods...)
			if diff := cmp.Diff(tc.want, normal(t, actuator, s, now)); diff != "" {
				t.Error(diff)
			}
			if len(actuator.Calls(fake.Create)) > 0 {
				t.Error("Create is called, though an instance may exist")
			}
			shown := s.machine.DeepCopy()
			again := &scope{machine: s.machine, original: shown}
			normal(t, actuator, again, now.Add(time.Minute))
			if diff := cmp.Diff(shown.Status, s.machine.Status); diff != "" {
				t.Errorf("the next pass, which knows no more, changes the status:\n%s", diff)
			}
		})
	}
}

func TestTheDeletionOfAnInstanceThatIsNotAdoptedDoesNotBegin(t *testing.T) {
	foreign := []modifier{builder.WithPhase("Running"), builder.WithProviderID("other://1")}
	let := func(m *machinev1beta1.Machine) { m.Finalizers = nil }
	for name, tc := range map[string]struct {
		mods []modifier
		del  error
		want stepResult
	}{
		"it says what to do": {foreign, actuators.Uncertain(time.Minute, actuators.ReasonNotAdopted, "adopt it"), stepResult{
			Phase: "Running", After: time.Minute, Exists: "Unknown:NotAdopted:adopt it",
		}},
		"an adoption that is requested goes on":         {foreign, actuators.InProgress(5*time.Second, "adopting"), stepResult{Phase: "Running", After: 5 * time.Second}},
		"one without a finalizer goes":                  {append(foreign[:2:2], let), nil, stepResult{Phase: "Running", Proceed: true}},
		"what is being deleted already is not asked of": {append([]modifier{builder.WithPhase("Deleting")}, foreign[1:]...), nil, stepResult{Phase: "Deleting", Proceed: true}},
	} {
		t.Run(name, func(t *testing.T) {
			actuator := &foreignInstance{del: tc.del}
			got := runStep(t, &refuseForeign{actuator, clockAt(now)}, scopeFor(tc.mods...))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	got := runStep(t, &refuseForeign{&doubting{}, clockAt(now)}, scopeFor(foreign...))
	if !got.Proceed {
		t.Error("the deletion of an instance whose state is lost does not begin")
	}
}

// foreignInstance is an actuator of an instance that something else has made.
type foreignInstance struct {
	fake.Actuator
	del error
}

func (f *foreignInstance) Exists(context.Context, *machinev1beta1.Machine) (bool, error) {
	return false, actuators.Uncertain(time.Minute, actuators.ReasonNotAdopted, "it is another's")
}

func (f *foreignInstance) Delete(context.Context, *machinev1beta1.Machine) error { return f.del }

// doubting is an actuator that lost the state. It sets the phase to Failed, which is not for it to
// say then.
type doubting struct {
	fake.Actuator
	update error
}

func (d *doubting) Exists(_ context.Context, machine *machinev1beta1.Machine) (bool, error) {
	machine.Status.Phase = ptr.To(machinev1beta1.PhaseFailed)
	return false, errStateLost
}

func (d *doubting) Update(context.Context, *machinev1beta1.Machine) error { return d.update }

func TestACreateInDoubtWaitsWithoutWritingEachTime(t *testing.T) {
	s := scopeFor(builder.WithPhase("Provisioning"))
	actuator := &fake.Actuator{}
	want := stepResult{Phase: "Provisioning", After: time.Minute, Exists: "Unknown:StateLost:the state is lost"}
	actuator.Fail(fake.Create, errStateLost)
	if diff := cmp.Diff(want, normal(t, actuator, s, now)); diff != "" {
		t.Error(diff)
	}
	said := s.machine.Status.DeepCopy()
	actuator.Fail(fake.Create, errStateLost)
	normal(t, actuator, s, now.Add(time.Minute))
	if diff := cmp.Diff(said, &s.machine.Status); diff != "" {
		t.Errorf("the next pass, which knows no more, changes the status:\n%s", diff)
	}
}

func TestNothingIsShownUpToDateWhileUpdateIsAtWork(t *testing.T) {
	cases := map[string]struct {
		was  []modifier
		want string
	}{
		"it was up to date before the edit":        {[]modifier{wasUpToDate(corev1.ConditionTrue)}, "Unknown:InProgress:the change waits"},
		"it was being worked on":                   {[]modifier{wasUpToDate(corev1.ConditionUnknown)}, "Unknown:InProgress:the change waits"},
		"what the last try failed of stays shown":  {[]modifier{wasUpToDate(corev1.ConditionFalse)}, "False::"},
		"nothing was said of it, and nothing need": {nil, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := scopeFor(append(tc.was, builder.WithPhase("Running"), builder.WithProviderID("fake://1"))...)
			actuator := &fake.Actuator{}
			if err := actuator.Create(t.Context(), s.machine.DeepCopy()); err != nil {
				t.Fatal(err)
			}
			actuator.Fail(fake.Update, actuators.InProgress(time.Minute, "the change waits"))
			if got := normal(t, actuator, s, now); got.UpToDate != tc.want || got.Phase != "Running" {
				t.Errorf("%s is up to date %q, want %q", got.Phase, got.UpToDate, tc.want)
			}
		})
	}
}

func TestNothingIsShownUpToDateThatMayBeGone(t *testing.T) {
	s := scopeFor(builder.WithPhase("Running"), wasUpToDate(corev1.ConditionTrue))
	actuator := &fake.Actuator{}
	actuator.Fail(fake.Exists, errors.New("no response"))
	if got := normal(t, actuator, s, now); got.UpToDate != "Unknown:ErrorCheckingProvider:no response" {
		t.Errorf("up to date is %q", got.UpToDate)
	}
}
