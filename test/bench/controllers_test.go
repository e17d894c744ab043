//go:build bench

package bench

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/machine-iac/machine-iac-operator/hack/devcluster/cluster"
	"github.com/machine-iac/machine-iac-operator/hack/lab"
	"github.com/machine-iac/machine-iac-operator/test/process"
)

var (
	replicas = flag.Int("replicas", 1000, "Machines that a MachineSet is scaled to while the native controllers are measured")
	touches  = flag.Int("touches", 500, "Machines that are written to measure how soon they are reconciled")
	profile  = flag.String("cpu-profile", "", "file for a CPU profile of the machineset controller while it is alone; FILE.together gets one of all of them; empty for none")
)

// scaling is what one change of a MachineSet has cost.
type scaling struct {
	// there is when all Machines existed, or were gone; settled is when the MachineSet's status, or that of the Machines, has it too.
	there, settled time.Duration
	cpu            time.Duration
	writes         writes
}

// TestControllers measures the native controllers beside an API server and etcd: nothing else of a cluster runs.
func TestControllers(t *testing.T) {
	l := openLab(t)
	for _, component := range []cluster.Component{cluster.KWOK, cluster.Scheduler, cluster.ControllerManager} {
		if err := l.Cluster.Stop(contextOf(t), component); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.RemoveWebhooks(contextOf(t)); err != nil { // nobody serves them
		t.Fatal(err)
	}
	b := &controllersBench{server: newAPIServer(t, l), lab: l, binary: buildManager(t)}
	if err := l.Apply(contextOf(t), fmt.Sprintf(setManifest, lab.Namespace)); err != nil {
		t.Fatal(err)
	}
	var result controllerFigures
	b.alone(t, &result)
	b.together(t, &result)
	result.write(t)
}

// controllersBench is the native controllers under measurement.
type controllersBench struct {
	server *apiServer
	lab    *lab.Lab
	binary string
}

const setPath = apiPath + "/machinesets/bench"

const setManifest = `
apiVersion: machine.openshift.io/v1beta1
kind: MachineSet
metadata: {name: bench, namespace: %s}
spec:
  replicas: 0
  selector: {matchLabels: {machine.openshift.io/cluster-api-machineset: bench}}
  template:
    metadata:
      labels:
        machine.openshift.io/cluster-api-cluster: bench
        machine.openshift.io/cluster-api-machine-role: worker
        machine.openshift.io/cluster-api-machine-type: worker
        machine.openshift.io/cluster-api-machineset: bench
    spec:
      providerSpec:
        value:
          apiVersion: machine.openshift.io/v1beta1
          kind: BenchMachineProviderSpec
          instanceType: small
          region: region-1
          userDataSecret: {name: worker-user-data}
          credentialsSecret: {name: credentials}
`

// alone measures the machineset controller with nobody who looks after Machines.
func (b *controllersBench) alone(t *testing.T, result *controllerFigures) {
	t.Helper()
	m := b.start(t, "machineset")
	b.scale(t, m, 10, b.exist)
	b.scale(t, m, 0, b.exist)
	waitForProfile := func() {}
	if *profile != "" {
		waitForProfile = m.profile(t, *profile)
	}
	result.alone.up = b.scale(t, m, *replicas, b.exist)
	result.alone.down = b.scale(t, m, 0, b.exist)
	waitForProfile()
	m.stop(t)
}

// together measures all that a Machine goes through, but for its instance.
func (b *controllersBench) together(t *testing.T, result *controllerFigures) {
	t.Helper()
	m := b.start(t, "machineset,machine,drain")
	b.scale(t, m, 10, m.provisioned(10))
	b.scale(t, m, 0, b.exist)
	waitForProfile := func() {}
	if *profile != "" {
		waitForProfile = m.profile(t, *profile+".together")
	}
	result.together.up = b.scale(t, m, *replicas, m.provisioned(10+*replicas))
	waitForProfile()
	result.latencies = b.touch(t, m)
	result.together.down = b.scale(t, m, 0, b.exist)
	result.peakMiB = process.PeakMiB(m.process.Pid)
	m.stop(t)
}

// exist reports whether the MachineSet's status says that there are so many Machines.
func (b *controllersBench) exist(ctx context.Context, count int) (bool, error) {
	var set struct {
		Status struct {
			Replicas int `json:"replicas"`
		} `json:"status"`
	}
	err := b.server.get(ctx, setPath, &set)
	return set.Status.Replicas == count, err
}

// scale brings the MachineSet to so many Machines, waits until settled says so too and nothing is written any more, and returns what
// that cost.
func (b *controllersBench) scale(t *testing.T, m *managerProcess, to int, settled func(context.Context, int) (bool, error)) scaling {
	t.Helper()
	before, cpu := b.server.settled(t), process.CPU(m.process.Pid)
	started := time.Now()
	if err := b.server.patch(contextOf(t), setPath+"/scale", fmt.Sprintf(`{"spec":{"replicas":%d}}`, to)); err != nil {
		t.Fatal(err)
	}
	var out scaling
	until(t, 50*time.Millisecond, fmt.Sprintf("there are %d Machines", to), func(ctx context.Context) (bool, error) {
		count, err := b.server.machines(ctx)
		return count == to, err
	})
	out.there = time.Since(started)
	until(t, 100*time.Millisecond, fmt.Sprintf("%d Machines have settled", to), func(ctx context.Context) (bool, error) { return settled(ctx, to) })
	out.settled = time.Since(started)
	out.writes = b.server.settled(t).since(before)
	out.cpu = process.CPU(m.process.Pid) - cpu
	t.Logf("to %d: there after %.2f s, settled after %.2f s, %.2f CPU seconds, %s", to, out.there.Seconds(), out.settled.Seconds(), out.cpu.Seconds(), out.writes)
	return out
}

// touch writes an annotation to one Machine after another. It returns how long each took until its reconcile had asked the actuator
// for all it wanted.
func (b *controllersBench) touch(t *testing.T, m *managerProcess) []time.Duration {
	t.Helper()
	var list struct {
		Items []struct {
			Metadata struct {
				Name string `json:"name"`
			} `json:"metadata"`
		} `json:"items"`
	}
	if err := b.server.get(contextOf(t), fmt.Sprintf("%s?limit=%d", machinesPath, *touches), &list); err != nil {
		t.Fatal(err)
	}
	for _, machine := range list.Items {
		patch := fmt.Sprintf(`{"metadata":{"annotations":{"bench.machine-iac.io/touched":%q}}}`, time.Now().Format(time.RFC3339Nano))
		if err := b.server.patch(contextOf(t), machinesPath+"/"+machine.Metadata.Name, patch); err != nil {
			t.Fatal(err)
		}
		pause(t, 20*time.Millisecond)
	}
	var took []time.Duration
	until(t, 100*time.Millisecond, "all Machines that were written were reconciled", func(ctx context.Context) (bool, error) {
		text, err := m.get(ctx, "/latencies")
		if err != nil {
			return false, err
		}
		var more []time.Duration
		if err := json.Unmarshal([]byte(text), &more); err != nil {
			return false, err
		}
		took = append(took, more...)
		return len(took) >= len(list.Items), nil
	})
	slices.Sort(took)
	return took
}

// managerProcess is a running test/bench/manager.
type managerProcess struct {
	process *os.Process
	address string
	pprof   string
	ended   chan struct{}
}

func buildManager(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "manager")
	if out, err := exec.CommandContext(contextOf(t), "go", "build", "-o", binary, "./manager").CombinedOutput(); err != nil {
		t.Fatalf("building the manager: %v\n%s", err, out)
	}
	return binary
}

// start starts the manager as the operator's service account, so that its rights are checked as in life.
func (b *controllersBench) start(t *testing.T, controllers string) *managerProcess {
	t.Helper()
	kubeconfig := filepath.Join(b.lab.Dir(), "bench.kubeconfig")
	if err := b.lab.Cluster.ServiceAccountKubeconfig(contextOf(t), lab.Namespace, "machine-api-controllers", kubeconfig); err != nil {
		t.Fatal(err)
	}
	m := &managerProcess{address: freeAddress(t), pprof: freeAddress(t), ended: make(chan struct{})}
	log, err := os.OpenFile(filepath.Join(b.lab.Dir(), "bench-manager.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	command := exec.Command(b.binary, "--kubeconfig", kubeconfig, "--namespace", lab.Namespace, "--controllers", controllers,
		"--listen", m.address, "--pprof", m.pprof)
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt is for the test, which then stops the manager
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	m.process = command.Process
	go func() {
		_ = command.Wait() // whoever waits for something of it says what is missing
		close(m.ended)
	}()
	t.Cleanup(func() {
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("the manager's log ends with\n%s", text[max(0, len(text)-4000):])
		}
		m.stop(t)
	})
	until(t, 100*time.Millisecond, "the manager serves its metrics", func(ctx context.Context) (bool, error) {
		select {
		case <-m.ended:
			t.Fatal("the manager has ended")
		default:
		}
		_, err := m.get(ctx, "/metrics")
		return err == nil, err
	})
	return m
}

// stop ends the process, which may have ended already.
func (m *managerProcess) stop(t *testing.T) {
	t.Helper()
	_ = m.process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-m.ended:
	case <-time.After(time.Minute):
		_ = m.process.Kill()
		t.Error("the manager did not end within a minute")
	}
}

// provisioned returns a check that so many Machines have ever become Provisioned.
func (m *managerProcess) provisioned(ever int) func(context.Context, int) (bool, error) {
	return func(ctx context.Context, _ int) (bool, error) {
		text, err := m.get(ctx, "/metrics")
		return int(sampleOf(text, `mapi_machine_phase_transition_seconds_count{phase="Provisioned"}`)) >= ever, err
	}
}

func (m *managerProcess) get(ctx context.Context, path string) (string, error) {
	return fetch(ctx, m.address, path)
}

// profile profiles the process for 20 seconds. The function that it returns waits for the end of them.
func (m *managerProcess) profile(t *testing.T, file string) (wait func()) {
	t.Helper()
	const seconds = 20
	done := make(chan struct{})
	go func() {
		defer close(done)
		text, err := fetch(contextOf(t), m.pprof, fmt.Sprintf("/debug/pprof/profile?seconds=%d", seconds))
		if err == nil {
			err = os.WriteFile(file, []byte(text), 0o600)
		}
		if err != nil {
			t.Errorf("profiling: %v", err)
		}
	}()
	return func() { <-done }
}

func fetch(ctx context.Context, address, path string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("getting %s: %s", path, response.Status)
	}
	return string(text), err
}

// sampleOf returns the value of one sample in metrics, by its name with labels; zero when it is missing.
func sampleOf(text, name string) float64 {
	for line := range strings.Lines(text) {
		var value float64
		rest, found := strings.CutPrefix(line, name+" ")
		if !found {
			continue
		}
		if _, err := fmt.Sscan(rest, &value); err == nil {
			return value
		}
	}
	return 0
}

// freeAddress returns an address of loopback that nothing listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}
