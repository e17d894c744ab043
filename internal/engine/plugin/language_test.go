package plugin

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	"github.com/google/go-cmp/cmp"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/machine-iac/machine-iac-operator/internal/engine/provider"
	"github.com/machine-iac/machine-iac-operator/test/shortdir"
)

// hosting is set in the processes of this test that are hosts of programs.
const hosting = "HOST_OF_A_TEST"

// fakeHost is a host whose programs are texts: it prints what is in the file "print", and has the engine log what is in the file "log".
type fakeHost struct {
	pulumirpc.UnimplementedLanguageRuntimeServer
	engine pulumirpc.EngineClient
}

func beHost() {
	engine, err := grpc.NewClient(os.Args[len(os.Args)-1], grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		panic(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	server := grpc.NewServer()
	pulumirpc.RegisterLanguageRuntimeServer(server, &fakeHost{engine: pulumirpc.NewEngineClient(engine)})
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	_ = server.Serve(listener) // until it is killed
}

// GetPluginInfo returns the process in place of the version.
func (*fakeHost) GetPluginInfo(context.Context, *emptypb.Empty) (*pulumirpc.PluginInfo, error) {
	return &pulumirpc.PluginInfo{Version: strconv.Itoa(os.Getpid())}, nil
}

// Run returns the files of the program in place of an error.
func (h *fakeHost) Run(ctx context.Context, request *pulumirpc.RunRequest) (*pulumirpc.RunResponse, error) {
	dir := request.GetInfo().GetProgramDirectory()
	if text, err := os.ReadFile(filepath.Join(dir, "print")); err == nil {
		_, _ = os.Stderr.Write(text)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "log")); err == nil {
		if _, err := h.engine.Log(ctx, &pulumirpc.LogRequest{Message: string(text)}); err != nil {
			return nil, err
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return &pulumirpc.RunResponse{Error: strings.Join(names, " ")}, nil
}

// cli is what a run's CLI is to a host: its engine, and its connection.
type cli struct {
	pulumirpc.UnimplementedEngineServer
	pulumirpc.LanguageRuntimeClient
	t       *testing.T
	program string

	mu     sync.Mutex
	logged []string
}

func (c *cli) Log(_ context.Context, request *pulumirpc.LogRequest) (*emptypb.Empty, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.logged = append(c.logged, strings.TrimSuffix(request.GetMessage(), "\n"))
	return &emptypb.Empty{}, nil
}

// start connects a CLI to a run's host, as far as the handshake.
func startCLI(t *testing.T, to *Host, program string) *cli {
	t.Helper()
	c := &cli{t: t, program: program}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	engine := grpc.NewServer()
	pulumirpc.RegisterEngineServer(engine, c)
	go engine.Serve(listener) //nolint:errcheck // it is stopped
	t.Cleanup(engine.Stop)
	connection, err := grpc.NewClient(fmt.Sprintf("127.0.0.1:%d", to.Port()), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	c.LanguageRuntimeClient = pulumirpc.NewLanguageRuntimeClient(connection)
	if _, err := c.Handshake(t.Context(), &pulumirpc.LanguageHandshakeRequest{EngineAddress: listener.Addr().String()}); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *cli) process() string {
	c.t.Helper()
	info, err := c.GetPluginInfo(c.t.Context(), &emptypb.Empty{})
	if err != nil {
		c.t.Fatal(err)
	}
	return info.GetVersion()
}

func (c *cli) runs(dir string) (string, error) {
	response, err := c.Run(c.t.Context(), &pulumirpc.RunRequest{Info: &pulumirpc.ProgramInfo{RootDirectory: c.program, ProgramDirectory: dir}})
	return response.GetError(), err
}

// newHosts returns hosts that are processes of this test.
func newHosts(t *testing.T, most int) *Hosts {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	hosts := NewHosts(filepath.Join(shortdir.New(t), "h"), self, nil, provider.Options{
		Max: most, Logger: testr.New(t), Clock: clocktesting.NewFakeClock(time.Now()),
	})
	t.Cleanup(hosts.Close)
	return hosts
}

// programOf returns a folder with files, given by name and content.
func programOf(t *testing.T, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for pair := range slices.Chunk(files, 2) {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, pair[0])), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, pair[0]), []byte(pair[1]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func (h *Hosts) serve(t *testing.T, program string) *Host {
	t.Helper()
	host, err := h.Serve(t.Context(), map[string]string{hosting: "set"}, "", program)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = host.Close() })
	return host
}

func TestAHostServesRunAfterRun(t *testing.T) {
	hosts := newHosts(t, 1)
	one, other := programOf(t, "a", "", "print", "first\n", "main/b", ""), programOf(t, "c", "", "log", "second")
	first := hosts.serve(t, one)
	if err := os.WriteFile(filepath.Join(one, "settings"), nil, 0o600); err != nil { // what comes after the program is none of it
		t.Fatal(err)
	}
	c := startCLI(t, first, one)
	process := c.process()
	for dir, want := range map[string]string{one: "a main print", filepath.Join(one, "main"): "b"} {
		if got, err := c.runs(dir); err != nil || got != want {
			t.Errorf("the program in %s has the files %q, %v, want %q", dir, got, err, want)
		}
	}
	if none, err := hosts.Serve(t.Context(), map[string]string{hosting: "set"}, "", other); none != nil || err != nil {
		t.Errorf("a second run has a host, %v, want none: there is room for one", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := first.host.attached(); err == nil {
		t.Error("the host still reaches the engine of a run that is over")
	}
	second := hosts.serve(t, other)
	last := startCLI(t, second, other)
	if again := last.process(); again != process {
		t.Errorf("the second run has the host %s, want %s again", again, process)
	}
	if got, err := last.runs(other); err != nil || got != "c log" {
		t.Errorf("the second program has the files %q, %v, want its own", got, err)
	}
	if diff := cmp.Diff([][]string{{"first"}, {"second"}}, [][]string{c.logged, last.logged}); diff != "" {
		t.Errorf("what was said to the two CLIs differs (-want +got):\n%s", diff)
	}
}

func TestWhatAHostPrintsIsSaidBeforeItsResponse(t *testing.T) {
	program := programOf(t, "print", "Error: one\n\n  on line 1\n"+strings.Repeat("x", 2*maxPrinted)+"\n", "log", "logged")
	c := startCLI(t, newHosts(t, 1).serve(t, program), program)
	for range 2 { // the second is said no more than the second says
		if _, err := c.runs(program); err != nil {
			t.Fatal(err)
		}
		if len(c.logged) != 4 {
			t.Fatalf("%d messages are said, want four", len(c.logged))
		}
		if diff := cmp.Diff([]string{"logged", "Error: one", "  on line 1"}, c.logged[:3]); diff != "" {
			t.Errorf("what is said differs (-want +got):\n%s", diff)
		}
		if length := len(c.logged[3]); length > maxPrinted {
			t.Errorf("%d bytes are said, want %d at most", length, maxPrinted)
		}
		c.logged = nil
	}
}

func TestWhatAHostIsNotAsked(t *testing.T) {
	program := programOf(t, "log", "said")
	host := newHosts(t, 1).serve(t, program)
	c := startCLI(t, host, program)
	for _, dir := range []string{"", "/", filepath.Dir(program), program + "-other", filepath.Join(program, "..", "other"), "relative"} {
		if _, err := c.runs(dir); status.Code(err) != codes.InvalidArgument {
			t.Errorf("a program in %q is run: %v", dir, err)
		}
	}
	for _, address := range []string{"", "127.0.0.1", "10.0.0.1:80", "engine.example.org:80", "unix:///engine", "[::]:80"} {
		if _, err := c.Handshake(t.Context(), &pulumirpc.LanguageHandshakeRequest{EngineAddress: address}); status.Code(err) != codes.InvalidArgument {
			t.Errorf("the engine %q is called: %v", address, err)
		}
	}
	stream, err := c.RunPlugin(t.Context(), &pulumirpc.RunPluginRequest{})
	if err == nil {
		_, err = stream.Recv()
	}
	if status.Code(err) != codes.Unimplemented {
		t.Errorf("a plugin is run: %v", err)
	}
	if _, err := c.runs(program); err != nil || len(c.logged) != 1 {
		t.Errorf("after that the run's program is not run: %v, %v", c.logged, err)
	}
	if err := host.host.attach(nil); err != nil {
		t.Fatal(err)
	}
	if _, err := c.runs(program); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("a host without a CLI says something: %v", err)
	}
}

// TestAProgramHasNothingThatItLinksTo has a link in a program that whoever is in the run's folder may have put there.
func TestAProgramHasNothingThatItLinksTo(t *testing.T) {
	program, secret := programOf(t), filepath.Join(programOf(t, "secret", "hunter2"), "secret")
	if err := os.Symlink(secret, filepath.Join(program, "print")); err != nil {
		t.Fatal(err)
	}
	host := newHosts(t, 1).serve(t, program)
	if info, err := os.Lstat(filepath.Join(host.Folder(), "print")); err == nil && info.Mode().IsRegular() {
		t.Error("the manager has read a file for a program that the program may not read")
	}
}

func TestARunThatFailedLeavesNoHost(t *testing.T) {
	hosts := newHosts(t, 1)
	program := programOf(t)
	host := hosts.serve(t, program)
	process := startCLI(t, host, program).process()
	if err := host.Discard(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join("/proc", process)); err == nil {
		t.Errorf("the host %s is still there", process)
	}
	if err := host.Close(); err != nil {
		t.Error(err)
	}
	if again := startCLI(t, hosts.serve(t, program), program).process(); again == process {
		t.Errorf("the next run has the host %s, which is gone", again)
	}
}

func TestAHostThatDoesNotStart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "host")
	if err := os.WriteFile(file, []byte("#!/bin/sh\necho no port\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "h")
	hosts := NewHosts(dir, file, nil, provider.Options{Max: 1, Logger: testr.New(t)})
	defer hosts.Close()
	if host, err := hosts.Serve(t.Context(), nil, "", programOf(t)); host != nil || err != nil {
		t.Errorf("the run has a host, %v, want none: the CLI starts its own", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v are left, %v", left, err)
	}
}

func TestFindHost(t *testing.T) {
	dir, plugins := t.TempDir(), t.TempDir()
	if got := FindHost(dir, plugins); got != "" {
		t.Errorf("found %s, want nothing", got)
	}
	file := filepath.Join(dir, "pulumi-language-yaml")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{plugins, ""} {
		if got := FindHost(dir, folder); got != file {
			t.Errorf("found %q, want %s", got, file)
		}
	}
	program := filepath.Join(plugins, "resource-x-v1.0.0")
	if err := os.Mkdir(program, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(program, "PulumiPlugin.yaml"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := FindHost(dir, plugins); got != "" {
		t.Errorf("found %s, want nothing: a plugin is a program, which a host that is kept does not run", got)
	}
}
