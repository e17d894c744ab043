// Command pulumi-language-go is what Pulumi's CLI asks to run a program in Go. It runs one that is built already, whose name is the option
// "binary" of the runtime in Pulumi.yaml and which lies in a folder of PATH, and no other. Pulumi's own host of this name asks a Go
// toolchain for the program's packages, even where there is nothing to build, and an image has none.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

// healthInterval is how often the host looks whether the CLI that started it still lives.
const healthInterval = 10 * time.Second

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "pulumi-language-go: %v\n", err)
		os.Exit(1)
	}
}

// run serves until it is interrupted, or the CLI is gone.
func run(arguments []string) error {
	if len(arguments) == 0 {
		return errors.New("the address of the engine is missing; this is started by Pulumi's CLI, not by hand")
	}
	address := arguments[len(arguments)-1]
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	engine, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return fmt.Errorf("connecting to the engine at %s: %w", address, err)
	}
	defer engine.Close() //nolint:errcheck // it ends with the process
	go watch(ctx, grpc_health_v1.NewHealthClient(engine), cancel)
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	server := grpc.NewServer()
	pulumirpc.RegisterLanguageRuntimeServer(server, &host{engine: address, stop: ctx})
	context.AfterFunc(ctx, server.Stop)
	fmt.Println(listener.Addr().(*net.TCPAddr).Port) // the CLI reads where to find this
	if err := server.Serve(listener); err != nil {
		return fmt.Errorf("serving: %w", err)
	}
	return nil
}

// watch calls cancel when the engine does not respond any more: nothing else ends the processes of a killed CLI.
func watch(ctx context.Context, engine grpc_health_v1.HealthClient, cancel context.CancelFunc) {
	ticker := time.NewTicker(healthInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			_, err := engine.Check(ctx, &grpc_health_v1.HealthCheckRequest{})
			if err != nil && status.Code(err) != codes.Unimplemented { // which is a response as well
				cancel()
				return
			}
		}
	}
}
