package state

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-iac/machine-iac-operator/cmd/kubectl-machine/cli"
	"github.com/machine-iac/machine-iac-operator/internal/backup"
	"github.com/machine-iac/machine-iac-operator/internal/module/store"
)

// importFlags are those of state import.
type importFlags struct {
	cli.BackupFlags
	identities []string
	mapped     []string
	dryRun     bool
	moduleKey  string
}

func newImport() *cobra.Command {
	var f importFlags
	command := &cobra.Command{
		Use:   "import DIR|FILE [MACHINE...]",
		Short: "Put states of a backup back",
		Long: `Put states back that 'kubectl machine state export' has written: all of a folder, those of Machines that are named, or one file. A state is
imported only for a Machine that exists with the UID that it was exported with, or that was made anew from that one; while no run is in
progress; and where it follows the stored state: of the same lineage, and of no lower serial. There is no flag for a lower serial: what was made
since would be forgotten. Each state is imported whole or not at all, and the manager may be running.

The exit code is 1 if a state is refused or fails; the others are imported nonetheless.`,
		Example: `  # What would be done
  kubectl machine state import backup-monday -n openshift-machine-api --identity key.txt --dry-run

  # For a Machine that was made anew without its annotations
  kubectl machine state import backup-monday workers-x7k2p --map 0c9a1f3e-9e0b-4a53-8ae1-6d6d9d6c1c11=workers-x7k2p`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(command *cobra.Command, arguments []string) error {
			if err := f.ValidateOutput(); err != nil {
				return err
			}
			target, err := f.target()
			if err != nil {
				return err
			}
			kept, err := f.load(arguments)
			if err != nil {
				return err
			}
			items, err := target.Check(command.Context(), kept)
			if err == nil && !f.dryRun {
				err = target.Import(command.Context(), kept, items, time.Now())
			}
			if err != nil {
				return err
			}
			return f.report(command, items)
		},
	}
	f.Register(command)
	f.RegisterAllNamespaces(command)
	f.RegisterOutput(command)
	f.RegisterManager(command)
	flags := command.Flags()
	flags.StringArrayVar(&f.identities, "identity", nil,
		"File with an age identity or a private SSH key to decrypt the backup; may be repeated.")
	flags.StringArrayVar(&f.mapped, "map", nil,
		"Import the state of the Machine with a UID for a recreated Machine: UID=MACHINE; may be repeated.")
	flags.StringVar(&f.moduleKey, "module-key-file", "",
		"The manager's --module-key-file, to sign the backup's modules. Otherwise the manager uses only modules that it loaded or signed.")
	flags.BoolVar(&f.dryRun, "dry-run", false, "Only report what would be done.")
	_ = command.RegisterFlagCompletionFunc("map", cobra.NoFileCompletions)
	return command
}

// target returns the cluster that states are imported into.
func (f *importFlags) target() (*backup.Target, error) {
	source, live, err := f.Source()
	if err != nil {
		return nil, err
	}
	_, namespace, err := f.Configuration()
	if err != nil {
		return nil, err
	}
	if f.moduleKey != "" {
		keys, err := store.ReadKeys(f.moduleKey)
		if err != nil {
			return nil, err
		}
		source.Modules = store.New(live, store.Options{Keys: keys})
	}
	target := &backup.Target{Source: *source, Client: live, Namespace: namespace, Map: map[types.UID]string{}}
	for _, one := range f.mapped {
		uid, machine, ok := strings.Cut(one, "=")
		if !ok || uid == "" || machine == "" {
			return nil, fmt.Errorf("--map %s: write UID=MACHINE", one)
		}
		target.Map[types.UID(uid)] = strings.TrimPrefix(machine, "machine/")
	}
	return target, nil
}

// load reads the backup and keeps the named states.
func (f *importFlags) load(arguments []string) (*backup.Backup, error) {
	with, err := backup.ReadIdentities(f.identities)
	if err != nil {
		return nil, err
	}
	kept, err := backup.Load(arguments[0], with)
	if err != nil {
		return nil, err
	}
	names := arguments[1:]
	for i := range names {
		names[i] = strings.TrimPrefix(names[i], "machine/")
	}
	if missing := kept.Only(names); len(missing) > 0 {
		return nil, fmt.Errorf("the backup %s has no state of a Machine %q", arguments[0], missing[0])
	}
	if len(kept.States) == 0 {
		return nil, errors.New("the backup has no states")
	}
	return kept, nil
}

// report prints the results, and returns an error unless all states are there now.
func (f *importFlags) report(command *cobra.Command, items []backup.Item) error {
	list := &importList{Items: []importedState{}, AllNamespaces: f.AllNamespaces}
	var failed bool
	for i := range items {
		item := &items[i]
		one := importedState{
			Namespace: item.Namespace, Machine: cmp.Or(item.State.Machine,
				string(item.UID)), From: item.UID, Serial: item.Serial, Stored: item.Stored,
			Result: string(item.Result), Reason: item.Reason, Notes: item.Notes,
		}
		if machine := item.Machine(); machine != nil {
			one.UID = machine.UID
		}
		failed = failed || item.Result == backup.Refused || item.Result == backup.Failed
		list.Items = append(list.Items, one)
	}
	if err := f.Printer.Print(command.OutOrStdout(), list); err != nil {
		return err
	}
	if failed {
		return cli.ErrReported
	}
	return nil
}
