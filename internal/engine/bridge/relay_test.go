package bridge

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/machine-iac/machine-iac-operator/internal/engine/provider"
	"github.com/machine-iac/machine-iac-operator/internal/engine/workdir"
	"github.com/machine-iac/machine-iac-operator/test/parentdeath"
)

// echoes is set in the processes of this test that are bridges.
const echoes = "BRIDGE_OF_A_TEST"

func TestMain(m *testing.M) {
	if os.Getenv(echoes) != "" {
		beBridge()
		return
	}
	os.Exit(m.Run())
}

// world is the bridges of a test, which are processes of it.
type world struct {
	*Bridges
	t    *testing.T
	log  string
	time *clocktesting.FakeClock
}

func newWorld(t *testing.T, most int) *world {
	t.Helper()
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	now := clocktesting.NewFakeClock(time.Now())
	bridges := New(filepath.Join(dir, "b"), self, nil, provider.Options{Max: most, Logger: testr.New(t), Clock: now})
	t.Cleanup(bridges.Close)
	return &world{Bridges: bridges, t: t, log: filepath.Join(dir, "log"), time: now}
}

func (w *world) serve(variables ...string) *Relay {
	w.t.Helper()
	environment := map[string]string{echoes: w.log}
	for _, one := range variables {
		environment[one] = "set"
	}
	relay, err := w.Serve(provider.Use{Environment: environment})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = relay.Close() })
	return relay
}

// calls are the calls that bridges have had, as "process method message".
func (w *world) calls() []string {
	raw, err := os.ReadFile(w.log)
	if err != nil {
		return nil
	}
	return strings.Split(strings.TrimSpace(string(raw)), "\n")
}

// asked returns how often bridges were asked by a method.
func (w *world) asked(method string) int {
	return len(slices.DeleteFunc(w.calls(), func(call string) bool { return !strings.Contains(call, " "+method+" ") }))
}

// client is a CLI's connection.
type client struct {
	t *testing.T
	*grpc.ClientConn
}

func connect(t *testing.T, to *Relay) *client {
	t.Helper()
	connection, err := grpc.NewClient(fmt.Sprintf("127.0.0.1:%d", to.Port()), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	return &client{t: t, ClientConn: connection}
}

func (c *client) ask(method, message string) (string, error) {
	response := &frame{}
	err := c.Invoke(c.t.Context(), service+method, &frame{content: []byte(message)}, response, grpc.ForceCodec(codec{}))
	return string(response.content), err
}

// must asks, and returns the process that has responded.
func (c *client) must(method, message string) string {
	c.t.Helper()
	response, err := c.ask(method, message)
	if err != nil {
		c.t.Fatalf("%s: %v", method, err)
	}
	process, _, _ := strings.Cut(response, " ")
	return process
}

// begin does what the CLI does before it asks for resources.
func (c *client) begin(parameters string) string {
	c.t.Helper()
	if _, err := c.ask("Handshake", ""); status.Code(err) != codes.Unimplemented {
		c.t.Fatalf("Handshake returns %v, want what a bridge returns", err)
	}
	c.must("Attach", "127.0.0.1:1")
	c.must("GetPluginInfo", "")
	c.must("Parameterize", parameters)
	return c.must("Configure", "configuration")
}

func TestABridgeServesRunAfterRun(t *testing.T) {
	w := newWorld(t, 4)
	first := w.serve()
	c := connect(t, first)
	process := c.begin("acme")
	c.must("GetSchema", "")
	if response, err := c.ask("Read", "disk"); err != nil || !strings.HasSuffix(response, "Read disk") {
		t.Errorf("Read returns %q, %v, want what the bridge says", response, err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := connect(t, w.serve())
	if again := second.begin("acme"); again != process {
		t.Errorf("the second run has the bridge %s, want %s again", again, process)
	}
	second.must("GetSchema", "")
	second.must("Parameterize", "acme")
	for method, want := range map[string]int{"Parameterize": 1, "GetSchema": 1, "GetPluginInfo": 1, "Attach": 3, "Configure": 2} {
		if got := w.asked(method); got != want {
			t.Errorf("bridges were asked %d times by %s, want %d:\n%s", got, method, want, strings.Join(w.calls(), "\n"))
		}
	}
}

func TestConnectionsShareNoBridge(t *testing.T) {
	w := newWorld(t, 2) // fewer than there are connections
	relay := w.serve()
	one, other, third := connect(t, relay), connect(t, relay), connect(t, relay)
	seen := []string{one.begin("acme"), other.begin("acme"), third.begin("zeta")}
	slices.Sort(seen)
	if len(slices.Compact(seen)) != 3 {
		t.Errorf("three connections have the bridges %v, want one each", seen)
	}
	if _, err := one.ask("Parameterize", "zeta"); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("a bridge becomes that to another provider: %v", err)
	}
	if other := connect(t, w.serve("OTHER_CREDENTIALS")).begin("acme"); slices.Contains(seen, other) {
		t.Errorf("a run with another environment has the bridge %s of the first", other)
	}
	if err := relay.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestBridgesToSeveralProvidersServeRunAfterRun(t *testing.T) {
	w := newWorld(t, 4)
	var seen [][]string
	for range 2 {
		relay, err := w.Serve(provider.Use{Environment: map[string]string{echoes: w.log}, Owner: "owner"})
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, []string{connect(t, relay).begin("acme"), connect(t, relay).begin("zeta")})
		if err := relay.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(seen[0], seen[1]) {
		t.Errorf("the second run has the bridges %v, want %v again", seen[1], seen[0])
	}
}

func TestBridgesHaveCredentialFilesOfTheirOwn(t *testing.T) {
	w := newWorld(t, 1)
	relay, err := w.Serve(provider.Use{Environment: map[string]string{echoes: w.log}, Secrets: map[string]string{"CLOUDS": "hunter22"}, Owner: "owner"})
	if err != nil {
		t.Fatal(err)
	}
	paths := map[string]bool{}
	for range 2 { // there is room for one in the pool
		pid := connect(t, relay).begin("acme")
		environment, err := os.ReadFile(filepath.Join("/proc", pid, "environ"))
		if err != nil {
			t.Fatal(err)
		}
		_, after, _ := strings.Cut("\x00"+string(environment), "\x00CLOUDS=")
		path, _, _ := strings.Cut(after, "\x00")
		if content, err := os.ReadFile(path); err != nil || string(content) != "hunter22" {
			t.Errorf("the bridge's CLOUDS is %q with %q, %v", path, content, err)
		}
		paths[path] = true
	}
	if len(paths) != 2 {
		t.Errorf("two bridges have the files %v", paths)
	}
	if err := relay.Close(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	for path := range paths {
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s is left", path)
		}
	}
}

func TestASchemaIsMadeAnewAfterAnHour(t *testing.T) {
	w := newWorld(t, 1)
	c := connect(t, w.serve())
	c.begin("acme")
	for want, later := range []time.Duration{0, recordedFor - 1, 1} {
		w.time.Step(later)
		c.must("GetSchema", "acme")
		if got := w.asked("GetSchema"); got != max(1, want) {
			t.Errorf("bridges were asked %d times for the schema, want %d", got, max(1, want))
		}
	}
}

func TestNothingIsAskedBeforeTheConfiguration(t *testing.T) {
	w := newWorld(t, 1)
	first := w.serve()
	connect(t, first).begin("acme")
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	c := connect(t, w.serve())
	for _, method := range []string{"Read", "Create", "Check", "Diff", "Delete", "Invoke"} {
		if _, err := c.ask(method, "x"); status.Code(err) != codes.FailedPrecondition {
			t.Errorf("%s returns %v, want an error: the bridge has the configuration of an earlier run", method, err)
		}
	}
}

func TestARunThatFailedLeavesNoBridge(t *testing.T) {
	w := newWorld(t, 1)
	relay := w.serve()
	c := connect(t, relay)
	process := c.begin("acme")
	lone := connect(t, relay).begin("acme") // there is room for one in the pool
	if err := relay.Discard(); err != nil {
		t.Fatal(err)
	}
	for _, pid := range []string{process, lone} {
		if _, err := os.Stat(filepath.Join("/proc", pid)); err == nil {
			t.Errorf("the bridge %s is still there", pid)
		}
	}
	if again := connect(t, relay).begin("acme"); again == process {
		t.Errorf("the run has the bridge %s, which is gone", again)
	}
	if left, err := os.ReadDir(w.dir); err != nil || len(left) != 1 {
		t.Errorf("%v are left, %v, want the pool's folder", left, err)
	}
}

func TestAKilledBridgeLeavesNoProvider(t *testing.T) {
	w := newWorld(t, 1)
	relay := w.serve(starts)
	bridge, err := strconv.Atoi(connect(t, relay).must("Parameterize", "acme"))
	if err != nil {
		t.Fatal(err)
	}
	both, err := workdir.Processes(w.dir)
	if err != nil || len(both) != 2 {
		t.Fatalf("the processes %v run, %v, want the bridge and its provider", both, err)
	}
	if err := relay.Close(); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(bridge, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for _, pid := range both {
		if !parentdeath.Ends(pid) {
			t.Errorf("process %d of %v lives on without bridge %d", pid, both, bridge)
		}
	}
}

func TestABridgeThatDoesNotStart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bridge")
	if err := os.WriteFile(file, []byte("#!/bin/sh\necho no port\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	bridges := New(filepath.Join(t.TempDir(), "b"), file, nil, provider.Options{Max: 1, Logger: testr.New(t)})
	defer bridges.Close()
	relay, err := bridges.Serve(provider.Use{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := connect(t, relay).ask("GetPluginInfo", ""); err == nil || !strings.Contains(err.Error(), "does not print its port") {
		t.Errorf("the CLI gets %v, want what is wrong", err)
	}
	if err := relay.Close(); err != nil {
		t.Error(err)
	}
}

func TestFind(t *testing.T) {
	plugins := t.TempDir()
	add := func(version string) string {
		dir := filepath.Join(plugins, "resource-terraform-provider-v"+version)
		file := filepath.Join(dir, "pulumi-resource-terraform-provider")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	if got := Find(plugins) + Find(""); got != "" {
		t.Errorf("found %s, want nothing", got)
	}
	if want := add("3.128.0"); Find(plugins) != want {
		t.Errorf("found %q, want %s", Find(plugins), want)
	}
	if add("3.129.0"); Find(plugins) != "" {
		t.Errorf("found %s, want nothing: which one a program wants is its own", Find(plugins))
	}
}

func TestLongResponsesAreNotRecorded(t *testing.T) {
	b := New(t.TempDir(), "", nil, provider.Options{})
	for length, want := range map[int]bool{maxResponse: true, maxResponse + 1: false} {
		asked := request{method: strconv.Itoa(length)}
		b.record(asked, make([]byte, length))
		if got := b.known(asked) != nil; got != want {
			t.Errorf("a response of %d bytes is recorded: %t, want %t", length, got, want)
		}
	}
	b.Close()
}
