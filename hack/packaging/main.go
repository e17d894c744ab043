// Command packaging makes what people install from, the Helm chart, the manifests for OpenShift's
// cluster-version operator and the bundle for the Operator Lifecycle Manager. install/kubernetes is what they are made from.
//
//	packaging generate [-check] [ROOT]
//
// generate writes the generated files of install/helm, install/openshift and install/olm; with -check it writes nothing, and fails when one is out
// of date. ROOT is the repository, the current folder if left out.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
)

const usage = "usage: packaging generate [-check] [ROOT]"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "packaging:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) == 0 {
		return errors.New(usage)
	}
	flags := flag.NewFlagSet("packaging "+arguments[0], flag.ContinueOnError)
	check := flags.Bool("check", false, "Write nothing; fail when a file is out of date.")
	if err := flags.Parse(arguments[1:]); err != nil {
		return err
	}
	root := "."
	if flags.NArg() > 0 {
		root = flags.Arg(0)
	}
	switch arguments[0] {
	case "generate":
		files, err := generate(root)
		if err != nil {
			return err
		}
		if *check {
			return files.compare(root)
		}
		return files.write(root)
	}
	return errors.New(usage)
}

// generate returns every generated file.
func generate(root string) (files, error) {
	all := files{}
	from, err := read(root)
	if err != nil {
		return nil, err
	}
	for _, make := range []func(source, files) error{chart, openshift, bundle} {
		if err := make(from, all); err != nil {
			return nil, err
		}
	}
	return all, nil
}
