package plan

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/cmd/kubectl-machine/cli"
	"github.com/machine-iac/machine-iac-operator/internal/engine/provider"
	"github.com/machine-iac/machine-iac-operator/internal/engine/pulumi"
	"github.com/machine-iac/machine-iac-operator/internal/engine/sandbox"
	"github.com/machine-iac/machine-iac-operator/internal/engine/tofu"
	"github.com/machine-iac/machine-iac-operator/internal/plan/offline"
	"github.com/machine-iac/machine-iac-operator/internal/plan/preview"
)

// engineOptions are the flags that say where the engines are, and what they may use.
type engineOptions struct {
	enginePath     string
	providerMirror string
	pulumi         string
	pulumiPlugins  string
	cacheDir       string
	sandbox        sandbox.Mode
	parallel       int
}

// confined returns what confines the engines, nil where nothing does.
func (o engineOptions) confined() (*sandbox.Sandbox, error) {
	confined, err := sandbox.New(sandbox.Options{Mode: o.sandbox})
	return confined, errors.Join(err, confined.Check())
}

func (o *engineOptions) registerPulumi(flags *pflag.FlagSet) {
	flags.StringVar(&o.pulumi, "pulumi", "",
		"File of the CLI that plans stacks. Default: pulumi beside kubectl-machine, else on PATH.")
	flags.StringVar(&o.pulumiPlugins, "pulumi-plugins", "",
		"Folder with Pulumi's plugins. Nothing is downloaded. Default: pulumi-plugins beside kubectl-machine, else the user's own.")
}

func (o *engineOptions) registerSandbox(flags *pflag.FlagSet) {
	o.sandbox = sandbox.Preferred
	flags.Var(&o.sandbox, "sandbox",
		"Whether engines and providers are confined to their files by the kernel's Landlock: preferred, required or off.")
}

// engines has the planner of every engine.
var engines = []struct {
	name v1alpha1.Engine
	open func(o engineOptions, ctx context.Context, into *planners) (preview.Planner, error)
}{
	{v1alpha1.EngineTerraform, engineOptions.openTofu},
	{v1alpha1.EnginePulumi, engineOptions.openPulumi},
}

// planners are the engines that are needed for what is planned.
type planners struct {
	preview.Planners
	names  []string
	closes []func() error
}

// open finds the engines.
func (o engineOptions) open(ctx context.Context, needed []v1alpha1.Engine) (*planners, error) {
	opened := &planners{Planners: preview.Planners{}}
	for _, one := range engines {
		if !slices.Contains(needed, one.name) {
			continue
		}
		planner, err := one.open(o, ctx, opened)
		if err != nil {
			return nil, errors.Join(err, opened.close())
		}
		opened.Planners[one.name] = planner
	}
	return opened, nil
}

// close closes and removes everything that was opened, in reverse order.
func (p *planners) close() error {
	var failed []error
	for _, one := range slices.Backward(p.closes) {
		failed = append(failed, one())
	}
	return errors.Join(failed...)
}

// title names the engines.
func (p *planners) title() string { return strings.Join(p.names, ", ") }

// recordedSchemas is the program, beside kubectl-machine, that stands for the providers of built-in modules.
const recordedSchemas = "kubectl-machine-schemas"

// mirror returns the folder with the providers; empty where there is none. Of recorded schemas it makes one, if they have
// every provider that is needed.
func (o engineOptions) mirror(ctx context.Context, requests []*preview.Request) (string, error) {
	if dir := orBeside(o.providerMirror, "schemas", "mirror"); dir != "" {
		return dir, nil
	}
	recorded := orBeside("", recordedSchemas)
	if recorded == "" {
		return "", nil
	}
	content, err := os.ReadFile(recorded)
	if err != nil {
		return "", fmt.Errorf("reading the recorded schemas: %w", err)
	}
	if err := os.MkdirAll(o.cacheDir, 0o700); err != nil {
		return "", fmt.Errorf("making the cache: %w", err)
	}
	sum := sha256.Sum256(content) // another release has others
	dir := filepath.Join(o.cacheDir, fmt.Sprintf("schemas-%x", sum[:8]))
	if out, err := exec.CommandContext(ctx, recorded, "mirror", dir).CombinedOutput(); err != nil {
		return "", fmt.Errorf("unpacking the recorded schemas: %w: %s", err, out)
	}
	for _, one := range requests {
		if len(provider.Lacking(dir, provider.Pinned(one.Module.Files()))) > 0 {
			return "", nil
		}
	}
	return dir, nil
}

func (o engineOptions) openTofu(ctx context.Context, into *planners) (preview.Planner, error) {
	path := orBeside(o.enginePath, tofu.OpenTofu, tofu.Terraform)
	binary, err := tofu.Find(ctx, tofu.FindOptions{Path: path})
	if err != nil && path == "" {
		return nil, fmt.Errorf("no engine beside kubectl-machine: %w; %s", err, engineHint)
	}
	if err != nil {
		return nil, err
	}
	confined, err := o.confined()
	if err != nil {
		return nil, err
	}
	options := offline.Options{Binary: binary, CacheDir: o.cacheDir, ProviderMirror: o.providerMirror, Parallel: o.parallel,
		Sandbox: confined}
	if options.ProviderMirror == "" {
		if options.InitEnvironment, err = cli.OwnEnvironment(); err != nil {
			return nil, err
		}
	}
	planner, err := offline.New(options)
	if err != nil {
		return nil, err
	}
	into.closes = append(into.closes, planner.Close)
	into.names = append(into.names, binary.Name+" "+binary.Version.String())
	return planner, nil
}

func (o engineOptions) openPulumi(ctx context.Context, into *planners) (preview.Planner, error) {
	path := orBeside(o.pulumi, pulumi.Name)
	if path == "" {
		found, err := exec.LookPath(pulumi.Name)
		if err != nil {
			return nil, errors.New("finding pulumi, which plans stacks: it is neither beside kubectl-machine nor on PATH; install it, or name its file with --pulumi")
		}
		path = found
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real // the language hosts are next to it
	}
	binary, err := pulumi.Find(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("%w; name another with --pulumi", err)
	}
	plugins, err := o.plugins()
	if err != nil {
		return nil, err
	}
	confined, err := o.confined()
	if err != nil {
		return nil, err
	}
	planner, err := offline.NewStackPlanner(ctx, offline.StackOptions{Binary: binary, Plugins: plugins,
		ProviderMirror: o.providerMirror, Parallel: o.parallel, Sandbox: confined})
	if err != nil {
		return nil, err
	}
	into.closes = append(into.closes, func() error { return planner.Close(ctx) })
	into.names = append(into.names, pulumi.Name+" "+binary.Version.String())
	return planner, nil
}

// plugins returns the folder with Pulumi's plugins.
func (o engineOptions) plugins() (string, error) {
	if beside := orBeside(o.pulumiPlugins, "pulumi-plugins"); beside != "" {
		return beside, nil
	}
	if home, err := os.UserHomeDir(); err == nil {
		own := filepath.Join(home, ".pulumi", "plugins")
		if info, err := os.Stat(own); err == nil && info.IsDir() {
			return own, nil
		}
	}
	return "",
		errors.New("finding Pulumi's plugins: there are none beside kubectl-machine (pulumi-plugins) or in the user's own folder; name a folder with --pulumi-plugins")
}

// cache returns the folder that keeps modules. Where the user has none, it is one for this call.
func (o engineOptions) cache() (dir string, release func() error, err error) {
	keep := func() error { return nil }
	if o.cacheDir != "" {
		return o.cacheDir, keep, nil
	}
	if dir, err := os.UserCacheDir(); err == nil {
		return filepath.Join(dir, "machine-iac", "modules"), keep, nil
	}
	dir, err = os.MkdirTemp("", "modules")
	return dir, func() error { return os.RemoveAll(dir) }, err
}
