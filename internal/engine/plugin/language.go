package plugin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/machine-iac/machine-iac-operator/internal/engine/provider"
)

// Language is the runtime of programs whose host is kept running, as Pulumi.yaml has it.
const Language = "yaml"

// FindHost returns the file of the host in the folder of the CLI. It returns "" where there is none, and where a plugin is a program
// itself: hosts that are kept running run stacks' programs only.
func FindHost(dir, plugins string) string {
	file := filepath.Join(dir, "pulumi-language-"+Language)
	if _, err := os.Stat(file); err != nil {
		return ""
	}
	if plugins == "" {
		return file
	}
	if programs, err := filepath.Glob(filepath.Join(plugins, "*", "PulumiPlugin.yaml")); err != nil || len(programs) > 0 {
		return ""
	}
	return file
}

// Hosts are the hosts of YAML programs that run.
type Hosts struct {
	file string
	pool *provider.Pool
}

// NewHosts returns the hosts that are started from a file, with what else they may read. Their folders are in dir, which is theirs and empty.
func NewHosts(dir, file string, read []string, o provider.Options) *Hosts {
	return &Hosts{file: file, pool: provider.NewPoolOf(dir, o, hostStarter(o.Sandbox, read))}
}

// Close ends the hosts.
func (h *Hosts) Close() { h.pool.Close() }

// Host is what a run's CLI takes for a host of programs that runs already.
type Host struct {
	lease *provider.Lease
	host  *host
	// program is the folder of the run's program, of which the host has a copy.
	program  string
	listener net.Listener
	server   *grpc.Server
	served   chan struct{}
}

// Serve begins to serve a run with an environment, whose program is in a folder. The owner names whose credentials are in the environment, as in
// provider.Use. It returns nil where there is no room for one more host.
func (h *Hosts) Serve(ctx context.Context, environment map[string]string, owner, program string) (*Host, error) {
	lease := h.pool.Lend(ctx, provider.Use{Files: map[string]string{Language: h.file}, Environment: environment, Owner: owner})
	running := lease.Running(Language)
	if running == nil {
		return nil, nil
	}
	s := &Host{lease: lease, host: running.(*host), program: program, served: make(chan struct{})}
	if err := s.begin(); err != nil {
		return nil, errors.Join(fmt.Errorf("serving a host of programs: %w", err), lease.Discard())
	}
	return s, nil
}

// begin copies the program, since a host that runs already can't be let into the run's folder, and listens.
func (s *Host) begin() error {
	root, err := os.OpenRoot(s.program) // whatever it has links to stays behind
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // it was only read
	if err := os.CopyFS(s.Folder(), root.FS()); err != nil {
		return err
	}
	if s.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return err
	}
	s.server = newServer(s.handle, grpc.WaitForHandlers(true))
	go func() {
		defer close(s.served)
		_ = s.server.Serve(s.listener) // it is stopped
	}()
	return nil
}

// Folder is where the host has the program. What a program names there by a whole path the CLI reads.
func (s *Host) Folder() string { return filepath.Join(s.host.dir, programDir) }

// Port is where the CLI finds the host, on the loopback interface.
func (s *Host) Port() int { return s.listener.Addr().(*net.TCPAddr).Port }

// Discard ends the host, if there is one, and waits until it is gone: what a CLI that failed has begun does not go on after it.
func (s *Host) Discard() error {
	if s == nil {
		return nil
	}
	return s.lease.Discard()
}

// Close leaves the host, if there is one, to later runs.
func (s *Host) Close() error {
	if s == nil {
		return nil
	}
	s.server.Stop()
	<-s.served
	if s.host.Exited() {
		return s.lease.Discard()
	}
	if err := s.host.leave(); err != nil {
		return errors.Join(err, s.lease.Discard())
	}
	s.lease.GiveBack()
	return nil
}

// handle passes a call on. Those that a run makes have one request and one response.
func (s *Host) handle(_ any, stream grpc.ServerStream) error {
	return respond(stream, s.respond)
}

func (s *Host) respond(ctx context.Context, method string, message []byte) ([]byte, error) {
	switch method {
	case pulumirpc.LanguageRuntime_Handshake_FullMethodName:
		return nil, s.handshake(message)
	case pulumirpc.LanguageRuntime_GetPluginInfo_FullMethodName, pulumirpc.LanguageRuntime_Cancel_FullMethodName:
		return s.host.call(ctx, method, message)
	case pulumirpc.LanguageRuntime_GetRequiredPackages_FullMethodName:
		return s.about(ctx, method, message, &pulumirpc.GetRequiredPackagesRequest{})
	case pulumirpc.LanguageRuntime_GetProgramDependencies_FullMethodName:
		return s.about(ctx, method, message, &pulumirpc.GetProgramDependenciesRequest{})
	case pulumirpc.LanguageRuntime_About_FullMethodName:
		return s.about(ctx, method, message, &pulumirpc.AboutRequest{})
	case pulumirpc.LanguageRuntime_Run_FullMethodName:
		return s.about(ctx, method, message, &pulumirpc.RunRequest{})
	}
	return nil, status.Errorf(codes.Unimplemented, "%s is no method that a run needs", method)
}

// handshake has the host reach the engine of the CLI. Hosts of YAML know no handshake: they are given the address at their start.
func (s *Host) handshake(message []byte) error {
	request := &pulumirpc.LanguageHandshakeRequest{}
	if err := proto.Unmarshal(message, request); err != nil {
		return status.Error(codes.InvalidArgument, err.Error())
	}
	engine, err := dialEngine(request.GetEngineAddress())
	if err != nil {
		return err
	}
	return s.host.attach(engine)
}

// about passes on a call about the program, which is elsewhere for the host.
func (s *Host) about(ctx context.Context, method string, message []byte, request interface {
	proto.Message
	GetInfo() *pulumirpc.ProgramInfo
},
) ([]byte, error) {
	if err := proto.Unmarshal(message, request); err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	info := request.GetInfo()
	inside, err := filepath.Rel(s.program, info.GetProgramDirectory())
	if err != nil || inside == ".." || strings.HasPrefix(inside, "../") {
		return nil, status.Errorf(codes.InvalidArgument, "the program %.200q is not the run's", info.GetProgramDirectory())
	}
	info.ProgramDirectory = filepath.Join(s.Folder(), inside)
	changed, err := proto.Marshal(request)
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	response, err := s.host.call(ctx, method, changed)
	if said := s.host.say(ctx); err == nil {
		err = said
	}
	return response, err
}
