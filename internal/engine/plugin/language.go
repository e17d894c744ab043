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

// Language is the runtime, as in Pulumi.yaml, of programs whose hosts are kept running.
const Language = "yaml"

// FindHost returns the path of the host in the folder of the CLI. It returns "" if there is none,
// or if a plugin is itself a program: warm hosts only run stacks.
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

// Hosts are the running hosts of YAML programs.
type Hosts struct {
	file string
	pool *provider.Pool
}

// NewHosts returns hosts that run file and can also read the paths in read. Their folders are in
// dir, which must be empty and private.
func NewHosts(dir, file string, read []string, o provider.Options) *Hosts {
	return &Hosts{file: file, pool: provider.NewPoolOf(dir, o, hostStarter(o.Sandbox, read))}
}

// Close kills the hosts.
func (h *Hosts) Close() { h.pool.Close() }

// Host looks like a running language host to a run's CLI.
type Host struct {
	lease *provider.Lease
	host  *host
	// program is the folder of the run's program, of which the host has a copy.
	program  string
	listener net.Listener
	server   *grpc.Server
	served   chan struct{}
}

// Serve starts serving the program in a folder to a run with an environment. owner identifies the
// credentials in the environment, as in provider.Use. It returns nil if no more hosts can be
// started.
func (h *Hosts) Serve(ctx context.Context, environment map[string]string, owner, program string) (*Host, error) {
	lease := h.pool.Lend(ctx, provider.Use{Files: map[string]string{Language: h.file}, Environment: environment,
		Owner: owner})
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

// begin copies the program, since a warm host has no access to the run's folder, and listens.
func (s *Host) begin() error {
	root, err := os.OpenRoot(s.program) // links to other places are not copied
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
		_ = s.server.Serve(s.listener) // it was stopped
	}()
	return nil
}

// Folder is where the host has its copy of the program. The CLI reads absolute paths from there.
func (s *Host) Folder() string { return filepath.Join(s.host.dir, programDir) }

// Port is the loopback port that the CLI connects to.
func (s *Host) Port() int { return s.listener.Addr().(*net.TCPAddr).Port }

// Discard kills the host, if any, and waits until it is gone, so that nothing continues after a
// failed CLI.
func (s *Host) Discard() error {
	if s == nil {
		return nil
	}
	return s.lease.Discard()
}

// Close leaves the host, if any, to later runs.
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

// handle forwards a call. A run's calls have one request and one response.
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
	return nil, status.Errorf(codes.Unimplemented, "%s is not a method that a run needs", method)
}

// handshake connects the host to the CLI's engine. YAML hosts do not support a handshake: they get
// the address when they start.
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

// about forwards a call about the program, which has another path in the host.
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
		return nil, status.Errorf(codes.InvalidArgument, "the program %.200q does not belong to the run",
			info.GetProgramDirectory())
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
