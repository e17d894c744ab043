// Command machine-controllers is the manager: it runs the Machine API's controllers and their
// engines.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/machine-iac/machine-iac-operator/internal/engine/sandbox"
	"github.com/machine-iac/machine-iac-operator/internal/engine/supervisor"
	"github.com/machine-iac/machine-iac-operator/internal/logs"
)

// version is set by the linker.
var version = "development"

func main() {
	supervisor.Main() // first, because a supervisor needs little of what follows
	if err := start(ctrl.SetupSignalHandler(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "machine-controllers:", err)
		os.Exit(1)
	}
}

// validateCommand is the first argument to validate the flags after it. The operator does so before it rolls them
// out. Files are not read.
const validateCommand = "validate"

func start(ctx context.Context, arguments []string) error {
	if len(arguments) > 0 && arguments[0] == runCommand {
		return work(ctx, arguments[1:])
	}
	if len(arguments) > 0 && arguments[0] == validateCommand {
		return validate(arguments[1:])
	}
	if len(arguments) > 0 && arguments[0] == addProvidersCommand {
		return addProviders(arguments[1:])
	}
	var o options
	var logging zap.Options
	flags := newFlags(&o, &logging)
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
	if err := o.checked(flags); err != nil {
		return err
	}
	if err := errors.Join(o.readModuleKeys(), o.readStateKeys()); err != nil {
		return err
	}
	if o.sandbox != sandbox.Off {
		if err := sandbox.Hide(); err != nil {
			return err
		}
	}
	ctrl.SetLogger(logs.WithoutBodies(zap.New(zap.UseFlagOptions(&logging))))
	return run(ctx, o)
}

// validate returns why the manager would not start with these flags.
func validate(arguments []string) error {
	var o options
	var logging zap.Options
	flags := newFlags(&o, &logging)
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if o.showVersion {
		return errors.New("--version ends the manager; remove it")
	}
	return o.checked(flags)
}

// checked refuses arguments that are no flags, and completes the options.
func (o *options) checked(flags *flag.FlagSet) error {
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q; see --help for the flags", flags.Arg(0))
	}
	return o.complete()
}

// newFlags returns all flags of the command. docs/reference/flags.md lists them.
func newFlags(o *options, logging *zap.Options) *flag.FlagSet {
	flags := flag.NewFlagSet("machine-controllers", flag.ContinueOnError)
	o.bind(flags)
	logging.BindFlags(flags)
	return flags
}
