package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/machine-iac/machine-iac-operator/internal/engine/provider"
)

// addProvidersCommand is the first argument to merge an image's mirror into the one of a volume. Init
// containers of the manager's Pod do, if the operator's setting names images with providers.
const addProvidersCommand = "add-providers"

// statfs is replaced by a test.
var statfs = unix.Statfs

func addProviders(arguments []string) error {
	flags := flag.NewFlagSet(addProvidersCommand, flag.ContinueOnError)
	own := flags.Bool("own", false,
		"Link to the mirrors instead of copying them, unless mounted noexec, and copy this program for images that have no program.")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	last := flags.NArg() - 1
	if last < 1 {
		return fmt.Errorf("usage: machine-controllers %s [--own] MIRROR... VOLUME", addProvidersCommand)
	}
	volume := flags.Arg(last)
	if *own {
		if err := copyProgram(volume); err != nil {
			return fmt.Errorf("copying this program: %w", err)
		}
	}
	for _, from := range flags.Args()[:last] {
		var mount unix.Statfs_t
		_ = statfs(from, &mount) // Merge returns the error
		// Image volumes are noexec with some versions of Kubernetes.
		if err := provider.Merge(from, filepath.Join(volume, "mirror"), *own && mount.Flags&unix.MS_NOEXEC == 0); err != nil {
			return err
		}
	}
	return nil
}

// copyProgram copies this program. It renames the copy, since an earlier one may be running.
func copyProgram(to string) error {
	own, err := os.Executable()
	if err != nil {
		return err
	}
	from, err := os.Open(own)
	if err != nil {
		return err
	}
	defer from.Close() //nolint:errcheck // it was only read
	name := filepath.Join(to, programName)
	copied, err := os.OpenFile(name+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(copied, from)
	if err := errors.Join(err, copied.Close()); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}
