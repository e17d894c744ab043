package module

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/machine-iac/machine-iac-operator/internal/module/source"
)

func newPack() *cobra.Command {
	var file string
	command := &cobra.Command{
		Use:   "pack DIR",
		Short: "Pack a provider module into an archive",
		Long: `Pack the module in the folder DIR into a tar.gz, and print the reference to it: the file and its digest, for --module-source
of the manager. The module must keep the contract; its own tests are left to 'kubectl machine module check'. The same files always give the
same digest.

Put the archive where managers find it, on a web server for example, and write that location before the @ of the reference.`,
		Example: `  # Make acme.tar.gz
  kubectl machine module pack modules/acme

  # Into another file
  kubectl machine module pack modules/acme -o /srv/modules/acme-1.2.3.tar.gz`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, arguments []string) error {
			packed, err := packFolder(arguments[0])
			if err != nil {
				return err
			}
			if file == "" {
				file = packed.Module.Name() + ".tar.gz"
			}
			path, err := outside(arguments[0], file)
			if err != nil {
				return err
			}
			if err := writeFile(path, packed.Archive); err != nil {
				return fmt.Errorf("writing the archive: %w", err)
			}
			fmt.Fprintln(command.ErrOrStderr(), "packed", packed.Module.Reference())
			_, err = fmt.Fprintln(command.OutOrStdout(), packed.FileReference(path))
			return err
		},
	}
	command.Flags().StringVarP(&file, "output", "o", "",
		"File to write or overwrite. Default: NAME.tar.gz in this folder.")
	return command
}

// packFolder packs the module in a folder of its name.
func packFolder(dir string) (source.Packed, error) {
	packed, err := source.Pack(os.DirFS(dir))
	if err == nil {
		err = checkName(dir, packed.Module)
	}
	if err != nil {
		return source.Packed{}, fmt.Errorf("packing %s: %w", dir, err)
	}
	return packed, nil
}

// outside returns the absolute path of a file. It must not be in the module's folder, where it
// would become a part of the module.
func outside(dir, file string) (string, error) {
	folder, err := realPath(dir)
	if err != nil {
		return "", err
	}
	parent, err := realPath(filepath.Dir(file))
	if err != nil {
		return "", fmt.Errorf("finding the folder of the archive: %w", err)
	}
	if inside, err := filepath.Rel(folder, parent); err == nil && inside != ".." &&
		!strings.HasPrefix(inside, ".."+string(filepath.Separator)) {
		return "",
			fmt.Errorf("%s would be in the module's folder, and a part of the module from then on; name another place with -o",
				file)
	}
	return filepath.Join(parent, filepath.Base(file)), nil
}

func realPath(path string) (string, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(absolute)
}

// writeFile writes a file atomically.
func writeFile(path string, content []byte) (err error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is there, and is not a regular file", path)
	}
	unfinished, err := os.CreateTemp(filepath.Dir(path), ".module-")
	if err != nil {
		return err
	}
	_, err = unfinished.Write(content)
	err = errors.Join(err, unfinished.Chmod(0o644), unfinished.Close())
	if err == nil {
		err = os.Rename(unfinished.Name(), path)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(unfinished.Name()))
	}
	return err
}
