// Package plan is `kubectl machine plan`: live.go is about its flags for a cluster, planners.go
// finds the engines, and environment.go is how providers reach the infrastructure.
package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/cmd/kubectl-machine/cli"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/load"
	"github.com/machine-iac/machine-iac-operator/internal/module/source"
	"github.com/machine-iac/machine-iac-operator/internal/plan/preview"
	"github.com/machine-iac/machine-iac-operator/modules"
	"github.com/machine-iac/machine-iac-operator/stacks"
)

// changesFound is the exit code if a rollout would replace a Machine, and of --detailed-exitcode if something would
// change.
const changesFound cli.ExitCode = 2

// planOptions are the flags of plan.
type planOptions struct {
	files            []string
	recursive        bool
	cluster          preview.Cluster
	clusterValues    map[string]string
	infrastructure   string
	moduleDirs       []string
	moduleSources    []string
	engines          engineOptions
	timeout          time.Duration
	output           string
	detailedExitCode bool
	strict           bool
	live             liveOptions
	// skipped are the objects of other kinds.
	skipped []string
}

const examples = `  # What a MachineSet would create
  kubectl machine plan -f machineset.yaml

  # All manifests in a folder, for a pull request
  kubectl machine plan -R -f cluster/ --cluster-id demo-x7k2p -o markdown

  # From another program, for a script
  kustomize build . | kubectl machine plan -f - --detailed-exitcode -o json

  # What an edit would do to the Machines that exist
  kubectl machine plan --live -f machineset.yaml

  # How the Machines of a MachineSet differ from its template, and their instances from their states
  kubectl machine plan machineset/workers --refresh

  # What a rollout would change in place, and what it would replace; fail if it would replace a Machine
  kubectl machine plan --live -f machinedeployment.yaml --expect in-place`

const description = `Show what MachineDeployments, MachineSets and Machines would create, from their manifests alone: with no cluster, no credentials and no network.

Manifests are checked and rendered as the operator does it, and one Machine of each MachineSet is planned by its engine: tofu or
terraform for provider modules, pulumi for stacks. What only the infrastructure or the cluster knows is shown as (known after apply). Nothing is sent anywhere, and nothing is created.

The engines and the folder with the providers (mirror) are looked for beside kubectl-machine first. Where there is no such folder, recorded
schemas beside kubectl-machine stand for the providers of built-in modules; with other modules, tofu gets providers as its own configuration
says, once for each module. Stacks need one, and plugins of Pulumi's (pulumi-plugins).

With --live, or with names instead of files, the cluster is read as well: for each Machine that exists, what the edit would do to it, from
its state in the cluster. It would stay as it is, change in place, or need a new Machine, and why. Names stand for what is in the cluster
now. Nothing is written to the cluster, and nothing but the API server is contacted. With --refresh, providers are configured with the
credentials that the cluster has, and with the proxies, authorities and endpoints that it names, as in a run; they compare each instance
with its state, and report drift.

For a MachineDeployment, that is what its rollout would do by its strategy: which Machines it would change in place and which it would
replace, because of which fields, within which bounds; which instances the surge needs; and which PodDisruptionBudgets would hold a drain.
One Machine is planned for those of a revision with the same providerSpec, all of them with --all.

A Machine may have been made with another module than this program has, which the cluster then stores. Users who may write Secrets there may store
one too, so it is used only if a key of --module-key-file has signed it.

Warnings, such as those about fields that are ignored, go to standard error, before the plan.

The exit code is 0, 1 for an error, and 2 if a rollout would replace a Machine; with --detailed-exitcode it is 2 where something would
change. With --strict, a warning is an error. With --expect in-place, it is an error if a Machine cannot keep its instance.`

// NewCommand returns the command.
func NewCommand() *cobra.Command {
	var o planOptions
	command := &cobra.Command{
		Use:     "plan -f FILE... | plan --live -f FILE... | plan MACHINESET...",
		Short:   "Show what MachineSets and MachineDeployments would create, and what an edit would change",
		Long:    description,
		Example: examples,
		RunE:    o.run,
	}
	o.live.register(command)
	flags := command.Flags()
	flags.StringSliceVarP(&o.files, "filename", "f", nil,
		"File or folder with MachineDeployments, MachineSets and Machines, or - for standard input; may be repeated.")
	flags.BoolVarP(&o.recursive, "recursive", "R", false, "Read nested folders too.")
	flags.StringVarP(&o.cluster.Namespace, "namespace", "n", "openshift-machine-api",
		"Namespace of names, and of manifests without one. With a cluster, it defaults to the context's.")
	flags.StringVar(&o.cluster.ID, "cluster-id", "",
		"Name of the cluster's infrastructure, for manifests without the label.")
	flags.StringToStringVar(&o.clusterValues, "cluster-fact", nil,
		"NAME=VALUE of the cluster, the default of fields that a manifest omits: "+
			strings.Join(clusterValueNames(), ", ")+"; may be repeated.")
	flags.StringVar(&o.infrastructure, "infrastructure", "",
		"File with the Infrastructure of an OpenShift cluster. Default: one among the manifests, or the cluster's.")
	flags.StringArrayVar(&o.moduleDirs, "module-dir", nil,
		"Folder of one or more provider modules, in addition to the built-in ones; may be repeated.")
	flags.StringArrayVar(&o.moduleSources, "module-source", nil,
		"Archive of a provider module, as for the manager: oci://registry/repository@sha256:..., https://... or file:///...; may be repeated.")
	flags.StringVar(&o.engines.enginePath, "engine-path", "",
		"File of the engine. Default: tofu or terraform beside kubectl-machine, else on PATH.")
	flags.StringVar(&o.engines.providerMirror, "provider-mirror", "",
		"Filesystem mirror with the providers; disables downloads. Default: schemas or mirror beside kubectl-machine.")
	o.engines.registerPulumi(flags)
	flags.StringVar(&o.engines.cacheDir, "cache-dir", "",
		"Folder for initialised modules. Default: one in the user's cache folder.")
	o.engines.registerSandbox(flags)
	flags.IntVar(&o.engines.parallel, "parallel", runtime.NumCPU(), "Maximum number of concurrent engines.")
	flags.DurationVar(&o.timeout, "timeout", 10*time.Minute, "Time limit.")
	flags.StringVarP(&o.output, "output", "o", "", "Format of the output: json, yaml, markdown, or nothing for people.")
	flags.BoolVar(&o.detailedExitCode, "detailed-exitcode", false, "Exit with 2 if something would change.")
	flags.BoolVar(&o.strict, "strict", false, "Exit with an error if there is any warning.")
	completeFlags(command)
	return command
}

// completeFlags has a shell complete what flags take.
func completeFlags(command *cobra.Command) {
	var formats []string
	for format, use := range preview.Formats {
		if format != "" {
			formats = append(formats, format+"\t"+use)
		}
	}
	slices.Sort(formats)
	// These fail only for an unknown flag, which the tests would catch.
	_ = command.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	_ = command.MarkFlagFilename("filename", "yaml", "yml", "json")
	_ = command.MarkFlagFilename("infrastructure", "yaml", "yml", "json")
	for _, name := range []string{"module-dir", "provider-mirror", "pulumi-plugins", "cache-dir"} {
		_ = command.MarkFlagDirname(name)
	}
	for _, name := range []string{"namespace", "cluster-id", "cluster-fact", "module-source", "parallel", "timeout"} {
		_ = command.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
}

// clusterValueNames returns the cluster values that --cluster-fact takes. Those of each Machine
// have flags of their own.
func clusterValueNames() []string {
	return slices.DeleteFunc(module.ClusterValueNames(), module.PerMachine)
}

func (o planOptions) validate(names []string) error {
	if len(o.files) == 0 && len(names) == 0 {
		return errors.New("there is nothing to plan; name a file, a folder or - with -f, or a MachineSet of the cluster")
	}
	if err := o.live.validate(names, o.files); err != nil {
		return err
	}
	if _, known := preview.Formats[o.output]; !known {
		return fmt.Errorf("the output format %q is not known; write -o json, -o yaml or -o markdown, or leave it out",
			o.output)
	}
	for name := range o.clusterValues {
		if !slices.Contains(clusterValueNames(), name) {
			return fmt.Errorf("--cluster-fact names %q, which is not a cluster value; name one of %s", name,
				strings.Join(clusterValueNames(), ", "))
		}
	}
	if o.engines.parallel < 1 {
		return fmt.Errorf("--parallel is %d; it must be positive", o.engines.parallel)
	}
	return nil
}

func (o *planOptions) run(command *cobra.Command, names []string) error {
	if err := o.validate(names); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(command.Context(), o.timeout,
		fmt.Errorf("it took longer than %s; --timeout gives it more time", o.timeout))
	defer cancel()
	result, err := o.result(ctx, command, names)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return fmt.Errorf("%w (%w)", err, cause)
	}
	if err != nil {
		return err
	}
	warnings := result.Warnings()
	if len(o.skipped) > 0 {
		warnings = append(warnings, "skipped objects of other kinds: "+strings.Join(o.skipped, ", "))
	}
	for _, warning := range warnings {
		fmt.Fprintln(command.ErrOrStderr(), "warning:", warning)
	}
	out, colours := o.out(command.OutOrStdout())
	if err := preview.Print(out, result, o.output, colours); err != nil {
		return err
	}
	if o.strict && len(warnings) > 0 {
		return fmt.Errorf("--strict: got %d warning(s); fix what is named above, or leave out --strict", len(warnings))
	}
	return o.verdict(result)
}

// verdict returns the error or the exit code for what would change.
func (o *planOptions) verdict(result *preview.Preview) error {
	if o.live.expect == expectInPlace {
		if err := result.NotInPlace(); err != nil {
			return err
		}
	}
	live := result.Summary.Live
	if live != nil && live.Replaced > 0 || o.detailedExitCode && result.Summary.Changes() {
		return changesFound
	}
	return nil
}

// result reads, checks and plans everything.
func (o *planOptions) result(ctx context.Context, command *cobra.Command, names []string) (*preview.Preview, error) {
	files, err := preview.ReadFiles(o.files, o.recursive, command.InOrStdin())
	if err != nil {
		return nil, err
	}
	if err := o.takeInfrastructure(files, command.InOrStdin()); err != nil {
		return nil, err
	}
	live := o.live.enabled || len(names) > 0
	catalog, err := o.catalog(ctx)
	if err != nil {
		return nil, err
	}
	if live {
		return o.liveResult(ctx, command, catalog, files, names)
	}
	requests, err := o.requests(files, catalog)
	if err != nil {
		return nil, err
	}
	return o.plan(ctx, requests, preview.Plan)
}

// liveResult is result with a cluster.
func (o *planOptions) liveResult(
	ctx context.Context, command *cobra.Command, catalog *module.Catalog, files []preview.File, names []string,
) (_ *preview.Preview, err error) {
	cluster, namespace, err := o.live.connect(o.cluster.Namespace, command.Flags().Changed("namespace"))
	if err != nil {
		return nil, err
	}
	o.cluster.Namespace = namespace
	named, err := o.live.manifests(ctx, o.cluster.Namespace, names)
	if err != nil {
		return nil, err
	}
	environment, err := newRunEnvironment(ctx, cluster, namespace, o.live.environment)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, environment.Close()) }()
	if environment.cluster == nil && o.live.refresh {
		fmt.Fprintln(command.ErrOrStderr(), "note:", noClusterConfigNote)
	}
	o.take(environment.clusterValues)
	o.cluster.Known = cmp.Or(o.cluster.Known, environment.known)
	requests, err := o.requests(append(files, named...), catalog)
	if err != nil {
		return nil, err
	}
	return o.plan(ctx, requests, o.live.plan(cluster, catalog, o.cluster, environment))
}

// take sets what no flag sets from the cluster, like the manager.
func (o *planOptions) take(found module.ClusterValues) {
	clusterValues := module.ClusterValues{}
	maps.Copy(clusterValues, found)
	maps.Copy(clusterValues, o.clusterValues)
	o.cluster.ID = cmp.Or(o.cluster.ID, clusterValues[module.ValueClusterID])
	clusterValues[module.ValueClusterID] = o.cluster.ID
	o.cluster.ClusterValues = clusterValues
}

// requests returns what is to be planned of files, and keeps what is skipped.
func (o *planOptions) requests(files []preview.File, catalog *module.Catalog) ([]*preview.Request, error) {
	requests, skipped, err := preview.Read(files, o.cluster, catalog)
	if err != nil {
		return nil, err
	}
	if len(requests) == 0 {
		return nil, fmt.Errorf("no MachineDeployment, MachineSet or Machine found in %s; name other files", strings.Join(o.files, ", "))
	}
	o.skipped = skipped
	return requests, nil
}

// catalog returns the modules that the operator would have.
func (o planOptions) catalog(ctx context.Context) (*module.Catalog, error) {
	builtin, err := load.Modules(modules.FS)
	if err != nil {
		return nil, err
	}
	programs, err := load.Modules(stacks.FS)
	if err != nil {
		return nil, err
	}
	added, err := load.Folders(o.moduleDirs...)
	if err != nil {
		return nil, err
	}
	fetched, err := source.FetchAll(ctx, o.moduleSources, source.Options{})
	if err != nil {
		return nil, err
	}
	return module.NewCatalog(slices.Concat(builtin, programs, added, fetched)...)
}

// planning is how requests are planned, with a planner that is called engine.
type planning func(ctx context.Context, requests []*preview.Request, planner preview.Planner,
	engine string) (*preview.Preview, error)

// plan has the engines plan what is requested.
func (o planOptions) plan(ctx context.Context, requests []*preview.Request, plan planning) (result *preview.Preview,
	err error) {
	var needed []v1alpha1.Engine
	for _, one := range requests {
		needed = append(needed, one.Engine())
	}
	cache, release, err := o.engines.cache()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, release()) }()
	o.engines.cacheDir = cache
	if o.engines.providerMirror, err = o.engines.mirror(ctx, requests); err != nil {
		return nil, err
	}
	engines, err := o.engines.open(ctx, needed)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, engines.close()) }()
	if err := checkProviders(o.engines.providerMirror, requests); err != nil {
		return nil, err
	}
	result, err = plan(ctx, requests, engines, engines.title())
	if err != nil && strings.Contains(err.Error(), unavailable) {
		return nil, fmt.Errorf("%w\n%s", err, providerHint)
	}
	return result, err
}

// orBeside returns what was named, or else the first of the names that is in the folder of this
// program; empty where none is.
func orBeside(named string, names ...string) string {
	program, err := os.Executable()
	if named != "" || err != nil {
		return named
	}
	if real, err := filepath.EvalSymlinks(program); err == nil {
		program = real
	}
	for _, name := range names {
		for _, file := range []string{name, name + ".exe"} {
			beside := filepath.Join(filepath.Dir(program), file)
			if _, err := os.Stat(beside); err == nil {
				return beside
			}
		}
	}
	return ""
}

// out returns the writer for a plan. A coloured plan, whose codes Visible would escape, has escaped
// the rest itself.
func (o planOptions) out(to io.Writer) (out io.Writer, colours bool) {
	if shown, ok := to.(*cli.Visible); ok && o.output == "" && inColour(shown.Out) {
		return shown.Out, true
	}
	return to, false
}

// inColour reports whether out is a terminal whose user has not switched colours off.
func inColour(out io.Writer) bool {
	if os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return false
	}
	file, ok := out.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
