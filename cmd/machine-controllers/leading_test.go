package main

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/machine-iac/machine-iac-operator/internal/engine/supervisor"
	"github.com/machine-iac/machine-iac-operator/internal/leadership"
	"github.com/machine-iac/machine-iac-operator/test/shortdir"
)

func TestMain(m *testing.M) {
	supervisor.Main()
	beManager()
	code := m.Run()
	if apiServer.Config != nil {
		if err := apiServer.Stop(); err != nil {
			_, _ = os.Stderr.WriteString(err.Error() + "\n")
		}
	}
	os.Exit(code)
}

// apiServer is started by the first test that needs it.
var (
	apiServer    envtest.Environment
	theAPIServer = sync.OnceValues(func() (*rest.Config, error) {
		if os.Getenv("KUBEBUILDER_ASSETS") == "" {
			apiServer.BinaryAssetsDirectory = filepath.Join("..", "..", "bin")
		}
		return apiServer.Start()
	})
)

// fixture is where a test's leader leads: an API server and a work folder.
type fixture struct {
	config *rest.Config
	client *kubernetes.Clientset
	o      options
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	config, err := theAPIServer()
	if err != nil {
		t.Fatal(err)
	}
	p := &fixture{config: config, o: options{leaderElect: true, namespace: metav1.NamespaceDefault, leaseNamespace: metav1.NamespaceDefault, interruptGrace: time.Second}}
	if p.client, err = kubernetes.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	if p.o.timing, err = leadership.NewTiming(30*time.Second, 15*time.Second, time.Second); err != nil {
		t.Fatal(err)
	}
	return p
}

// lead has a new process lead, as the elector would.
func (p *fixture) lead(t *testing.T) *leading {
	t.Helper()
	if err := p.client.CoordinationV1().Leases(p.o.leaseNamespace).Delete(t.Context(), leaseName, metav1.DeleteOptions{}); err != nil {
		t.Log(err) // there may be none
	}
	p.o.workDir = shortdir.New(t)
	l, err := newLeading(t.Context(), p.config, p.o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.guard.Stop() })
	if err := l.ResourceLock().Create(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: l.Epoch().Holder, LeaseDurationSeconds: 30}); err != nil {
		t.Fatal(err)
	}
	return l
}

// engine runs in the work folder and ignores interrupts.
func (p *fixture) engine(t *testing.T) (ended <-chan struct{}) {
	t.Helper()
	process := exec.Command("sh", "-c", `trap "" INT; echo; sleep 300`)
	process.Dir = p.o.workDir
	process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(-process.Process.Pid, syscall.SIGKILL) })
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_ = process.Wait()
	}()
	return gone
}

// holder is whom the Lease names.
func (p *fixture) holder(t *testing.T) string {
	t.Helper()
	lease, err := p.client.CoordinationV1().Leases(p.o.leaseNamespace).Get(t.Context(), leaseName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return ptr.Deref(lease.Spec.HolderIdentity, "")
}

func TestTheLeaseGoesBackWhenEverythingHasEnded(t *testing.T) {
	p := newFixture(t)
	stopped := func(context.Context) error { return nil }
	for name, tc := range map[string]struct {
		start    func(context.Context) error
		open     bool
		engine   bool
		wantBack bool
		wantErr  string
	}{
		"all has settled":            {start: stopped, wantBack: true},
		"runs have not settled":      {start: stopped, open: true},
		"an engine is left":          {start: stopped, engine: true},
		"the manager could not stop": {start: func(context.Context) error { return errors.New("too slow") }, wantErr: "too slow"},
	} {
		t.Run(name, func(t *testing.T) {
			l := p.lead(t)
			runs := &trackedActuator{}
			runs.open.Store(tc.open)
			if tc.engine {
				p.engine(t)
			}
			err := l.serve(t.Context(), tc.start, runs)
			if tc.wantErr == "" && err != nil || tc.wantErr != "" && (err == nil || !strings.Contains(err.Error(), tc.wantErr)) {
				t.Errorf("it ends with %v", err)
			}
			if back := p.holder(t) == ""; back != tc.wantBack {
				t.Errorf("the Lease went back: %t, want %t", back, tc.wantBack)
			}
		})
	}
}

func TestALostLeaseEndsTheProcessAtOnce(t *testing.T) {
	p := newFixture(t)
	l := p.lead(t)
	engine := p.engine(t)
	if err := p.client.CoordinationV1().Leases(p.o.leaseNamespace).Delete(t.Context(), leaseName, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	// This manager never stops by itself, whatever is asked of it.
	go func() { ended <- l.serve(t.Context(), func(context.Context) error { select {} }, &trackedActuator{}) }()
	if err := l.Confirm(t.Context()); !errors.Is(err, leadership.ErrNotLeader) {
		t.Fatalf("it confirms with %v", err)
	}
	select {
	case err := <-ended:
		if !errors.Is(err, leadership.ErrNotLeader) {
			t.Errorf("it ends with %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("it waits for the manager")
	}
	select {
	case <-engine:
	case <-time.After(20 * time.Second):
		t.Error("its engine lives on")
	}
}

// A manager that has waited for long enough stops its leader election, and the elector would give
// the Lease back.
func TestAManagerThatCannotStopKeepsTheLease(t *testing.T) {
	p := newFixture(t)
	l := p.lead(t)
	p.o.interruptGrace = time.Second - stopSlack
	p.o.metricsAddress, p.o.healthAddress = "0", "0"
	mgr, err := newManager(p.config, hooks{}, l.Leadership, p.o)
	if err != nil {
		t.Fatal(err)
	}
	started := make(chan struct{})
	if err := mgr.Add(manager.RunnableFunc(func(context.Context) error {
		close(started)
		select {} // a run that does not settle
	})); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- l.serve(ctx, mgr.Start, &trackedActuator{}) }()
	<-started
	stop()
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "grace period") {
		t.Errorf("it ends with %v", err)
	}
	if p.holder(t) != l.Epoch().Holder {
		t.Error("the Lease went back beside a run")
	}
}
