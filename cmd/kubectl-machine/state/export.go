package state

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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

// exportName is the format of the name of an export's folder with --keep.
const exportName = "2006-01-02T150405Z"

// removeOldest removes all but the newest exports beside one; none if the number to keep is 0. It keeps that one,
// even if an earlier clock was ahead. Others' folders and files stay, and so do exports that were cut off, which do
// not count.
func removeOldest(written string, keep int) error {
	if keep == 0 {
		return nil
	}
	folder, own := filepath.Split(written)
	entries, err := os.ReadDir(folder) // sorted by name, which is by time
	if err != nil {
		return err
	}
	entries = slices.DeleteFunc(entries, func(e os.DirEntry) bool {
		_, err := time.Parse(exportName, e.Name())
		_, unfinished := os.Stat(filepath.Join(folder, e.Name(), "index.json")) // written last
		return err != nil || unfinished != nil || e.Name() == own
	})
	for _, old := range entries[:max(0, len(entries)+1-keep)] {
		if err := os.RemoveAll(filepath.Join(folder, old.Name())); err != nil {
			return err
		}
	}
	return nil
}

// export is what "state export" is asked for.
type export struct {
	cli.BackupFlags
	into folderFlags
	all  bool
	keep int
}

func (e *export) run(command *cobra.Command, names []string) error {
	if e.all == (len(names) > 0 || e.Labels != "") {
		return errors.New("name the Machines whose states are exported, or export those of all with --all")
	}
	if _, err := backup.ParseRecipients(e.into.recipients, e.into.files); err != nil {
		return err
	}
	dated := command.Flags().Changed("keep")
	if dated && (e.keep < 1 || !e.all || e.into.folder == "") {
		return errors.New("--keep takes a positive number, --all, and the folder of the exports in -o")
	}
	facts, err := e.Read(command, names, inspect.Want{States: true})
	if err != nil {
		return err
	}
	if dated {
		e.into.folder = filepath.Join(e.into.folder, facts.Namespace, time.Now().UTC().Format(exportName))
	}
	list, err := inspect.States(facts)
	if err != nil {
		return err
	}
	source, _, err := e.Source()
	if err != nil {
		return err
	}
	var keys []state.Key
	for i := range list.Items {
		keys = append(keys, state.Key{Namespace: list.Items[i].Namespace, Name: list.Items[i].Secret})
	}
	written, err := writeBackup(command.Context(), command, source, keys, &e.into, e.all)
	if err != nil {
		return err
	}
	if len(written.States) == 0 {
		e.Nothing(command, "There are no states of Machines", facts.Namespace)
		return nil
	}
	fmt.Fprintf(command.OutOrStdout(), "%s and %s written to %s\n", counted(len(written.States), "state"),
		counted(len(written.Modules), "module"), e.into.folder)
	return removeOldest(e.into.folder, e.keep)
}

func newExport() *cobra.Command {
	var e export
	command := &cobra.Command{
		Use:   "export [MACHINE...]",
		Short: "Write states into a folder, with all that is needed to restore them",
		Long: `Write states into a folder, one file each, with what the operator keeps beside them, the modules that they refer to, and the keys of
Pulumi's checkpoints. Files are readable by you only. They hold credentials and user data: encrypt them with --recipient.

docs/backup.md says what else belongs to a backup, and how to restore one.`,
		Example: `  # All states of the namespace, those of Machines that are gone too, encrypted
  kubectl machine state export --all -o backup-monday -n openshift-machine-api --recipient age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p

  # The same on a schedule: a folder below backups/openshift-machine-api for each export, the newest 48 of which stay
  kubectl machine state export --all -o backups --keep 48 -n openshift-machine-api

  # The states of one MachineSet
  kubectl machine state export machineset/workers -o workers`,
		ValidArgsFunction: e.Complete(stateNames),
		RunE:              e.run,
	}
	e.Register(command)
	e.RegisterSelection(command)
	e.RegisterManager(command)
	e.into.register(command)
	command.Flags().BoolVar(&e.all, "all", false, "Export all states of the namespace.")
	command.Flags().IntVar(&e.keep, "keep", 0,
		"Write into a new folder NAMESPACE/TIME below the output, and remove all but this many of the newest there.")
	return command
}
