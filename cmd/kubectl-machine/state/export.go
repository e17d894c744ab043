package state

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/machine-iac/machine-iac-operator/cmd/kubectl-machine/cli"
	"github.com/machine-iac/machine-iac-operator/internal/backup"
	"github.com/machine-iac/machine-iac-operator/internal/inspect"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// folderFlags are the flags of a folder that is written, and of whom it is encrypted for.
type folderFlags struct {
	folder     string
	recipients []string
	files      []string
	force      bool
}

func (f *folderFlags) register(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVarP(&f.folder, "output", "o", "", "Folder to write to, created if missing. Required.")
	flags.StringArrayVar(&f.recipients, "recipient", nil,
		"Encrypt for an age recipient (age1...) or a public SSH key (ssh-ed25519 ...); may be repeated.")
	flags.StringArrayVar(&f.files, "recipients-file", nil,
		"File of recipients to encrypt for, one a line; may be repeated.")
	flags.BoolVar(&f.force, "force", false, "Replace existing files that differ.")
	_ = command.MarkFlagDirname("output")
	_ = command.RegisterFlagCompletionFunc("recipient", cobra.NoFileCompletions)
}

// open checks the flags, and makes the folder.
func (f *folderFlags) open() (*backup.Folder, backup.Recipients, error) {
	if f.folder == "" {
		return nil, nil, errors.New("name the folder to write to: -o DIR")
	}
	to, err := backup.ParseRecipients(f.recipients, f.files)
	if err != nil {
		return nil, nil, err
	}
	folder, err := backup.CreateFolder(f.folder)
	return folder, to, err
}

// writeBackup collects states and writes them into the folder.
func writeBackup(ctx context.Context, command *cobra.Command, from *backup.Source, keys []state.Key, into *folderFlags,
	whole bool) (*backup.Backup, error) {
	collected, err := from.Collect(ctx, keys, time.Now())
	if err != nil {
		return nil, err
	}
	for _, note := range collected.Notes {
		fmt.Fprintln(command.ErrOrStderr(), "note:", note)
	}
	if len(collected.States) == 0 {
		return collected, nil
	}
	folder, to, err := into.open()
	if err != nil {
		return nil, err
	}
	if err := errors.Join(collected.Write(folder, to, whole, into.force), folder.Close()); err != nil {
		return nil, err
	}
	if len(to) == 0 {
		warnSecrets(command)
	}
	return collected, nil
}

// counted is a number with a noun.
func counted(count int, noun string) string {
	if count != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", count, noun)
}

func newExport() *cobra.Command {
	var f cli.BackupFlags
	var into folderFlags
	var all bool
	command := &cobra.Command{
		Use:   "export [MACHINE...]",
		Short: "Write states into a folder, with all that is needed to restore them",
		Long: `Write states into a folder, one file each, with what the operator keeps beside them, the modules that they refer to, and the keys of
Pulumi's checkpoints. Files are readable by you only. They hold credentials and user data: encrypt them with --recipient.

docs/backup.md says what else belongs to a backup, and how to restore one.`,
		Example: `  # All states of the namespace, those of Machines that are gone too, encrypted
  kubectl machine state export --all -o backup-monday -n openshift-machine-api --recipient age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p

  # The states of one MachineSet
  kubectl machine state export machineset/workers -o workers`,
		ValidArgsFunction: f.Complete(stateNames),
		RunE: func(command *cobra.Command, names []string) error {
			if all == (len(names) > 0 || f.Labels != "") {
				return errors.New("name the Machines whose states are exported, or export those of all with --all")
			}
			if _, err := backup.ParseRecipients(into.recipients, into.files); err != nil {
				return err
			}
			facts, err := f.Read(command, names, inspect.Want{States: true})
			if err != nil {
				return err
			}
			list, err := inspect.States(facts)
			if err != nil {
				return err
			}
			source, _, err := f.Source()
			if err != nil {
				return err
			}
			var keys []state.Key
			for i := range list.Items {
				keys = append(keys, state.Key{Namespace: list.Items[i].Namespace, Name: list.Items[i].Secret})
			}
			written, err := writeBackup(command.Context(), command, source, keys, &into, all)
			if err != nil {
				return err
			}
			if len(written.States) == 0 {
				f.Nothing(command, "There are no states of Machines", facts.Namespace)
				return nil
			}
			fmt.Fprintf(command.OutOrStdout(), "%s and %s written to %s\n", counted(len(written.States), "state"),
				counted(len(written.Modules), "module"), into.folder)
			return nil
		},
	}
	f.Register(command)
	f.RegisterSelection(command)
	f.RegisterManager(command)
	into.register(command)
	command.Flags().BoolVar(&all, "all", false, "Export all states of the namespace.")
	return command
}
