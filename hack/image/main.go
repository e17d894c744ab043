// Command image builds the container image, without a container engine:
//
//	image build [-version V] [-providers MIRROR] [-o dist/image] [OS/ARCH ...]
//	image stage [-version V] [-providers MIRROR] [-platform OS/ARCH] FOLDER
//	image push [-layout dist/image] REFERENCE
//	image archive [-layout dist/image] REFERENCE FILE
//
// build writes an OCI layout with an image for each platform and the SBOM of each image. stage writes the same files
// into a folder for each layer, from which the Dockerfile copies them. push uploads a layout to a registry.
// archive writes this machine's image of a layout as docker save does, for kind. See docs/image.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

const usage = `usage: image build [-version V] [-providers MIRROR] [-o dist/image] [OS/ARCH ...]
       image stage [-version V] [-providers MIRROR] [-platform OS/ARCH] FOLDER
       image push [-layout dist/image] REFERENCE
       image archive [-layout dist/image] REFERENCE FILE`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string, out io.Writer) error {
	if len(arguments) == 0 {
		return errors.New(usage)
	}
	flags := flag.NewFlagSet("image "+arguments[0], flag.ContinueOnError)
	version := flags.String("version", "development", "Version of the programs.")
	providers := flags.String("providers", "", "Filesystem mirror with providers to add.")
	layout := flags.String("layout", "dist/image", "Folder of the OCI layout.")
	flags.StringVar(layout, "o", *layout, "The same.")
	platform := flags.String("platform", "", "Platform of the files, as OS/ARCH. Default: linux and this machine's.")
	if err := flags.Parse(arguments[1:]); err != nil {
		return err
	}
	switch {
	case arguments[0] == "build":
		return buildLayout(ctx, *version, *providers, *layout, flags.Args(), out)
	case arguments[0] == "stage" && flags.NArg() == 1:
		return stageFiles(ctx, *version, *providers, *platform, flags.Arg(0), out)
	case arguments[0] == "push" && flags.NArg() == 1:
		return push(ctx, *layout, flags.Arg(0), out)
	case arguments[0] == "archive" && flags.NArg() == 2:
		return archive(*layout, flags.Arg(0), flags.Arg(1))
	}
	return errors.New(usage)
}

func buildLayout(ctx context.Context, version, providers, folder string, names []string, out io.Writer) error {
	if len(names) == 0 {
		names = []string{""}
	}
	s, err := newSource(ctx, version, providers, out)
	if err != nil {
		return err
	}
	var contents []content
	for _, name := range names {
		platform, err := platformOf(name)
		if err != nil {
			return err
		}
		one, err := s.content(ctx, platform)
		if err != nil {
			return err
		}
		contents = append(contents, one)
	}
	return s.write(folder, contents)
}

func stageFiles(ctx context.Context, version, providers, name, folder string, out io.Writer) error {
	platform, err := platformOf(name)
	if err != nil {
		return err
	}
	s, err := newSource(ctx, version, providers, out)
	if err != nil {
		return err
	}
	staged, err := s.content(ctx, platform)
	if err != nil {
		return err
	}
	return stage(folder, staged.layers, s.created)
}

// platformOf parses a platform; "" is linux on this machine's architecture.
func platformOf(name string) (v1.Platform, error) {
	if name == "" {
		name = "linux/" + runtime.GOARCH
	}
	system, architecture, ok := strings.Cut(name, "/")
	if !ok || system != "linux" || architecture == "" || strings.Contains(architecture, "/") {
		return v1.Platform{}, fmt.Errorf(
			"invalid platform %q: must be linux/ARCH, for example linux/arm64", name)
	}
	return v1.Platform{OS: system, Architecture: architecture}, nil
}

// source is the repository that images are built from.
type source struct {
	version string
	// providers is a filesystem mirror with providers to add, or empty.
	providers string
	// revision is the commit, or empty outside a git repository.
	revision string
	// created is the timestamp of everything in the image, for reproducible builds.
	created time.Time
	out     io.Writer
}

func newSource(ctx context.Context, version, providers string, out io.Writer) (source, error) {
	if _, err := os.Stat("hack/tools.sh"); err != nil {
		return source{}, fmt.Errorf("finding the repository: %w; run this in its root folder, or use 'make image'", err)
	}
	s := source{version: version, providers: providers, out: out}
	var seconds string
	if commit, err := exec.CommandContext(ctx, "git", "log", "-1", "--format=%H %ct").Output(); err == nil {
		s.revision, seconds, _ = strings.Cut(strings.TrimSpace(string(commit)), " ")
	}
	if given := os.Getenv("SOURCE_DATE_EPOCH"); given != "" {
		seconds = given
	}
	s.created = time.Unix(0, 0).UTC()
	if seconds == "" {
		return s, nil
	}
	parsed, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return source{}, fmt.Errorf("invalid SOURCE_DATE_EPOCH %q: must be seconds since 1970", seconds)
	}
	s.created = time.Unix(parsed, 0).UTC()
	return s, nil
}

// step prints a finished step and its duration.
func (s source) step(started time.Time, format string, arguments ...any) {
	fmt.Fprintf(s.out, "%-64s %6.1f s\n", fmt.Sprintf(format, arguments...), time.Since(started).Seconds())
}
