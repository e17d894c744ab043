package termination

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/test/controlplane"
)

var plane *controlplane.ControlPlane

func TestMain(m *testing.M) {
	var err error
	if plane, err = controlplane.Start(controlplane.Default); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if err := plane.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// patience is for what takes no time.
const patience = 20 * time.Second

func connect() (typedcorev1.NodeInterface, error) {
	made, err := typedcorev1.NewForConfig(plane.Config)
	if err != nil {
		return nil, err
	}
	return made.Nodes(), nil
}

// newNode makes a Node with these conditions, which is Ready besides.
func newNode(t *testing.T, name string, conditions ...corev1.NodeCondition) *Node {
	t.Helper()
	conditions = append(conditions, corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady"})
	stored := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Conditions: conditions}}
	if err := plane.Create(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Client.Delete(context.WithoutCancel(t.Context()), stored); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	})
	return &Node{Name: name, Connect: connect}
}

func (n *Node) stored(t *testing.T) *corev1.Node {
	t.Helper()
	stored := &corev1.Node{}
	if err := plane.Client.Get(context.WithoutCancel(t.Context()), client.ObjectKey{Name: n.Name}, stored); err != nil {
		t.Fatal(err)
	}
	return stored
}

func conditionOf(stored *corev1.Node, of corev1.NodeConditionType) *corev1.NodeCondition {
	for i, found := range stored.Status.Conditions {
		if found.Type == of {
			return &stored.Status.Conditions[i]
		}
	}
	return nil
}

func marked(stored *corev1.Node) bool {
	found := conditionOf(stored, ConditionType)
	return found != nil && found.Status == corev1.ConditionTrue
}

func TestMark(t *testing.T) {
	old := metav1.NewTime(time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC))
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	before := func(status corev1.ConditionStatus) []corev1.NodeCondition {
		return []corev1.NodeCondition{{Type: ConditionType, Status: status, Reason: "Other", Message: "of another", LastHeartbeatTime: old, LastTransitionTime: old}}
	}
	for name, tc := range map[string]struct {
		before []corev1.NodeCondition
		want   bool
	}{
		"a Node without the condition":         {nil, true},
		"a Node whose condition is False":      {before(corev1.ConditionFalse), true},
		"a Node whose condition is Unknown":    {before(corev1.ConditionUnknown), true},
		"a Node whose condition is True stays": {before(corev1.ConditionTrue), false},
	} {
		t.Run(name, func(t *testing.T) {
			node := newNode(t, "mark", tc.before...)
			node.Clock = testclock.NewFakeClock(now)
			first := node.stored(t)
			written, err := node.Mark(t.Context())
			if err != nil || written != tc.want {
				t.Fatalf("written is %t (%v), want %t", written, err, tc.want)
			}
			after := node.stored(t)
			if !tc.want && after.ResourceVersion != first.ResourceVersion {
				t.Error("the Node was written")
			}
			got := *conditionOf(after, ConditionType)
			want := corev1.NodeCondition{
				Type: "Terminating", Status: "True", Reason: "TerminationRequested",
				Message: "The cloud provider has marked this instance for termination",
			}
			if tc.want && (!got.LastTransitionTime.Time.Equal(now) || !got.LastHeartbeatTime.Time.Equal(now)) {
				t.Errorf("the times are %s and %s", got.LastTransitionTime, got.LastHeartbeatTime)
			}
			got.LastTransitionTime, got.LastHeartbeatTime = metav1.Time{}, metav1.Time{}
			if tc.want && got != want {
				t.Errorf("the condition is %+v, want %+v", got, want)
			}
			if ready := conditionOf(after, corev1.NodeReady); ready == nil || ready.Reason != "KubeletReady" {
				t.Errorf("the kubelet's condition is %+v", ready)
			}
			if written, err := node.Mark(t.Context()); written || err != nil {
				t.Errorf("another mark is written: %t (%v)", written, err)
			}
		})
	}
}

// script is a source that a test steers.
type script struct {
	mu    sync.Mutex
	next  func(ctx context.Context) (bool, error)
	looks int
}

func (s *script) Terminating(ctx context.Context) (bool, error) {
	s.mu.Lock()
	s.looks++
	next := s.next
	s.mu.Unlock()
	return next(ctx)
}

func (s *script) becomes(next func(ctx context.Context) (bool, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next, s.looks = next, 0
}

func (s *script) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.looks
}

func always(terminating bool, err error) func(context.Context) (bool, error) {
	return func(context.Context) (bool, error) { return terminating, err }
}

// log is what was logged.
type log struct {
	mu    sync.Mutex
	lines []string
}

func (l *log) logger() logr.Logger {
	return funcr.New(func(_, line string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.lines = append(l.lines, line)
	}, funcr.Options{})
}

func (l *log) count(part string) (count int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.lines {
		if strings.Contains(line, part) {
			count++
		}
	}
	return count
}

// running is a handler that runs.
type running struct {
	t     *testing.T
	clock *testclock.FakeClock
	from  *script
	node  *Node
	log   *log
	stop  context.CancelFunc
	ended chan struct{}
}

// run runs a handler until the test ends.
func run(t *testing.T, node *Node, next func(context.Context) (bool, error)) *running {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	r := &running{
		t: t, clock: testclock.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)), from: &script{next: next}, node: node, log: &log{},
		stop: stop, ended: make(chan struct{}),
	}
	go func() {
		New(Options{Source: r.from, Node: node, Clock: r.clock, Logger: r.log.logger()}).Run(ctx)
		close(r.ended)
	}()
	t.Cleanup(r.end)
	return r
}

// end stops the handler and waits for it.
func (r *running) end() {
	r.t.Helper()
	r.stop()
	select {
	case <-r.ended:
	case <-time.After(patience):
		r.t.Error("the handler did not end")
	}
}

// sleeps waits until the handler waits for its clock.
func (r *running) sleeps() {
	r.t.Helper()
	r.until("the handler sleeps", r.clock.HasWaiters)
}

func (r *running) until(what string, done func() bool) {
	r.t.Helper()
	for end := time.Now().Add(patience); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			r.t.Fatalf("waiting until %s", what)
		}
	}
}

// pass lets time pass while the handler sleeps, and returns how often it has looked then.
func (r *running) pass(pause time.Duration) int {
	r.t.Helper()
	r.sleeps()
	r.clock.Step(pause)
	r.sleeps()
	return r.from.count()
}

func TestHandlerMarksItsNode(t *testing.T) {
	node := newNode(t, "spot")
	r := run(t, node, always(false, nil))
	if looks := r.pass(DefaultInterval - time.Millisecond); looks != 1 {
		t.Errorf("%d looks within the first interval, want 1", looks)
	}
	if looks := r.pass(time.Millisecond); looks != 2 || marked(node.stored(t)) {
		t.Errorf("%d looks after one interval, want 2; marked: %t", looks, marked(node.stored(t)))
	}
	r.from.becomes(always(true, nil))
	if looks := r.pass(DefaultInterval); looks != 1 || !marked(node.stored(t)) {
		t.Errorf("%d looks, marked: %t; want one, and a marked Node", looks, marked(node.stored(t)))
	}

	// It goes on quietly, and marks a Node that was made anew.
	version := node.stored(t).ResourceVersion
	if looks := r.pass(recheck); looks != 1 || node.stored(t).ResourceVersion != version {
		t.Errorf("%d looks, and the Node was written: %t", looks, node.stored(t).ResourceVersion != version)
	}
	if err := plane.Client.Delete(t.Context(), node.stored(t)); err != nil {
		t.Fatal(err)
	}
	newNode(t, "spot")
	r.pass(recheck)
	if !marked(node.stored(t)) {
		t.Error("the new Node is not marked")
	}
	select {
	case <-r.ended:
		t.Error("the handler has ended")
	default:
	}
	r.end()
	if count := r.log.count("Marked the Node"); count != 2 {
		t.Errorf("it says %d times that it has marked the Node, want 2: %q", count, r.log.lines)
	}
}

func TestHandlerBearsErrors(t *testing.T) {
	node := newNode(t, "troubled")
	r := run(t, node, always(false, &problem{timedOut, errors.New("slow")}))
	r.sleeps()
	var pauses []time.Duration
	for range 4 {
		looks := r.from.count()
		var pause time.Duration
		for pause = time.Second; r.pass(time.Second) == looks; pause += time.Second {
		}
		pauses = append(pauses, pause)
	}
	if want := []time.Duration{10 * time.Second, maxDelay, maxDelay, maxDelay}; !slices.Equal(pauses, want) {
		t.Errorf("the pauses are %v, want %v", pauses, want)
	}
	r.from.becomes(always(false, &problem{unreachable, errors.New("away")}))
	r.pass(maxDelay)
	r.pass(maxDelay)
	if slow, away := r.log.count("slow"), r.log.count("away"); slow != 1 || away != 1 {
		t.Errorf("logged %d and %d times, want once each: %q", slow, away, r.log.lines)
	}
	r.from.becomes(always(false, nil))
	r.pass(maxDelay)
	if count := r.log.count("Recovered"); count != 1 {
		t.Errorf("logged %d times that it works again: %q", count, r.log.lines)
	}
	// Errors that come and go are logged no more within the hour, and then once.
	r.from.becomes(always(false, &problem{timedOut, errors.New("slow")}))
	r.pass(DefaultInterval)
	r.from.becomes(always(false, nil))
	r.pass(maxDelay)
	if count := r.log.count("slow") + r.log.count("Recovered"); count != 2 {
		t.Errorf("logged %d times: %q", count, r.log.lines)
	}
	r.from.becomes(always(false, &problem{timedOut, errors.New("slow")}))
	r.pass(repeat)
	if count := r.log.count("slow"); count != 2 {
		t.Errorf("logged %d times within two hours: %q", count, r.log.lines)
	}
	r.from.becomes(always(true, nil))
	r.pass(maxDelay)
	if !marked(node.stored(t)) {
		t.Error("the Node is not marked after all these errors")
	}
}

func TestHandlerMarksUntilItIsWritten(t *testing.T) {
	node := newNode(t, "unwritten")
	var mu sync.Mutex
	attempts, reachable := 0, false
	node.Connect = func() (typedcorev1.NodeInterface, error) {
		mu.Lock()
		defer mu.Unlock()
		if attempts++; !reachable {
			return nil, errors.New("no kubeconfig")
		}
		return connect()
	}
	r := run(t, node, always(true, nil))
	r.pass(markDelay)
	r.pass(2 * markDelay)
	mu.Lock()
	reachable = true
	if attempts != 3 {
		t.Errorf("%d attempts, want 3", attempts)
	}
	mu.Unlock()
	r.pass(4 * markDelay)
	if looks := r.from.count(); looks != 1 || !marked(node.stored(t)) || r.log.count("no kubeconfig") != 1 {
		t.Errorf("%d looks, marked: %t, logged: %q", looks, marked(node.stored(t)), r.log.lines)
	}
}

// A handler is stopped when its instance is, which on Google is the moment of the announcement.
func TestHandlerLooksOnceMoreWhenItIsStopped(t *testing.T) {
	node := newNode(t, "stopped")
	r := run(t, node, always(false, nil))
	r.sleeps()
	r.from.becomes(func(ctx context.Context) (bool, error) { return true, ctx.Err() })
	r.end()
	if !marked(node.stored(t)) {
		t.Errorf("the Node is not marked: %q", r.log.lines)
	}

	node = newNode(t, "interrupted")
	r = run(t, node, func(ctx context.Context) (bool, error) {
		<-ctx.Done()
		return false, ctx.Err()
	})
	r.until("it looks", func() bool { return r.from.count() == 1 })
	r.from.becomes(always(false, nil))
	r.end()
	if looks := r.from.count(); looks != 1 || marked(node.stored(t)) || r.log.count("Retrying") != 0 {
		t.Errorf("%d looks, marked: %t, logged: %q", looks, marked(node.stored(t)), r.log.lines)
	}
}

func TestNodeCloud(t *testing.T) {
	node := newNode(t, "joining")
	clock := testclock.NewFakeClock(time.Now())
	node.Clock = clock
	var logged log
	type result struct {
		cloud Cloud
		err   error
	}
	found := make(chan result, 1)
	find := func() {
		cloud, err := node.Cloud(t.Context(), logged.logger())
		found <- result{cloud, err}
	}
	go find()
	for range 3 { // the cloud controller manager has not seen it yet
		for !clock.HasWaiters() {
			time.Sleep(time.Millisecond)
		}
		clock.Step(maxDelay)
	}
	stored := node.stored(t)
	stored.Spec.ProviderID = "gce://project/zone/joining"
	if err := plane.Client.Update(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	var got result
	for waiting := true; waiting; time.Sleep(time.Millisecond) {
		select {
		case got = <-found:
			waiting = false
		default:
			clock.Step(maxDelay)
		}
	}
	if got.cloud != GCP || got.err != nil || logged.count("NoProviderID") != 1 {
		t.Errorf("the cloud is %q (%v), logged: %q", got.cloud, got.err, logged.lines)
	}

	node = newNode(t, "elsewhere")
	stored = node.stored(t)
	stored.Spec.ProviderID = "vsphere://42"
	if err := plane.Client.Update(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	go find()
	if got := <-found; got.err == nil || !strings.Contains(got.err.Error(), "vsphere://42") {
		t.Errorf("the cloud is %q (%v), want an error that names the ID", got.cloud, got.err)
	}
}
