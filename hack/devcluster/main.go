// Command devcluster runs a Kubernetes cluster on this machine for development and tests: etcd, kube-apiserver,
// kube-controller-manager, kube-scheduler and KWOK, on loopback, from the binaries that 'make tools' builds.
//
// Unlike kind, kwokctl and setup-envtest it needs only a Go module proxy: no container runtime, images or binary
// downloads.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/machine-iac/machine-iac-operator/hack/devcluster/cluster"
)

const usage = `devcluster runs a Kubernetes cluster on this machine for development and tests.

Usage: devcluster COMMAND [flags]

Commands:
  up                 start what does not run, and wait until it is ready
  down               stop everything; the data stays, unless --purge is given
  status             show each component; exits 1 unless all of them run
  stop COMPONENT     stop one component
  start COMPONENT    start one component on the port that it had
  kubeconfig         write a kubeconfig that acts as a service account

Components: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kwok
'devcluster COMMAND --help' shows the flags of a command.
`

// errNotRunning sets the exit status of "status" to 1.
var errNotRunning = errors.New("not every component runs; 'devcluster up' starts what is missing")

// usageError is a mistake on the command line. Its exit status is 2.
type usageError struct{ error }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := exitCode(run(ctx, os.Args[1:], os.Stdout, os.Stderr), os.Stderr)
	stop()
	os.Exit(code)
}

// exitCode prints an error and returns the exit status.
func exitCode(err error, stderr io.Writer) int {
	var wrong usageError
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.As(err, &wrong):
		_, _ = fmt.Fprintf(stderr, "devcluster: %v\n'devcluster --help' shows how to use it.\n", err)
		return 2
	default:
		_, _ = fmt.Fprintf(stderr, "devcluster: %v\n", err)
		return 1
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) == 0 {
		return usageError{errors.New("no command given")}
	}
	command, known := commands[args[0]]
	if !known {
		if strings.TrimLeft(args[0], "-") == "help" || args[0] == "-h" {
			_, err := io.WriteString(stdout, usage)
			return err
		}
		return usageError{fmt.Errorf("there is no command %q", args[0])}
	}
	call := &invocation{stdout: stdout}
	set := call.flags(args[0], command, stderr)
	operands, err := parse(set, args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return err
	}
	if err != nil {
		return usageError{err}
	}
	if len(operands) != command.operands {
		return usageError{fmt.Errorf("%s takes %d operands, got %d %q", args[0], command.operands,
			len(operands), operands)}
	}
	call.operands = operands
	if call.cluster, err = cluster.New(call.options); err != nil {
		return err
	}
	return command.run(ctx, call)
}

// parse allows flags before and after operands, which the flag package does not.
func parse(set *flag.FlagSet, args []string) ([]string, error) {
	var operands []string
	for {
		if err := set.Parse(args); err != nil {
			return nil, err
		}
		if set.NArg() == 0 {
			return operands, nil
		}
		operands = append(operands, set.Arg(0))
		args = set.Args()[1:]
	}
}

func (call *invocation) flags(name string, command command, stderr io.Writer) *flag.FlagSet {
	set := flag.NewFlagSet(name, flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.StringVar(&call.options.Dir, "dir", ".dev", "folder that holds the cluster's data")
	set.StringVar(&call.options.Bin, "bin", "bin", "folder that holds the binaries")
	set.DurationVar(&call.options.Timeout, "timeout", 2*time.Minute, "how long the command may take")
	if command.declare != nil {
		command.declare(set, call)
	}
	set.Usage = func() {
		_, _ = fmt.Fprintf(stderr, "Usage: devcluster %s%s [flags]\n%s\n\nFlags:\n", name,
			command.operandHelp(), command.help)
		set.SetOutput(stderr)
		set.PrintDefaults()
		set.SetOutput(io.Discard)
	}
	return set
}
