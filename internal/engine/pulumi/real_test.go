package pulumi

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	"github.com/google/go-cmp/cmp"

	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
	"github.com/machine-iac/machine-iac-operator/internal/engine/provider"
	"github.com/machine-iac/machine-iac-operator/internal/engine/sandbox"
	"github.com/machine-iac/machine-iac-operator/internal/engine/workdir"
	"github.com/machine-iac/machine-iac-operator/test/controlplane"
	"github.com/machine-iac/machine-iac-operator/test/long"
	"github.com/machine-iac/machine-iac-operator/test/parentdeath"
	"github.com/machine-iac/machine-iac-operator/test/shortdir"
)

// start returns the API server that the tests of this package share: starting one is expensive.
var start = sync.OnceValues(func() (*controlplane.ControlPlane, error) { return controlplane.Start(controlplane.Default) })

// started is what start has returned; nil while nobody has called it.
var started atomic.Pointer[controlplane.ControlPlane]

func TestMain(m *testing.M) {
	if parentdeath.IsParent() {
		beParent()
		return
	}
	code := m.Run()
	if plane := started.Load(); plane != nil {
		if err := plane.Stop(); err != nil {
			_, _ = os.Stderr.WriteString(err.Error() + "\n")
		}
	}
	os.Exit(code)
}

// bench is a real API server behind a proxy, a real CLI with a real provider, and what is saved between them.
type bench struct {
	*Engine
	t       *testing.T
	address string
	key     *Key
	name    string

	mu      sync.Mutex
	saved   [][]byte
	printed []string
	// after is called when a Node was made, before the provider hears of it.
	after atomic.Pointer[func()]
}

func repository(t *testing.T, parts ...string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(append([]string{"..", "..", ".."}, parts...)...))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

var theKey = sync.OnceValues(func() (*Key, error) { return NewKey(context.Background()) })

func newBench(t *testing.T, name string, mods ...func(*Options)) *bench {
	t.Helper()
	plane, err := start()
	if err != nil {
		t.Fatal(err)
	}
	started.Store(plane)
	b := &bench{t: t, name: name}
	proxy := httptest.NewServer(b.proxy(plane))
	t.Cleanup(proxy.Close)
	b.address = proxy.URL
	if b.key, err = theKey(); err != nil {
		t.Fatal(err)
	}
	binary, err := Find(t.Context(), repository(t, "bin", "pulumi"))
	if err != nil {
		t.Fatalf("%v; run 'make tools'", err)
	}
	confined, err := sandbox.New(sandbox.Options{Mode: sandbox.Preferred})
	if err != nil {
		t.Fatal(err)
	}
	dir := shortdir.New(t)
	options := Options{
		Binary: binary, WorkDir: dir, Plugins: repository(t, "bin", "pulumi-plugins"), ProviderMirror: repository(t, "bin", "mirror"),
		WaitDelay: 20 * time.Second, Logger: testr.New(t), Sandbox: confined, Warm: provider.Options{Max: 2},
	}
	for _, mod := range mods {
		mod(&options)
	}
	if b.Engine, err = New(options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if status, _ := b.call(http.MethodDelete, "/api/v1/nodes/"+name, ""); status != http.StatusOK && status != http.StatusNotFound {
			t.Errorf("deleting the Node returns %d", status)
		}
	})
	return b
}

// proxy forwards requests as an administrator, and holds back the response to the creation of a Node.
func (b *bench) proxy(plane *controlplane.ControlPlane) http.Handler {
	target, err := url.Parse(plane.Config.Host)
	if err != nil {
		b.t.Fatal(err)
	}
	certificate, err := tls.X509KeyPair(plane.Config.CertData, plane.Config.KeyData)
	if err != nil {
		b.t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(plane.Config.CAData)
	return &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport: &http.Transport{TLSClientConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, RootCAs: roots, MinVersion: tls.VersionTLS12}},
		ModifyResponse: func(response *http.Response) error {
			made := response.Request.Method == http.MethodPost && strings.HasSuffix(response.Request.URL.Path, "/nodes")
			if hook := b.after.Load(); made && hook != nil {
				(*hook)()
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
}

func (b *bench) call(method, path, body string) (int, map[string]any) {
	b.t.Helper()
	request, err := http.NewRequestWithContext(context.Background(), method, b.address+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	request.Header.Set("Content-Type", map[string]string{http.MethodPatch: "application/merge-patch+json"}[method])
	if method == http.MethodPost {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		b.t.Fatal(err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	var object map[string]any
	_ = json.Unmarshal(raw, &object) // errors are no objects
	return response.StatusCode, object
}

// node returns the Node's UID and labels; "" when there is none.
func (b *bench) node() (uid string, labels map[string]any) {
	b.t.Helper()
	status, object := b.call(http.MethodGet, "/api/v1/nodes/"+b.name, "")
	if status != http.StatusOK {
		return "", nil
	}
	meta := object["metadata"].(map[string]any)
	return meta["uid"].(string), meta["labels"].(map[string]any)
}

const userData = "#cloud-config hunter22hunter22"

func (b *bench) run(id string, spec string) RunSpec {
	return RunSpec{
		ID: id, Project: "node", Program: os.DirFS("testdata/node"), Key: b.key, Secret: []string{"user_data"},
		Variables: []byte(`{"machine":{"name":"` + b.name + `","uid":"uid-` + b.name + `"},"provider_spec":` + spec + `,"user_data":"` + userData + `"}`),
		Environment: map[string]string{
			"KUBE_HOST": b.address, "KUBE_LOAD_CONFIG_FILE": "false", "KUBECTL_PROVIDER_APPLY_RETRY_COUNT": "0",
		},
		Checkpoint: b.last(), Sensitive: []string{userData},
		Output: func(text string) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.printed = append(b.printed, text)
		},
		Save: func(_ context.Context, checkpoint []byte) error {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.saved = append(b.saved, bytes.Clone(checkpoint))
			return nil
		},
	}
}

func (b *bench) last() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.saved) == 0 {
		return nil
	}
	return b.saved[len(b.saved)-1]
}

func (b *bench) open(r RunSpec) *Workspace {
	b.t.Helper()
	workspace, err := b.Open(b.t.Context(), r)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = workspace.Close() })
	return workspace
}

// with opens a run, uses it and closes it.
func (b *bench) with(id, spec string, use func(*Workspace) (*engine.Report, error)) *engine.Report {
	b.t.Helper()
	workspace := b.open(b.run(id, spec))
	report, err := use(workspace)
	if err != nil {
		b.t.Fatalf("%s: %v\n%s", id, err, report.Text)
	}
	if err := workspace.Close(); err != nil {
		b.t.Fatal(err)
	}
	return report
}

// destroy destroys without the program and its configuration, and checks that nothing else is done without them.
func (b *bench) destroy() {
	b.t.Helper()
	r := b.run("destroy", small)
	r.Destroys, r.Variables = true, []byte("{}")
	workspace := b.open(r)
	for name, operation := range map[string]func(context.Context) (*engine.Report, error){
		"Plan": workspace.Plan, "Apply": workspace.Apply, "ApplyPlan": workspace.ApplyPlan,
	} {
		_, err := operation(b.t.Context())
		if err == nil || !strings.Contains(err.Error(), "for a destroy, without its program") {
			b.t.Errorf("%s without the program: %v, want that it is refused", name, err)
		}
	}
	if uid, _ := b.node(); uid == "" {
		b.t.Fatal("the Node is gone before the destroy")
	}
	if report, err := workspace.Destroy(b.t.Context()); err != nil {
		b.t.Fatalf("%v\n%s", err, report.Text)
	}
	if err := workspace.Close(); err != nil {
		b.t.Fatal(err)
	}
}

func changesOf(report *engine.Report) map[string]engine.Action {
	printed := map[string]engine.Action{}
	for _, change := range report.Changes {
		printed[change.Address] = change.Action
	}
	return printed
}

const (
	nodeAddress = "kubectl:index/manifest:Manifest.this"
	small       = `{"team":"red","size":"small"}`
)

func (b *bench) create() {
	b.t.Helper()
	b.with("create", small, func(f *Workspace) (*engine.Report, error) { return f.Apply(b.t.Context()) })
	if uid, _ := b.node(); uid == "" {
		b.t.Fatal("there is no Node after the create")
	}
}

func (b *bench) wantPlan(id, spec string, want engine.Action) *engine.Report {
	b.t.Helper()
	report := b.with(id, spec, func(f *Workspace) (*engine.Report, error) { return f.Plan(b.t.Context()) })
	if diff := cmp.Diff(map[string]engine.Action{nodeAddress: want}, changesOf(report)); diff != "" {
		b.t.Errorf("%s: the plan differs (-want +got):\n%s", id, diff)
	}
	return report
}

func TestAStackFromCreateToDestroy(t *testing.T) {
	b := newBench(t, "story")
	b.create()
	if got := b.Starts(); got != 1 {
		t.Errorf("a create started %d processes, want 1", got)
	}
	printed := strings.Join(b.printed, "\n")
	for _, want := range []string{nodeAddress + ": create begun\n", nodeAddress + ": create done\n", "Z Done: 2 create"} {
		if !strings.Contains(printed+"\n", want) {
			t.Errorf("the output is\n%s\nwant %q in it", printed, want)
		}
	}
	if bytes.Contains(b.last(), []byte("hunter22")) || bytes.Contains(b.last(), []byte(b.key.passphrase)) {
		t.Error("the checkpoint shows a secret")
	}
	if report := b.wantPlan("unchanged", small, engine.ActionNoOp); !report.NoChange() {
		t.Errorf("a plan right after the create is %+v, want no change", report)
	}
	if report := b.wantPlan("replaced", `{"team":"red","size":"big"}`, engine.ActionReplace); len(report.Destroys()) != 1 {
		t.Errorf("destroys are %v, want the instance", report.Destroys())
	}
	before, _ := b.node()
	const blue = `{"team":"blue","size":"small"}`
	b.with("update", blue, func(f *Workspace) (*engine.Report, error) {
		report, err := f.Plan(t.Context())
		if err != nil || !report.InPlaceOnly() {
			t.Fatalf("the plan is %+v, %v, want a change in place", report, err)
		}
		return f.ApplyPlan(t.Context())
	})
	after, labels := b.node()
	if after != before || labels["team"] != "blue" {
		t.Errorf("the Node is %s with %v, want %s with the new label", after, labels, before)
	}
	b.destroy()
	if uid, _ := b.node(); uid != "" {
		t.Error("the Node is there after the destroy")
	}
	if read, err := readCheckpoint(b.last()); err != nil || len(read.resources) != 0 {
		t.Errorf("the checkpoint has %d resources, %v, want none", len(read.resources), err)
	}
	if left, err := os.ReadDir(b.runs()); err != nil || len(left) != 0 {
		t.Errorf("folders of runs are left: %v, %v", left, err)
	}
}

func TestAPlanReportsWhatOthersDid(t *testing.T) {
	b := newBench(t, "drift")
	b.create()
	saved := len(b.saved)
	if status, _ := b.call(http.MethodPatch, "/api/v1/nodes/drift", `{"metadata":{"labels":{"team":"green"}}}`); status != http.StatusOK {
		t.Fatalf("changing the Node returns %d", status)
	}
	if report := b.wantPlan("changed", small, engine.ActionUpdate); len(report.Missing()) != 0 {
		t.Errorf("gone are %v, want none", report.Missing())
	}
	if status, _ := b.call(http.MethodDelete, "/api/v1/nodes/drift", ""); status != http.StatusOK {
		t.Fatalf("deleting the Node returns %d", status)
	}
	report := b.wantPlan("gone", small, engine.ActionCreate)
	if gone := report.Missing(); len(gone) != 1 || gone[0].Address != nodeAddress {
		t.Errorf("gone are %v, want the Node", gone)
	}
	if len(b.saved) != saved {
		t.Error("a plan has changed the checkpoint: the instance would be forgotten")
	}
}

// killDuringCreate kills the CLI when the Node is created and the CLI does not know of it yet.
func (b *bench) killDuringCreate() {
	b.t.Helper()
	workspace := b.open(b.run("killed", small))
	release := make(chan struct{})
	hook := func() {
		// The mirror has the time that a cloud takes.
		for !pendingIn(b.last()) && b.t.Context().Err() == nil {
			time.Sleep(time.Millisecond)
		}
		if pid := workspace.command.pid.Load(); pid != 0 {
			_ = syscall.Kill(int(pid), syscall.SIGKILL)
		}
		<-release
	}
	b.after.Store(&hook)
	_, err := workspace.Apply(b.t.Context())
	close(release)
	b.after.Store(nil)
	if failure.ClassOf(err) != failure.Killed {
		b.t.Fatalf("Apply() = %v, want an engine that was killed", err)
	}
	if left, err := workdir.KillProcesses(workspace.dir); err != nil || left != 0 {
		b.t.Errorf("%d plugins go on without their engine, %v", left, err)
	}
	if err := workspace.Close(); err != nil {
		b.t.Fatal(err)
	}
	if uid, _ := b.node(); uid == "" {
		b.t.Fatal("the Node was not made")
	}
}

func pendingIn(checkpoint []byte) bool {
	read, err := readCheckpoint(checkpoint)
	return err == nil && len(read.pending) > 0
}

func TestALostCreateIsAdoptedAndNotMadeTwice(t *testing.T) {
	long.Test(t)
	b := newBench(t, "lost")
	b.killDuringCreate()
	before, _ := b.node()
	lookup, err := b.RunSearch(t.Context(), engine.SearchLookup, b.run("look", small))
	if err != nil {
		t.Fatal(err)
	}
	found, err := LookupResources(lookup)
	if err != nil || !bytes.Contains(found[nodeAddress], []byte("uid-lost")) {
		t.Fatalf("found is %s, %v, want the Node with the Machine's UID", found, err)
	}
	adopted, err := Adopt(b.last(), lookup)
	if err != nil {
		t.Fatal(err)
	}
	b.saved = append(b.saved, adopted)
	b.with("continue", small, func(f *Workspace) (*engine.Report, error) {
		report, err := f.Plan(t.Context())
		if err != nil || len(report.Destroys()) != 0 || len(report.Creates()) != 0 {
			t.Fatalf("the plan is %+v, %v, want nothing made and nothing destroyed", report, err)
		}
		return f.ApplyPlan(t.Context())
	})
	if after, _ := b.node(); after != before {
		t.Errorf("the Node is %s, want %s: it was made twice", after, before)
	}
	if pendingIn(b.last()) {
		t.Error("operations are pending still")
	}
	b.wantPlan("unchanged", small, engine.ActionNoOp)
	b.with("destroy", small, func(f *Workspace) (*engine.Report, error) { return f.Destroy(t.Context()) })
	if uid, _ := b.node(); uid != "" {
		t.Error("the Node is there after the destroy")
	}
}

func TestALookupThatFindsNothingClearsTheWay(t *testing.T) {
	b := newBench(t, "nothing")
	b.killDuringCreate()
	if status, _ := b.call(http.MethodDelete, "/api/v1/nodes/nothing", ""); status != http.StatusOK {
		t.Fatalf("deleting the Node returns %d", status)
	}
	if _, err := b.RunSearch(t.Context(), engine.SearchLookup, b.run("look", small)); err == nil || !strings.Contains(err.Error(), `nodes "nothing" not found`) {
		t.Fatalf("Look() = %v, want the provider's words for what is not there", err)
	}
	adopted, err := Adopt(b.last(), nil)
	if err != nil || pendingIn(adopted) {
		t.Fatalf("the checkpoint is %s, %v, want nothing pending", adopted, err)
	}
	b.saved = append(b.saved, adopted)
	b.create()
}

// TestAFullDiskLeavesACreateInDoubt fills the disk after the Node is created and before the CLI knows. The CLI reports the Node as
// created, and replaces its checkpoint with a truncated one.
func TestAFullDiskLeavesACreateInDoubt(t *testing.T) {
	long.Test(t)
	dir := shortdir.New(t)
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64m,mode=0700"); err != nil {
		t.Skipf("a file system of its own needs root: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	b := newBench(t, "full", func(o *Options) { o.WorkDir = dir })
	workspace := b.open(b.run("full", small))
	hook := func() {
		for !pendingIn(b.last()) && b.t.Context().Err() == nil {
			time.Sleep(time.Millisecond)
		}
		filler, err := os.Create(filepath.Join(dir, "filler"))
		if err != nil {
			t.Error(err)
			return
		}
		_, err = io.Copy(filler, rand.Reader)
		if err := errors.Join(err, filler.Close()); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("filling the disk: %v", err)
		}
	}
	b.after.Store(&hook)
	_, err := workspace.Apply(t.Context())
	b.after.Store(nil)
	if failure.ClassOf(err) != failure.StateNotSaved || workspace.Unsaved() != nil {
		t.Errorf("Apply() = %v (%s), unsaved %q, want StateNotSaved and nothing", err, failure.ClassOf(err), workspace.Unsaved())
	}
	if uid, _ := b.node(); uid == "" || !pendingIn(b.last()) {
		t.Errorf("the Node is %q, the checkpoint %s; want it created, and its create pending", uid, b.last())
	}
}

func TestAnInterruptedRunIsSaved(t *testing.T) {
	b := newBench(t, "interrupted")
	workspace := b.open(b.run("interrupted", small))
	ctx, cancel := context.WithCancelCause(t.Context())
	stopping := errors.New("the manager stops")
	hook := func() { cancel(stopping) }
	b.after.Store(&hook)
	_, err := workspace.Apply(ctx)
	b.after.Store(nil)
	if failure.ClassOf(err) != failure.Interrupted || !errors.Is(err, stopping) {
		t.Fatalf("Apply() = %v, want an interrupt and its cause", err)
	}
	read, err := readCheckpoint(b.last())
	if err != nil || len(read.pending) != 0 || read.find("urn:pulumi:machine::node::kubectl:index/manifest:Manifest::this") == nil {
		t.Errorf("the checkpoint is %s, %v, want the Node in it: it was made", b.last(), err)
	}
}

func TestAFailedSaveFailsTheRunAndKeepsTheCheckpoint(t *testing.T) {
	b := newBench(t, "unsaved")
	run := b.run("unsaved", small)
	fenced := errors.New("fenced off")
	run.Save = func(context.Context, []byte) error { return fenced }
	workspace := b.open(run)
	_, err := workspace.Apply(t.Context())
	if failure.ClassOf(err) != failure.StateNotSaved || !errors.Is(err, fenced) {
		t.Fatalf("Apply() = %v, want a state that was not saved, and why", err)
	}
	if read, err := readCheckpoint(workspace.Unsaved()); err != nil || len(read.resources) == 0 {
		t.Errorf("Unsaved() has %d resources, %v, want what was made", len(read.resources), err)
	}
}

func TestNothingIsDownloaded(t *testing.T) {
	cases := map[string]struct {
		mod  func(*Options)
		want string
	}{
		"no plugin":           {mod: func(o *Options) { o.Plugins = t.TempDir() }, want: "terraform-provider"},
		"no provider bridged": {mod: func(o *Options) { o.ProviderMirror = t.TempDir() }, want: ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, "offline", tc.mod)
			workspace := b.open(b.run("offline", small))
			report, err := workspace.Apply(t.Context())
			if err == nil || !strings.Contains(err.Error()+report.Text, tc.want) {
				t.Errorf("Apply() = %v, want that the plugin is missing", err)
			}
			if uid, _ := b.node(); uid != "" {
				t.Error("a Node was made")
			}
		})
	}
}
