//go:build e2e

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-iac/machine-iac-operator/hack/devcluster/cluster"
	"github.com/machine-iac/machine-iac-operator/hack/lab"
	"github.com/machine-iac/machine-iac-operator/test/parentdeath"
	"github.com/machine-iac/machine-iac-operator/test/shortdir"
)

const (
	root = "../.."
	// lastWords are printed when everything runs.
	lastWords = "Interrupt this command to stop it"
)

var begun = time.Now()

// world is a user's cluster, and the demo's data folder.
type world struct {
	kubeconfig, dir string
}

func path(t *testing.T, parts ...string) string {
	t.Helper()
	absolute, err := filepath.Abs(filepath.Join(append([]string{root}, parts...)...))
	if err != nil {
		t.Fatal(err)
	}
	return absolute
}

// newWorld starts a development cluster without its KWOK.
func newWorld(t *testing.T) *world {
	t.Helper()
	made, err := cluster.New(cluster.Options{Dir: filepath.Join(t.TempDir(), "cluster"), Bin: path(t, "bin")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := made.Purge(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if err := errors.Join(made.Up(t.Context(), os.Stdout), made.Stop(t.Context(), cluster.KWOK)); err != nil {
		t.Fatal(err)
	}
	return &world{kubeconfig: made.AdminKubeconfig(), dir: filepath.Join(shortdir.New(t), "data")}
}

func (w *world) kubectl(t *testing.T, input string, arguments ...string) string {
	t.Helper()
	command := exec.Command(path(t, "bin", "kubectl"), append([]string{"--kubeconfig", w.kubeconfig}, arguments...)...)
	command.Stdin = strings.NewReader(input)
	out, err := command.Output()
	if failed := new(exec.ExitError); errors.As(err, &failed) {
		t.Fatalf("kubectl %v: %v: %s", arguments, err, failed.Stderr)
	}
	return string(out)
}

// objects lists everything in the cluster except what changes all the time.
func (w *world) objects(t *testing.T) []string {
	t.Helper()
	listable := strings.Fields(w.kubectl(t, "", "api-resources", "--verbs=list", "--output=name"))
	kinds := slices.DeleteFunc(listable, func(kind string) bool {
		return strings.HasPrefix(kind, "events") || strings.HasPrefix(kind, "leases.") || kind == "componentstatuses"
	})
	out := w.kubectl(t, "", "get", strings.Join(kinds, ","), "--all-namespaces", "--ignore-not-found",
		"--output", `jsonpath={range .items[*]}{.apiVersion} {.kind} {.metadata.namespace}/{.metadata.name}{"\n"}{end}`)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	slices.Sort(lines)
	return slices.Compact(lines)
}

func (w *world) command(t *testing.T, arguments ...string) *exec.Cmd {
	t.Helper()
	arguments = append([]string{"--cluster=current", "--dir=" + w.dir}, arguments...)
	command := exec.Command(path(t, "bin", "demo"), arguments...)
	command.Dir, command.Env = path(t), append(os.Environ(), "KUBECONFIG="+w.kubeconfig)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return command
}

func (w *world) down(t *testing.T, arguments ...string) {
	t.Helper()
	out, err := w.command(t, append(arguments, "--down")...).CombinedOutput()
	fmt.Printf("%6.1fs  down: %s", time.Since(begun).Seconds(), out)
	if err != nil {
		t.Fatalf("--down: %v", err)
	}
}

// demo is a running demo.
type demo struct {
	process *os.Process
	ended   chan struct{}
	state   *os.ProcessState
	out     io.Closer

	mu      sync.Mutex
	printed strings.Builder
}

func (w *world) start(t *testing.T, arguments ...string) *demo {
	t.Helper()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	command := w.command(t, arguments...)
	command.Stdout, command.Stderr = writer, writer
	if err := errors.Join(command.Start(), writer.Close()); err != nil {
		t.Fatal(err)
	}
	d := &demo{process: command.Process, ended: make(chan struct{}), out: reader}
	go func() {
		lines := bufio.NewScanner(reader)
		for lines.Scan() {
			fmt.Printf("%6.1fs  demo: %s\n", time.Since(begun).Seconds(), lines.Text())
			d.mu.Lock()
			d.printed.WriteString(lines.Text() + "\n")
			d.mu.Unlock()
		}
	}()
	go func() {
		_ = command.Wait() // see ProcessState
		d.state = command.ProcessState
		close(d.ended)
	}()
	t.Cleanup(func() { _ = d.process.Kill() })
	return d
}

func (d *demo) text() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.printed.String()
}

// until waits until the output contains text.
func (d *demo) until(t *testing.T, text string) {
	t.Helper()
	for range 1200 {
		if strings.Contains(d.text(), text) {
			return
		}
		select {
		case <-d.ended:
			t.Fatalf("the demo ended with %s", d.state)
		case <-time.After(250 * time.Millisecond):
		}
	}
	t.Fatalf("the demo has not printed %q", text)
}

// end waits until the demo and all that it started have ended.
func (d *demo) end(t *testing.T, w *world) {
	t.Helper()
	select {
	case <-d.ended:
	case <-time.After(2 * time.Minute):
		t.Fatal("the demo does not end")
	}
	for _, pid := range w.processes(t) {
		if !parentdeath.Ends(pid) {
			t.Errorf("process %d still runs", pid)
		}
	}
}

// processes returns all processes that use the demo's data folder: managers, their supervisors and engines, KWOK,
// kubectl.
func (w *world) processes(t *testing.T) []int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var found []int
	for _, file := range files {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		line, _ := os.ReadFile(file) // it may have ended
		if err == nil && strings.Contains(string(line), w.dir) {
			found = append(found, pid)
		}
	}
	return found
}

// running checks a demo's output.
func (w *world) running(t *testing.T, d *demo) {
	t.Helper()
	d.until(t, lastWords)
	if found := regexp.MustCompile(`(?m)^hollow-\S+ +Running`).FindAllString(d.text(), -1); len(found) != replicas {
		t.Errorf("got %d Machines that run, want %d, in\n%s", len(found), replicas, d.text())
	}
	nodes := w.kubectl(t, "", "get", "nodes", "--selector=machine-iac.io/machine-uid",
		"--output", `jsonpath={range .items[*]}{.spec.taints[*].key}{"\n"}{end}`)
	if strings.Count(nodes, "kwok.x-k8s.io/node") != replicas {
		t.Errorf("got Nodes with the taints\n%s\nwant %d that keep other Pods away", nodes, replicas)
	}
}

// gone checks that nothing is left of a demo, and that deleting it again is a no-op.
func (w *world) gone(t *testing.T, before []string) {
	t.Helper()
	w.down(t)
	w.down(t)
	var diff string
	for range 40 { // an API group's APIService is removed shortly after it
		if diff = cmp.Diff(before, w.objects(t)); diff == "" {
			break
		}
		time.Sleep(500 * time.Millisecond)
	}
	if diff != "" {
		t.Errorf("the cluster is not as before (-before +after):\n%s", diff)
	}
	if _, err := os.Stat(w.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the data folder: got %v, want none", err)
	}
}

// story installs the demo, ends it in three ways, and deletes it.
func (w *world) story(t *testing.T) {
	before := w.settled(t)
	killed := w.start(t, "--yes")
	w.running(t, killed)
	who := w.kubectl(t, "", "--kubeconfig", filepath.Join(w.dir, "operator.kubeconfig"), "auth", "whoami")
	if !strings.Contains(who, lab.UserOf("machine-api-controllers")) {
		t.Errorf("the manager is %s", who)
	}
	if len(w.processes(t)) < 4 {
		t.Errorf("got processes %v, want the demo, the manager, its supervisor and KWOK", w.processes(t))
	}
	if err := killed.process.Kill(); err != nil {
		t.Fatal(err)
	}
	killed.end(t, w)

	unread := w.start(t, "--yes")
	w.running(t, unread)
	unread.out.Close() //nolint:errcheck // as head does
	unread.end(t, w)
	if unread.state.ExitCode() != 0 {
		t.Errorf("without a reader the demo ended with %s", unread.state)
	}

	interrupted := w.start(t, "--yes")
	w.running(t, interrupted)
	out, err := w.command(t, "--down").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "another demo uses it") {
		t.Errorf("--down beside a demo: %v\n%s", err, out)
	}
	if err := interrupted.process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	interrupted.end(t, w)
	if interrupted.state.ExitCode() != 0 {
		t.Errorf("interrupted, the demo ended with %s", interrupted.state)
	}
	w.gone(t, before)
}

func TestTheDemoInAClusterThatExists(t *testing.T) {
	w := newWorld(t)
	t.Run("with nothing in it", w.story)
	t.Run("with a namespace that is in use, and a KWOK", func(t *testing.T) {
		w.kubectl(t, "", "create", "namespace", lab.Namespace)
		w.kubectl(t, "", "--namespace", lab.Namespace, "create", "configmap", "theirs")
		w.kubectl(t, "", "create", "deployment", "kwok-controller", "--image=registry.example/kwok:v1", "--replicas=0")
		before := w.settled(t)
		d := w.start(t)
		w.running(t, d)
		if !strings.Contains(d.text(), "KWOK     Deployment default/kwok-controller\n") ||
			strings.Contains(d.text(), "starting KWOK") {
			t.Errorf("it does not use the KWOK that there is:\n%s", d.text())
		}
		if err := d.process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		d.end(t, w)
		w.gone(t, before)
		w.kubectl(t, "", "delete", "namespace", lab.Namespace)
		w.kubectl(t, "", "delete", "deployment", "kwok-controller")
	})
	t.Run("with the operator in the cluster", w.inCluster)
	for name, tc := range map[string]struct{ manifest, want string }{
		"OpenShift": {crd("clusteroperators", "config.openshift.io"),
			"has clusteroperators.config.openshift.io already"},
		"Machines": {crd("machines", "machine.openshift.io"), "has machines.machine.openshift.io already"},
		"our operator": {crd("machineapioperators", "machine-iac.io"),
			"has machineapioperators.machine-iac.io already"},
		"an object of that name": {
			"{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: kubemark}}",
			"ClusterRole kubemark exists, and was not created by this demo",
		},
	} {
		t.Run("refused with "+name, func(t *testing.T) {
			w.kubectl(t, tc.manifest, "apply", "-f", "-")
			defer w.kubectl(t, tc.manifest, "delete", "-f", "-")
			before := w.objects(t)
			refused := w.command(t, "--yes")
			late := time.AfterFunc(time.Minute, func() { _ = refused.Process.Kill() })
			defer late.Stop()
			out, err := refused.CombinedOutput()
			if err == nil || !strings.Contains(string(out), tc.want) {
				t.Errorf("got %v and\n%s\nwant %q", err, out, tc.want)
			}
			w.gone(t, before)
		})
	}
}

// settled waits until controllers have created a new cluster's objects, and lists everything.
func (w *world) settled(t *testing.T) []string {
	t.Helper()
	var before []string
	for range 60 {
		now := w.objects(t)
		all := strings.Join(now, "\n")
		if slices.Equal(now, before) && strings.Count(all, "/kube-root-ca.crt") == strings.Count(all, "v1 Namespace ") {
			return now
		}
		before = now
		time.Sleep(3 * time.Second)
	}
	t.Fatal("the cluster does not settle")
	return nil
}

func crd(plural, group string) string {
	return fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %s.%s, annotations: {api-approved.kubernetes.io: unapproved}}
spec:
  group: %[2]s
  scope: Cluster
  names: {plural: %[1]s, singular: x, kind: X}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`, plural, group)
}

// inCluster makes the demo install the operator into the cluster. The test runs the programs of its Pods, which have no
// Node.
func (w *world) inCluster(t *testing.T) {
	before := w.settled(t)
	d := w.start(t, "--image=registry.example/operator:v1")
	attached, err := lab.Attach(lab.Options{Root: root, Dir: filepath.Join(filepath.Dir(w.dir), "pods")}, w.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	d.until(t, "waiting for the operator and the manager in the cluster")
	// The credentials are for Pods, which use the API server's Service.
	server := w.kubectl(t, "", "config", "view", "--output=jsonpath={.clusters[0].cluster.server}")
	w.kubectl(t, "", "--namespace", lab.Namespace, "patch", "secret", "kubemark-credentials",
		"--patch", fmt.Sprintf(`{"stringData": {"server": %q}}`, server))
	if attached.Operator, err = attached.RunOperator(t.Context(), lab.OperatorInstance{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var kubelet sync.WaitGroup
	kubelet.Go(func() { playKubelet(ctx, attached) })
	defer func() {
		cancel()
		kubelet.Wait()
		if err := attached.Operator.Stop(); err != nil {
			t.Error(err)
		}
	}()
	made := func(ctx context.Context) (bool, error) {
		image, err := attached.Kubectl(ctx, "get", "deployment", "machine-api-controllers",
			"--output=jsonpath={.spec.template.spec.containers[0].image}")
		return image == "registry.example/operator:v1", err
	}
	if err := attached.Until(ctx, time.Minute, "the operator has made the manager's Deployment", made); err != nil {
		t.Fatal(err)
	}
	manager, err := attached.StartManager(ctx)
	if err != nil {
		log, _ := os.ReadFile(filepath.Join(attached.Dir(), "logs", "manager.log"))
		t.Fatalf("%v\n%s", err, log)
	}
	w.running(t, d)
	if err := d.process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	d.end(t, w)
	out, err := w.command(t).CombinedOutput()
	if err == nil || !strings.Contains(string(out), `installed with --image="registry.example/operator:v1", not ""`) {
		t.Errorf("with another image: got %v and\n%s", err, out)
	}
	w.down(t)
	if err := manager.Stop(time.Minute); err != nil {
		t.Error(err)
	}
	w.gone(t, before)
}

// playKubelet marks Pods ready, and stops the operator when its Deployment is scaled to zero.
func playKubelet(ctx context.Context, attached *lab.Lab) {
	const ready = `{"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}`
	for ctx.Err() == nil {
		names, _ := attached.Kubectl(ctx, "get", "pods", "--field-selector=status.phase=Pending", "--output=name")
		for name := range strings.FieldsSeq(names) {
			_, _ = attached.Kubectl(ctx, "patch", name, "--subresource=status", "--patch", ready) // it may be gone
		}
		wanted, err := attached.Kubectl(ctx, "get", "deployment", "machine-api-operator",
			"--output=jsonpath={.spec.replicas}")
		if err == nil && wanted == "0" {
			_ = attached.Operator.Stop() // the test stops it too
		}
		time.Sleep(250 * time.Millisecond)
	}
}

// TestTheLocalDemo runs the demo on a cluster of its own until its rollouts have ended.
func TestTheLocalDemo(t *testing.T) {
	w := &world{dir: filepath.Join(shortdir.New(t), "data")}
	t.Cleanup(func() { w.down(t, "--cluster=local") })
	d := w.start(t, "--cluster=local")
	d.until(t, "Try next")
	for what, times := range map[string]int{
		"successfully rolled out": 3, "New Machines are needed because of cpu.": 1,
	} {
		if got := strings.Count(d.text(), what); got != times {
			t.Errorf("got %q %d times, want %d, in\n%s", what, got, times, d.text())
		}
	}
	if err := d.process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	<-d.ended // its cluster keeps running
	if d.state.ExitCode() != 0 {
		t.Errorf("interrupted, the demo ended with %s", d.state)
	}
}

// TestTheDemoInKind runs the demo in a cluster with a real kubelet, if docker and kind are available.
func TestTheDemoInKind(t *testing.T) {
	for _, command := range [][]string{{"docker", "info"}, {"kind", "version"}} {
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Skipf("%v does not work here: %v %s", command, err, out)
		}
	}
	w := &world{kubeconfig: filepath.Join(t.TempDir(), "kubeconfig"), dir: filepath.Join(shortdir.New(t), "data")}
	const name = "machine-iac-demo-test"
	t.Cleanup(func() { _ = exec.Command("kind", "delete", "cluster", "--name", name).Run() })
	create := exec.Command("kind", "create", "cluster", "--name", name, "--kubeconfig", w.kubeconfig, "--wait", "3m")
	if out, err := create.CombinedOutput(); err != nil {
		t.Skipf("kind cannot create a cluster here: %v\n%s", err, out)
	}
	w.story(t)
}
