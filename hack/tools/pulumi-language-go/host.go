package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
)

// alreadyReported is the exit code of a program that has reported its error to the CLI itself.
const alreadyReported = 32

// host implements the calls of the CLI. Those it lacks are about writing and building programs, which is done elsewhere.
type host struct {
	pulumirpc.UnimplementedLanguageRuntimeServer
	engine string
	// stop is done when the host is to end; what it runs ends with it.
	stop context.Context
}

// GetPluginInfo returns no version: the CLI asks for none.
func (h *host) GetPluginInfo(context.Context, *emptypb.Empty) (*pulumirpc.PluginInfo, error) {
	return &pulumirpc.PluginInfo{}, nil
}

// GetRequiredPackages returns none: a program registers its packages itself, and nothing is to be installed before.
func (h *host) GetRequiredPackages(context.Context, *pulumirpc.GetRequiredPackagesRequest) (*pulumirpc.GetRequiredPackagesResponse, error) {
	return &pulumirpc.GetRequiredPackagesResponse{}, nil
}

// GetRequiredPlugins returns none, for the same reason.
func (h *host) GetRequiredPlugins(context.Context, *pulumirpc.GetRequiredPluginsRequest) (*pulumirpc.GetRequiredPluginsResponse, error) {
	return &pulumirpc.GetRequiredPluginsResponse{}, nil
}

// Run runs the program to its end. It is ended with the call.
func (h *host) Run(ctx context.Context, request *pulumirpc.RunRequest) (*pulumirpc.RunResponse, error) {
	path, err := program(request.GetInfo().GetOptions().AsMap())
	if err != nil {
		return nil, status.Error(codes.FailedPrecondition, err.Error())
	}
	environment, err := h.environment(request)
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(h.stop, cancel)()
	command := exec.CommandContext(ctx, path, request.GetArgs()...)
	command.Dir = request.GetPwd()
	command.Env = append(os.Environ(), environment...)
	command.Stdout, command.Stderr = os.Stdout, os.Stderr // the CLI reads them
	return result(command.Run()), nil
}

// program returns the path of the program that Pulumi.yaml names.
func program(options map[string]any) (string, error) {
	name, _ := options["binary"].(string)
	if name == "" {
		return "", errors.New("no program is named in Pulumi.yaml: write runtime: {name: go, options: {binary: NAME}}; nothing is built here")
	}
	if name != filepath.Base(name) {
		return "", fmt.Errorf("the program %q of Pulumi.yaml is a path; write the name of a file that lies beside pulumi", name)
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("finding the program %q of Pulumi.yaml: %w; put it beside pulumi", name, err)
	}
	return path, nil
}

// environment returns the variables from which a program reads its stack, by the names that Pulumi's SDK knows.
func (h *host) environment(request *pulumirpc.RunRequest) ([]string, error) {
	config, err := json.Marshal(request.GetConfig())
	if err != nil {
		return nil, fmt.Errorf("writing the configuration: %w", err)
	}
	secret := request.GetConfigSecretKeys()
	if secret == nil {
		secret = []string{}
	}
	secretKeys, err := json.Marshal(secret)
	if err != nil {
		return nil, fmt.Errorf("writing the names of secret configuration: %w", err)
	}
	return []string{
		"PULUMI_ORGANIZATION=" + request.GetOrganization(),
		"PULUMI_PROJECT=" + request.GetProject(),
		"PULUMI_ROOT_DIRECTORY=" + request.GetInfo().GetRootDirectory(),
		"PULUMI_STACK=" + request.GetStack(),
		"PULUMI_CONFIG=" + string(config),
		"PULUMI_CONFIG_SECRET_KEYS=" + string(secretKeys),
		"PULUMI_DRY_RUN=" + strconv.FormatBool(request.GetDryRun()),
		"PULUMI_PARALLEL=" + strconv.Itoa(int(request.GetParallel())),
		"PULUMI_MONITOR=" + request.GetMonitorAddress(),
		"PULUMI_ENGINE=" + h.engine,
	}, nil
}

// result reports to the CLI how a program ended.
func result(err error) *pulumirpc.RunResponse {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return &pulumirpc.RunResponse{}
	case errors.As(err, &exit) && exit.ExitCode() == alreadyReported:
		return &pulumirpc.RunResponse{Bail: true}
	default:
		return &pulumirpc.RunResponse{Error: fmt.Sprintf("running the program: %v", err)}
	}
}
