// Command packaging generates what people install from, out of install/kubernetes: the Helm chart, the manifests for
// OpenShift's cluster-version operator, the bundle for the Operator Lifecycle Manager, and a release's files. It also
// generates the variables of stacks from those of their modules.
//
//	packaging generate [-check] [ROOT]
//	packaging release [-check] -version v1.2.3 [-image REFERENCE] [-o dist] [ROOT]
//
// generate writes the generated files of install/helm, install/openshift, install/olm and stacks. release writes
// crds.yaml, install.yaml, openshift.yaml, the chart and the bundle for a version and an image, and the checksums of
// all files in the folder.
// With -check they write nothing, and fail if anything is out of date or cannot be released. ROOT is the repository, by
// default the current folder.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

const usage = `usage: packaging generate [-check] [ROOT]
       packaging release [-check] -version v1.2.3 [-image REFERENCE] [-o dist] [ROOT]`

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "packaging:", err)
		os.Exit(1)
	}
}

func run(arguments []string, out io.Writer) error {
	if len(arguments) == 0 {
		return errors.New(usage)
	}
	flags := flag.NewFlagSet("packaging "+arguments[0], flag.ContinueOnError)
	check := flags.Bool("check", false,
		"Write nothing; fail when a generated file is out of date, or a version or an image cannot be released.")
	version := flags.String("version", "", "Version of the release, such as v1.2.3.")
	image := flags.String("image", "",
		"Image of the release, by its tag or digest. Default: that of the version in "+registry+".")
	folder := flags.String("o", "dist", "Folder that the release is written to.")
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
	case "release":
		r, err := newRelease(*version, *image)
		if err != nil || *check {
			return err
		}
		return r.write(root, *folder, out)
	}
	return errors.New(usage)
}

func generate(root string) (files, error) {
	all := files{}
	from, err := read(root)
	if err != nil {
		return nil, err
	}
	for _, make := range []func(source, files) error{chart, openshift, bundle, stacks} {
		if err := make(from, all); err != nil {
			return nil, err
		}
	}
	return all, nil
}
