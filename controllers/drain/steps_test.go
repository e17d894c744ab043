package drain

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
	"github.com/machine-iac/machine-iac-operator/controllers/pipeline"
	"github.com/machine-iac/machine-iac-operator/test/builder"
)

// oneMachine is a client that knows one Machine and takes what is written to it, or refuses it.
type oneMachine struct {
	client.Client
	machine *machinev1beta1.Machine
	err     error
	writes  int
	// lags is set for a cache that does not see what is written.
	lags bool
}

func (c *oneMachine) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	if c.machine == nil {
		return apierrors.NewNotFound(machinev1beta1.Resource("machines"), key.Name)
	}
	c.machine.DeepCopyInto(object.(*machinev1beta1.Machine))
	return nil
}

func (c *oneMachine) Patch(_ context.Context, object client.Object, _ client.Patch, _ ...client.PatchOption) error {
	c.writes++
	if c.err != nil {
		return c.err
	}
	if !c.lags {
		c.machine = object.(*machinev1beta1.Machine).DeepCopy()
		c.machine.ResourceVersion += "1"
	}
	return nil
}

func (c *oneMachine) Status() client.SubResourceWriter { return oneStatus{oneMachine: c} }

type oneStatus struct {
	client.SubResourceWriter
	oneMachine *oneMachine
}

func (s oneStatus) Patch(ctx context.Context, object client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
	return s.oneMachine.Patch(ctx, object, patch)
}

// bench drives a controller by hand. Its pool is not started: passes wait until a test says what
// came of them.
type bench struct {
	t          *testing.T
	client     *oneMachine
	clock      *clocktesting.FakePassiveClock
	recorder   *events.FakeRecorder
	controller *Controller
	key        client.ObjectKey
}

func newBench(t *testing.T, machine *machinev1beta1.Machine, changes ...func(*Options)) *bench {
	t.Helper()
	b := &bench{
		t: t, client: &oneMachine{machine: machine}, clock: clocktesting.NewFakePassiveClock(now),
		recorder: events.NewFakeRecorder(100), key: client.ObjectKeyFromObject(machine),
	}
	options := Options{Common: pipeline.Common{Client: b.client, Recorder: b.recorder, Clock: b.clock}, Clientset: fake.NewClientset()}
	for _, change := range changes {
		change(&options)
	}
	var err error
	if b.controller, err = New(options); err != nil {
		t.Fatal(err)
	}
	return b
}

// next runs one reconcile and returns when the next is due, and the events sent.
func (b *bench) next() (time.Duration, []string) {
	b.t.Helper()
	result, err := b.controller.Reconcile(b.t.Context(), reconcile.Request{NamespacedName: b.key})
	if err != nil {
		b.t.Fatal(err)
	}
	var reasons []string
	for len(b.recorder.Events) > 0 {
		reasons = append(reasons, strings.Join(strings.Fields(<-b.recorder.Events)[:2], " "))
	}
	return result.RequeueAfter, reasons
}

// ends says what came of the pass that waits.
func (b *bench) ends(o outcome) {
	b.t.Helper()
	o.target = targetOf(b.client.machine)
	pool := b.controller.pool
	pool.mu.Lock()
	defer pool.mu.Unlock()
	own := pool.tasks[b.key]
	if own == nil {
		b.t.Fatal("no pass was submitted")
	}
	pool.waiting = slices.DeleteFunc(pool.waiting, func(other *task) bool { return other == own })
	own.outcome = &o
}

func (b *bench) drainedCondition() machinev1beta1.Condition {
	if found := machineapi.FindCondition(b.client.machine.Status.Conditions, machinev1beta1.MachineDrained); found != nil {
		return *found
	}
	return machinev1beta1.Condition{}
}

func (b *bench) expect(wantWait time.Duration, wantEvents ...string) {
	b.t.Helper()
	wait, got := b.next()
	if wait != wantWait {
		b.t.Errorf("requeued after %s, want %s", wait, wantWait)
	}
	if diff := cmp.Diff(wantEvents, got); diff != "" {
		b.t.Errorf("events: %s", diff)
	}
}

func TestADrainFromBeginningToEnd(t *testing.T) {
	b := newBench(t, candidate())
	b.expect(0, "Normal DrainProceeds")
	b.expect(0)
	b.ends(outcome{message: "web holds it", left: 1})
	b.expect(5*time.Second, "Normal DrainRequeued")
	if got := b.drainedCondition(); got.Status != "False" || got.Reason != "DrainError" || got.Severity != "Warning" || got.Message != "web holds it" {
		t.Errorf("got %+v", got)
	}
	b.clock.SetTime(now.Add(2 * time.Second))
	b.expect(3 * time.Second)
	if b.controller.pool.holds(b.key) {
		t.Error("the pause is not over")
	}
	b.clock.SetTime(now.Add(5 * time.Second))
	b.expect(0)
	b.ends(outcome{message: "web holds it", left: 1})
	writes := b.client.writes
	b.expect(10 * time.Second)
	if b.client.writes != writes {
		t.Error("the same again is not written")
	}
	b.clock.SetTime(now.Add(15 * time.Second))
	b.expect(0)
	b.ends(outcome{kind: nodeEmpty})
	b.expect(0, "Normal Deleted", "Normal DrainSucceeded")
	if got := b.drainedCondition(); got.Status != "True" || got.Message != "Drain finished successfully" || got.Reason+string(got.Severity) != "" {
		t.Errorf("got %+v", got)
	}
	b.expect(0)
	if b.controller.pool.holds(b.key) || b.controller.memory.find(b.key) != nil {
		t.Error("what has ended is forgotten")
	}
}

func TestWhatAPassBringsIsShown(t *testing.T) {
	tcs := map[string]struct {
		came         outcome
		wantReason   string
		wantSeverity machinev1beta1.ConditionSeverity
		wantWait     time.Duration
	}{
		"pods are left":                    {outcome{message: "m", left: 1}, "DrainError", "Warning", 5 * time.Second},
		"the cordon failed":                {outcome{kind: cordonFailed, message: "m"}, "DrainError", "Warning", 20 * time.Second},
		"another control plane goes first": {outcome{kind: controlPlaneBusy, message: "m"}, "WaitingForControlPlane", "Info", 20 * time.Second},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, candidate())
			b.next()
			b.ends(tc.came)
			b.expect(tc.wantWait, "Normal DrainRequeued")
			if got := b.drainedCondition(); got.Status != "False" || got.Reason != tc.wantReason || got.Severity != tc.wantSeverity || got.Message != "m" {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestAnOutcomeIsKeptUntilItIsWritten(t *testing.T) {
	b := newBench(t, candidate())
	b.next()
	b.ends(outcome{kind: nodeEmpty})
	b.client.err = apierrors.NewConflict(machinev1beta1.Resource("machines"), "m", errors.New("changed"))
	b.expect(pipeline.ConflictRetry)
	b.client.err = nil
	b.expect(0, "Normal Deleted", "Normal DrainSucceeded")
}

func TestAWriteThatFailsIsAnError(t *testing.T) {
	b := newBench(t, candidate())
	b.next()
	b.ends(outcome{kind: nodeEmpty})
	b.client.err = errors.New("no luck")
	if _, err := b.controller.Reconcile(t.Context(), reconcile.Request{NamespacedName: b.key}); err == nil || len(b.recorder.Events) > 0 {
		t.Errorf("got %v, and %d events", err, len(b.recorder.Events))
	}
}

func TestACacheThatLagsBeginsNoSecondDrain(t *testing.T) {
	b := newBench(t, candidate())
	b.client.lags = true
	b.next()
	b.ends(outcome{kind: nodeEmpty})
	b.expect(0, "Normal Deleted", "Normal DrainSucceeded")
	b.expect(pipeline.ConflictRetry)
	if b.controller.pool.holds(b.key) {
		t.Error("drained twice")
	}
}

func TestADrainOfAnotherNodeDoesNotCount(t *testing.T) {
	b := newBench(t, candidate())
	b.next()
	b.ends(outcome{kind: nodeEmpty}) // the cache had an earlier Node of the Machine, which is gone
	b.client.machine.Status.NodeRef.UID, b.client.machine.ResourceVersion = "another", "2"
	b.expect(0)
	if got := b.drainedCondition(); got.Status == "True" {
		t.Errorf("got %+v", got)
	}
	b.ends(outcome{kind: nodeEmpty})
	b.expect(0, "Normal Deleted", "Normal DrainSucceeded")
}

func TestAFullLineIsAskedAgain(t *testing.T) {
	b := newBench(t, candidate(), func(o *Options) { o.MaxWaitingDrains = 1 })
	b.controller.pool.submit(keyOf(0), nothing)
	b.expect(waitInterval)
	b.controller.pool.drop(keyOf(0))
	b.expect(0, "Normal DrainProceeds")
}

func TestWhatEndsAPassThatWaits(t *testing.T) {
	gone := func(b *bench) { b.client.machine = nil }
	change := func(mod machineMod) func(*bench) {
		return func(b *bench) {
			mod(b.client.machine)
			b.client.machine.ResourceVersion += "1"
		}
	}
	tcs := map[string]struct {
		happens    func(*bench)
		wantHolds  bool
		wantEvents []string
	}{
		"nothing":                          {func(*bench) {}, true, nil},
		"the Machine is gone":              {gone, false, nil},
		"the Machine is let go":            {change(func(m *machinev1beta1.Machine) { m.Finalizers = []string{"example.com/other"} }), false, nil},
		"somebody says that it is drained": {change(withDrained("True")), false, nil},
		"a hook":                           {change(builder.WithPreDrainHook("A", "b")), false, []string{"Normal DrainBlocked"}},
		"it is excluded":                   {change(builder.WithAnnotations(map[string]string{machineapi.ExcludeDrainAnnotation: ""})), false, []string{"Normal DrainSkipped"}},
		"another Machine of its name, which takes its own place": {change(func(m *machinev1beta1.Machine) { m.UID = "v" }), true, []string{"Normal DrainProceeds"}},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, candidate())
			b.next()
			tc.happens(b)
			b.expect(0, tc.wantEvents...)
			if got := b.controller.pool.holds(b.key); got != tc.wantHolds {
				t.Errorf("holds a place: %v, want %v", got, tc.wantHolds)
			}
		})
	}
}

func TestDeadline(t *testing.T) {
	node := builder.Node(named("n"))
	pod := builder.Pod(builder.OnNode(node))
	b := newBench(t, candidate(builder.WithAnnotations(map[string]string{TimeoutAnnotation: "30m"}), builder.WithNodeRef(node)),
		func(o *Options) { o.Clientset = fake.NewClientset(node, pod) })
	b.clock.SetTime(now.Add(300 * time.Millisecond))
	b.expect(0)
	if got := b.client.machine.Annotations[StartedAnnotation]; got != now.Format(time.RFC3339) {
		t.Errorf("the start is recorded as %q", got)
	}
	b.expect(30*time.Minute-300*time.Millisecond, "Normal DrainProceeds")
	b.clock.SetTime(now.Add(30*time.Minute - time.Second))
	b.ends(outcome{message: "web holds it", left: 1})
	b.expect(time.Second, "Normal DrainRequeued")
	b.clock.SetTime(now.Add(30 * time.Minute))
	b.expect(0, "Warning DrainTimedOut")
	if got := b.drainedCondition(); got.Status != "True" || got.Reason != "DrainTimedOut" || !strings.Contains(got.Message, pod.Name) || !strings.Contains(got.Message, "30m") {
		t.Errorf("got %+v", got)
	}
}

func TestADrainThatHasEndedHasNotTimedOut(t *testing.T) {
	b := newBench(t, candidate(builder.WithAnnotations(map[string]string{TimeoutAnnotation: "1m", StartedAnnotation: now.Format(time.RFC3339)})))
	b.next()
	b.ends(outcome{kind: nodeEmpty})
	b.clock.SetTime(now.Add(time.Hour))
	b.expect(0, "Normal Deleted", "Normal DrainSucceeded")
}

func TestTheStartIsNotWrittenOverAnother(t *testing.T) {
	b := newBench(t, candidate(builder.WithAnnotations(map[string]string{TimeoutAnnotation: "1m"})))
	b.client.err = apierrors.NewConflict(machinev1beta1.Resource("machines"), "m", errors.New("changed"))
	b.expect(pipeline.ConflictRetry)
	b.client.err = errors.New("no luck")
	if _, err := b.controller.Reconcile(t.Context(), reconcile.Request{NamespacedName: b.key}); err == nil || !strings.Contains(err.Error(), "when the drain began") {
		t.Errorf("got %v", err)
	}
}

func TestABadTimeoutIsReportedOncePerValue(t *testing.T) {
	b := newBench(t, candidate(builder.WithAnnotations(map[string]string{TimeoutAnnotation: "30"})))
	b.expect(0, "Normal DrainProceeds", "Warning InvalidDrainTimeout")
	b.expect(0)
	b.client.machine.Annotations[TimeoutAnnotation] = ""
	b.expect(0, "Warning InvalidDrainTimeout")
	b.expect(0)
	if _, written := b.client.machine.Annotations[StartedAnnotation]; written {
		t.Error("without a deadline no start is recorded")
	}
}

func TestWhatIsLeftBehind(t *testing.T) {
	node := builder.Node(named("n"))
	mirror := builder.Pod(builder.OnNode(node), func(p *corev1.Pod) {
		p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
	})
	pod := builder.Pod(builder.OnNode(node))
	tcs := map[string]struct {
		clientset *fake.Clientset
		want      string
	}{
		"a pod that should have gone": {fake.NewClientset(node, pod, mirror), "Remaining pods: " + pod.Namespace + "/" + pod.Name},
		"only what may stay":          {fake.NewClientset(node, mirror), "No pods remain."},
		"no Node":                     {fake.NewClientset(), "No pods remain."},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			d := &checkDeadline{drainer: newDrainer(tc.clientset, time.Second)}
			if got := d.remainingPods(t.Context(), &scope{machine: candidate(builder.WithNodeRef(node)), progress: &drainProgress{}}); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestLastUpdatedMovesWithTheCondition(t *testing.T) {
	b := newBench(t, candidate(func(m *machinev1beta1.Machine) { m.Status.NodeRef = nil }))
	b.expect(0, "Normal DrainSkipped")
	if at := b.client.machine.Status.LastUpdated; at == nil || !at.Equal(&metav1.Time{Time: now}) {
		t.Errorf("got %v", at)
	}
}

func TestNewNamesWhatIsMissing(t *testing.T) {
	if _, err := New(Options{}); err == nil || !strings.Contains(err.Error(), "Clientset") {
		t.Errorf("got %v", err)
	}
}

func TestADrainIsMeasuredFromWhenItBegan(t *testing.T) {
	metrics := NewMetrics()
	b := newBench(t, candidate(), func(o *Options) { o.Metrics = metrics })
	b.next()
	b.clock.SetTime(now.Add(90 * time.Second))
	b.ends(outcome{kind: nodeEmpty})
	b.next()
	if got := gathered(t, metrics)["machine_iac_drain_duration_seconds success"]; got != 90 {
		t.Errorf("got %v seconds, want 90", got)
	}
}
