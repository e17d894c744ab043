package module

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/machine-iac/machine-iac-operator/cmd/kubectl-machine/cli"
	"github.com/machine-iac/machine-iac-operator/internal/engine/sandbox"
	"github.com/machine-iac/machine-iac-operator/internal/engine/tofu"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/contract"
	"github.com/machine-iac/machine-iac-operator/internal/plan/preview"
)

// checkOptions are the flags of module check.
type checkOptions struct {
	enginePath     string
	noEngine       bool
	providerMirror string
	timeout        time.Duration
	sandbox        sandbox.Mode
	output         string
}

func newCheck() *cobra.Command {
	o := checkOptions{sandbox: sandbox.Preferred}
	command := &cobra.Command{
		Use:   "check DIR|REFERENCE...",
		Short: "Check provider modules",
		Long: `Check provider modules against the contract (docs/contracts/module.md), and print each breach with its place and fix. A DIR is the
folder of a module, or one whose folders are modules; a REFERENCE is what 'kubectl machine module pack' and 'push' print, and is fetched as
the manager fetches it. The README's table of fields must be that of provider_spec, and examples/machineset.yaml be valid. No two modules of one engine may have one name, and no two serve one kind.

A module that keeps the contract is then formatted (fmt -check), validated, and tested by the engine, tofu or terraform, in a copy of its
folder and with its providers mocked. What a destroy has of it, its providers alone, is validated by itself, and the example is planned as by
'kubectl machine plan'. Providers come from
--provider-mirror, and from their registries where that is not given. Tests are code. On Linux, engine and providers are confined to that copy (--sandbox), but not from the network: use --no-engine for a module that you do
not trust.

A stack, a module whose program Pulumi runs, is checked against docs/contracts/stack.md. The engine checks its variables and locals only, and runs
its tests if there are any; its program is skipped.

The exit code is 0 when every module passes all of it, and 1 when not.`,
		Example: `  # All modules in a folder, offline
  kubectl machine module check modules --engine-path bin/tofu --provider-mirror bin/mirror

  # The contract only, for a machine
  kubectl machine module check modules/acme --no-engine -o json

  # One that was pushed
  kubectl machine module check oci://registry.example.com/team/acme@sha256:...`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(command *cobra.Command, arguments []string) error {
			return o.run(command.Context(), arguments, command.OutOrStdout(), command.ErrOrStderr())
		},
	}
	flags := command.Flags()
	flags.StringVar(&o.enginePath, "engine-path", "", "File of the engine. Default: tofu, else terraform, on PATH.")
	flags.BoolVar(&o.noEngine, "no-engine", false, "Check the contract only.")
	flags.StringVar(&o.providerMirror, "provider-mirror", "",
		"Filesystem mirror with the providers; disables downloads.")
	flags.Var(&o.sandbox, "sandbox",
		"Whether engine and providers are confined to their files by the kernel's Landlock: preferred, required or off.")
	flags.DurationVar(&o.timeout, "timeout", 5*time.Minute, "How long the engine may take for one module.")
	flags.StringVarP(&o.output, "output", "o", "", "Format of the output: json, or nothing for people.")
	return command
}

func (o checkOptions) run(ctx context.Context, arguments []string, out, errOut io.Writer) error {
	if o.output != "" && o.output != "json" {
		return fmt.Errorf("the output format %q is not known; write -o json, or leave it out", o.output)
	}
	if o.noEngine && o.enginePath != "" {
		return errors.New("--no-engine and --engine-path contradict each other; leave one out")
	}
	found, err := findModules(ctx, arguments)
	if err != nil {
		return err
	}
	check, err := o.engine(ctx, errOut)
	if err != nil {
		return err
	}
	checked := checkContracts(found)
	if check != nil {
		checked.Engine = check.binary.String()
	}
	for _, one := range checked.Modules {
		if err := o.finish(ctx, one, check, out, errOut); err != nil {
			return err
		}
	}
	checked.settle()
	if err := checked.print(out, o.output); err != nil {
		return err
	}
	if !checked.OK {
		return cli.ErrReported
	}
	return nil
}

// finish checks a module with the engine, if any. It prints the text for people as soon as a module
// is done.
func (o checkOptions) finish(ctx context.Context, one *checkedModule, check *engineCheck, out, errOut io.Writer) error {
	if check != nil {
		if err := one.checkByEngine(ctx, check); err != nil {
			return err
		}
	}
	one.OK = len(one.Breaches) == 0
	if o.output != "" {
		return nil
	}
	if len(one.WithoutChecksums) > 0 {
		fmt.Fprintf(errOut, "warning: %s has no checksums of %s: any binary is accepted as that provider; "+
			"run 'tofu providers lock' (terraform for its registry)\n",
			filepath.Join(one.Dir, lockFile), strings.Join(one.WithoutChecksums, ", "))
	}
	_, err := io.WriteString(out, one.text())
	return err
}

// engine returns nil if the check needs none.
func (o checkOptions) engine(ctx context.Context, errOut io.Writer) (*engineCheck, error) {
	if o.noEngine {
		return nil, nil
	}
	binary, err := tofu.Find(ctx, tofu.FindOptions{Path: o.enginePath})
	if err != nil && o.enginePath != "" {
		return nil, err
	}
	if err != nil {
		fmt.Fprintf(errOut, "warning: fmt, validate and test are left out: %v (--engine-path). --no-engine silences this\n",
			err)
		return nil, nil
	}
	confined, err := sandbox.New(sandbox.Options{Mode: o.sandbox})
	if err != nil {
		return nil, err
	}
	return newEngineCheck(binary, o.providerMirror, o.timeout, confined)
}

// checkedModules is the result in the format of -o json.
type checkedModules struct {
	OK bool `json:"ok"`
	// Engine is empty if none was used.
	Engine   string           `json:"engine,omitempty"`
	Modules  []*checkedModule `json:"modules"`
	Problems []string         `json:"problems,omitempty"`
}

// checkedModule is the result for one module.
type checkedModule struct {
	OK bool `json:"ok"`
	// Dir is the folder as given, or the reference.
	Dir string `json:"dir"`
	// Reference is name@sha256:digest; empty if the module breaks the contract.
	Reference string   `json:"reference,omitempty"`
	Kinds     []string `json:"kinds,omitempty"`
	Providers []string `json:"providers,omitempty"`
	// Defaults are the fields with defaults.
	Defaults []string `json:"defaults,omitempty"`
	Passed   []string `json:"passed,omitempty"`
	// LeftOut is what the engine did not check.
	LeftOut []string `json:"leftOut,omitempty"`
	// NoBatches is why Machines with this module cannot share a process; empty if they can.
	NoBatches string `json:"noBatches,omitempty"`
	// WithoutChecksums are the registries' providers without checksums in the lock file.
	WithoutChecksums []string `json:"withoutChecksums,omitempty"`
	Breaches         []breach `json:"breaches,omitempty"`
	files            fs.FS
	loaded           *module.Module
	// example is the MachineSet to plan, if there is one.
	example []*preview.Request
}

// breach is one problem, with its place.
type breach struct {
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	What    string `json:"what,omitempty"`
	Problem string `json:"problem"`
	Fix     string `json:"fix,omitempty"`
	// Unsafe means that content with this breach is never used, wherever it comes from.
	Unsafe bool `json:"unsafe,omitempty"`
}

// settle completes the result once everything has been checked.
func (c *checkedModules) settle() {
	c.OK = len(c.Problems) == 0
	for _, one := range c.Modules {
		c.OK = c.OK && one.OK
	}
}

// print prints what concerns all modules; as JSON, that is everything.
func (c *checkedModules) print(out io.Writer, format string) error {
	if format == "json" {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		encoder.SetEscapeHTML(false)
		return encoder.Encode(c)
	}
	for _, problem := range c.Problems {
		if _, err := fmt.Fprintln(out, problem); err != nil {
			return err
		}
	}
	return nil
}

// text returns the breaches of a module, or else what it serves.
func (m *checkedModule) text() string {
	var text strings.Builder
	for _, found := range m.Breaches {
		fmt.Fprintln(&text, contract.Breach(found))
	}
	if !m.OK {
		return text.String()
	}
	providers := "none"
	if len(m.Providers) > 0 {
		providers = strings.Join(m.Providers, ", ")
	}
	defaults := ""
	if len(m.Defaults) > 0 {
		defaults = "; fills in: " + strings.Join(m.Defaults, ", ")
	}
	leftOut := ""
	if len(m.LeftOut) > 0 {
		leftOut = "; left out: " + strings.Join(m.LeftOut, ", ")
	}
	fmt.Fprintf(&text, "%s serves %s; providers: %s%s; passed: %s%s\n",
		m.Reference, strings.Join(m.Kinds, ", "), providers, defaults, strings.Join(m.Passed, ", "), leftOut)
	if m.NoBatches != "" {
		fmt.Fprintf(&text,
			"note: each of its Machines has engine processes of its own, which cost several times as much as batches: %s\n",
			m.NoBatches)
	}
	return text.String()
}
