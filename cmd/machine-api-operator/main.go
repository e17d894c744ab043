// Command machine-api-operator installs the Machine API's controllers, keeps them in their desired
// state, and reports the status of the installation.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/machine-iac/machine-iac-operator/internal/logs"
)

// version is set by the linker.
var version = "development"

func main() {
	if err := start(ctrl.SetupSignalHandler(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "machine-api-operator:", err)
		os.Exit(1)
	}
}

func start(ctx context.Context, arguments []string) error {
	var o options
	var logging zap.Options
	flags := newFlags(&o, &logging)
	if len(arguments) > 0 && arguments[0] == "start" {
		arguments = arguments[1:] // machine-api-operator's only command
	}
	err := flags.Parse(arguments)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	if o.showVersion {
		fmt.Println(version)
		return nil
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q; see --help for the flags", flags.Arg(0))
	}
	if err := o.complete(); err != nil {
		return err
	}
	ctrl.SetLogger(newLogger(&logging))
	return run(ctx, o)
}

// newLogger returns a logger with the flags' settings.
func newLogger(logging *zap.Options) logr.Logger {
	return logs.WithoutBodies(zap.New(zap.UseFlagOptions(logging)))
}

// newFlags returns all flags of the command. docs/reference/flags.md lists them.
func newFlags(o *options, logging *zap.Options) *flag.FlagSet {
	flags := flag.NewFlagSet("machine-api-operator", flag.ContinueOnError)
	o.bind(flags)
	logging.BindFlags(flags)
	for _, name := range []string{"logtostderr", "alsologtostderr"} {
		flags.Bool(name, true, "Accepted for Deployments of machine-api-operator and ignored: logs go to stderr.")
	}
	flags.Func("v", "Number from 0 up: the same as --zap-log-level, for Deployments of machine-api-operator.",
		func(level string) error {
			if level == "0" {
				level = "info"
			}
			return flags.Set("zap-log-level", level)
		})
	return flags
}
