package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// pollStdout is the interval of checks for the end of a program, in addition to the kernel's notice that its output has
// no reader.
const pollStdout = 500 // milliseconds

// usageError is a mistake on the command line. Its exit status is 2.
type usageError struct{ error }

// Usage returns an error for a mistake on the command line.
func Usage(format string, values ...any) error { return usageError{fmt.Errorf(format, values...)} }

// Execute runs a command, and returns its exit status: 2 for a mistake on the command line, 1 for other errors. Without
// Args the command takes only flags.
func Execute(ctx context.Context, command *cobra.Command, arguments []string) int {
	command.SilenceErrors, command.SilenceUsage, command.CompletionOptions.DisableDefaultCmd = true, true, true
	command.SetArgs(arguments)
	command.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	if command.Args == nil {
		command.Args = func(_ *cobra.Command, operands []string) error {
			if len(operands) > 0 {
				return Usage("unexpected argument %q: %s takes flags only", operands[0], command.Name())
			}
			return nil
		}
	}
	err := command.ExecuteContext(ctx)
	var wrong usageError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &wrong):
		fmt.Fprintf(command.ErrOrStderr(), "%s: %v\nRun '%[1]s --help' for its flags.\n", command.Name(), err)
		return 2
	default:
		fmt.Fprintf(command.ErrOrStderr(), "%s: %v\n", command.Name(), err)
		return 1
	}
}

// UntilEnd returns a context that ends with the first termination signal, or when standard output loses its reader. A
// second interrupt ends the program at once.
func UntilEnd(parent context.Context) (ctx context.Context, stop context.CancelFunc) {
	ctx, stop = context.WithCancel(parent)
	asked, broken := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(asked, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // as with nohup
		signal.Notify(asked, syscall.SIGHUP)
	}
	// Writing without a reader would kill the program. The signal does not imply stdout: sockets send it too.
	signal.Notify(broken, syscall.SIGPIPE)
	go func() {
		select {
		case <-asked:
		case <-ctx.Done():
		}
		stop()
		signal.Reset(os.Interrupt) // not the others: a closing terminal sends more than one SIGHUP
	}()
	go untilUnread(ctx, stop, os.Stdout)
	return ctx, stop
}

// untilUnread calls stop when a file loses its reader: the other end of the pipe is closed, or the terminal is gone.
func untilUnread(ctx context.Context, stop context.CancelFunc, file *os.File) {
	for ctx.Err() == nil {
		polled := []unix.PollFd{{Fd: int32(file.Fd())}}
		n, err := unix.Poll(polled, pollStdout)
		switch {
		case err != nil || n == 0:
		case polled[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0:
			stop()
		default:
			return // not pollable
		}
	}
}

// Running are the stop functions of what a program started.
type Running []func() error

// Add adds a stop function.
func (r *Running) Add(stop func() error) { *r = append(*r, stop) }

// End stops everything in reverse order and returns all errors, except those that only report the interrupt.
func (r Running) End(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		err = nil
	}
	for i := len(r) - 1; i >= 0; i-- {
		err = errors.Join(err, r[i]())
	}
	return err
}
