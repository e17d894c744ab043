package module

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/terraform-exec/tfexec"

	"github.com/machine-iac/machine-iac-operator/cmd/kubectl-machine/cli"
	"github.com/machine-iac/machine-iac-operator/internal/engine/provider"
	"github.com/machine-iac/machine-iac-operator/internal/engine/sandbox"
	"github.com/machine-iac/machine-iac-operator/internal/engine/tofu"
	"github.com/machine-iac/machine-iac-operator/internal/module/contract"
)

const (
	lockFile = ".terraform.lock.hcl"
	// endDelay is how long an interrupted engine has to exit before it is killed. It has nothing to
	// save.
	endDelay = 5 * time.Second
)

// engineCheck checks modules with an engine.
type engineCheck struct {
	binary tofu.Binary
	// mirror is absolute; if empty, providers come from the sources in the user's own configuration.
	mirror   string
	mirrored *provider.Mirror
	timeout  time.Duration
	// own is the user's environment for an engine that does not use the mirror.
	own map[string]string
	// sandbox confines the engine and its providers; nil disables it.
	sandbox *sandbox.Sandbox
}

func newEngineCheck(binary tofu.Binary, mirror string, timeout time.Duration,
	confined *sandbox.Sandbox) (*engineCheck, error) {
	if err := confined.Check(); err != nil {
		return nil, err
	}
	if mirror == "" {
		own, err := cli.OwnEnvironment()
		if err != nil {
			return nil, err
		}
		return &engineCheck{binary: binary, mirrored: &provider.Mirror{}, timeout: timeout, sandbox: confined, own: own}, nil
	}
	absolute, err := filepath.Abs(mirror)
	if err != nil {
		return nil, fmt.Errorf("finding the provider mirror: %w", err)
	}
	if info, err := os.Stat(absolute); err != nil || !info.IsDir() {
		return nil,
			fmt.Errorf("finding the provider mirror: %s is no folder; name one that is laid out as a filesystem mirror", mirror)
	}
	mirrored, err := provider.OpenMirror(absolute)
	if err != nil {
		return nil, err
	}
	return &engineCheck{
		binary: binary, mirror: absolute, mirrored: mirrored, timeout: timeout,
		sandbox: confined.Reading(sandbox.Tree(absolute)...),
	}, nil
}

// checkByEngine adds what the engine finds. A module that breaks the contract never reaches the
// engine. An error is a problem of this machine, not of the module.
func (m *checkedModule) checkByEngine(ctx context.Context, check *engineCheck) (err error) {
	if m.loaded == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, check.timeout)
	defer cancel()
	scratch, err := os.MkdirTemp("", "module")
	if err != nil {
		return fmt.Errorf("checking %s: %w", m.Dir, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	copied := filepath.Join(scratch, "module")
	if err := copyModule(copied, m.files, check.mirrored); err != nil {
		return fmt.Errorf("checking %s: %w", m.Dir, err)
	}
	w := &work{module: m, check: check, dir: copied, engine: check.binary.Name}
	confined := check.sandbox
	if check.mirror == "" { // init writes where the user's own configuration says, and starts no provider
		confined = nil
	}
	if w.terraform, err = w.cli(confined); err != nil {
		return fmt.Errorf("checking %s: %w", m.Dir, err)
	}
	for _, step := range w.steps() {
		before := len(m.Breaches)
		if err := step.run(ctx); err != nil {
			if cause := context.Cause(ctx); cause != nil {
				err = fmt.Errorf("%w; --timeout gives it more time", cause)
			}
			return fmt.Errorf("checking %s by %s %s: %w", m.Dir, check.binary.Name, step.name, err)
		}
		switch {
		case len(m.Breaches) == before:
			m.Passed = append(m.Passed, step.name)
		case step.name != "fmt": // later steps would only repeat it
			return nil
		}
	}
	return nil
}

// step is one check by the engine.
type step struct {
	name string
	run  func(context.Context) error
}

// steps returns the steps for the module. For a stack, they check its HCL: types, validations and
// locals. Its program is skipped.
func (w *work) steps() []step {
	steps := []step{{"fmt", w.format}, {"init", w.initialise}, {"validate", w.validate}}
	if w.module.loaded.Traits().HCL {
		steps = append(steps, step{"destroy", w.destroy}, step{"test", w.test})
		if len(w.module.example) > 0 {
			steps = append(steps, step{"example", w.planExample})
		}
		return steps
	}
	w.module.LeftOut = append(w.module.LeftOut, "program")
	if tests, err := fs.Glob(w.module.files, "tests/*.tftest.hcl"); err != nil || len(tests) == 0 {
		w.module.LeftOut = append(w.module.LeftOut, "test")
		return steps
	}
	return append(steps, step{"test", w.test})
}

// cli returns the CLI with a clean environment: no credentials of the caller, no TF_VAR_*.
// Credentials are dummies, since some providers must be configured before anything is validated.
func (w *work) cli(confined *sandbox.Sandbox) (*tfexec.Terraform, error) {
	c, scratch, credentials := w.check, filepath.Dir(w.dir), w.module.loaded.Spec().Credentials
	terraform, err := tfexec.NewTerraform(w.dir, confined.Program(c.binary.Path))
	if err != nil {
		return nil, err
	}
	environment := map[string]string{"CHECKPOINT_DISABLE": "1", "HOME": scratch}
	if credentials != nil {
		for _, key := range credentials.Keys {
			environment[cmp.Or(key.Env, key.File)] = "dummy"
		}
	}
	maps.Copy(environment, c.own)
	if c.mirror != "" {
		config := filepath.Join(scratch, "cli.tfrc")
		content := "disable_checkpoint = true\nprovider_installation {\n  filesystem_mirror {\n    path = " +
			strconv.Quote(c.mirror) + "\n  }\n}\n"
		if err := os.WriteFile(config, []byte(content), 0o600); err != nil {
			return nil, err
		}
		environment["TF_CLI_CONFIG_FILE"] = config
	}
	for _, name := range []string{"PATH", "TMPDIR"} {
		if value, set := os.LookupEnv(name); set {
			environment[name] = value
		}
	}
	if confined != nil {
		environment["TMPDIR"] = scratch
	}
	maps.Copy(environment,
		confined.Environment(sandbox.Policy{Program: c.binary.Path, Read: w.readable(environment), Write: []string{scratch}}))
	if err := terraform.SetEnv(environment); err != nil {
		return nil, err
	}
	return terraform, terraform.SetWaitDelay(endDelay)
}

// readable returns what the CLI may read besides the mirror: its configuration, and its folders of
// providers, which the module's are links to.
func (w *work) readable(environment map[string]string) []string {
	found := sandbox.Tree(filepath.Join(w.dir, ".terraform"))
	for _, name := range []string{"TF_CLI_CONFIG_FILE", "TF_PLUGIN_CACHE_DIR", "SSL_CERT_FILE", "SSL_CERT_DIR"} {
		found = append(found, sandbox.Named(map[string]string{name: environment[name]})...)
	}
	for _, name := range []string{".terraformrc", ".tofurc", ".terraform.d", filepath.Join(".config", "opentofu")} {
		found = append(found, filepath.Join(environment["HOME"], name))
	}
	return found
}

// copyModule copies the module without files and folders that start with a dot, such as .terraform.
// The lock file is adapted to an engine that uses the mirror.
func copyModule(to string, from fs.FS, mirrored *provider.Mirror) error {
	return fs.WalkDir(from, ".", func(name string, entry fs.DirEntry, err error) error {
		hidden := strings.HasPrefix(entry.Name(), ".") && name != "." && name != lockFile
		target := filepath.Join(to, filepath.FromSlash(name))
		switch {
		case err != nil:
			return err
		case entry.IsDir() && hidden:
			return fs.SkipDir
		case entry.IsDir():
			return os.Mkdir(target, 0o700)
		case hidden:
			return nil
		}
		content, err := fs.ReadFile(from, name)
		if err == nil && name == lockFile {
			content, err = tofu.LockForMirror(content, mirrored)
		}
		if err != nil {
			return err
		}
		return os.WriteFile(target, content, 0o600)
	})
}

// work is the check of a copy of one module.
type work struct {
	module    *checkedModule
	check     *engineCheck
	terraform *tfexec.Terraform
	dir       string
	engine    string
	// beside is the search whose files are next to the module's; none in a run of the module alone.
	beside search
}

// testsFolder contains the tests of a module, and those of each search in a subfolder of its name.
const testsFolder = "tests"

func (w *work) format(ctx context.Context) error {
	formatted, files, err := w.terraform.FormatCheck(ctx, tfexec.Recursive(true))
	if err != nil || formatted {
		return err
	}
	for _, file := range files {
		w.module.add(contract.Breach{File: file, Problem: "is not formatted",
			Fix: "run " + w.engine + " fmt -recursive in the module's folder"})
	}
	return nil
}

func (w *work) initialise(ctx context.Context) error {
	var output bytes.Buffer
	err := w.terraform.InitJSON(ctx, &output, tfexec.Backend(false))
	if err != nil {
		return w.addDiagnostics(ctx, &output, err)
	}
	w.terraform, err = w.cli(w.check.sandbox) // the next step starts providers
	return err
}

// validate checks the module together with each of its searches, until one has errors.
func (w *work) validate(ctx context.Context) error {
	searches := w.searches()
	if len(searches) == 0 {
		searches = []search{{}}
	}
	before := len(w.module.Breaches)
	for _, one := range searches {
		if err := w.validateWith(ctx, one); err != nil || len(w.module.Breaches) > before {
			return err
		}
	}
	return w.checkDisruptive(ctx)
}

func (w *work) validateWith(ctx context.Context, one search) error {
	remove, err := w.copySearch(one)
	if err != nil {
		return err
	}
	defer remove()
	result, err := w.terraform.Validate(ctx)
	if err != nil {
		return err
	}
	for _, found := range result.Diagnostics {
		diagnostic := diagnostic{Severity: string(found.Severity), Summary: found.Summary, Detail: found.Detail}
		if found.Range != nil {
			diagnostic.Range.Filename, diagnostic.Range.Start.Line = found.Range.Filename, found.Range.Start.Line
		}
		w.add(diagnostic)
	}
	return nil
}

func (w *work) test(ctx context.Context) error {
	var output bytes.Buffer
	err := w.terraform.Test(ctx, &output)
	if err := w.addDiagnostics(ctx, &output, err); err != nil {
		return err
	}
	for _, one := range w.searches() {
		if err := w.testSearch(ctx, one); err != nil {
			return err
		}
	}
	return nil
}

// testSearch runs the tests of a search, if any: for finding nothing, several objects, and objects
// of others.
func (w *work) testSearch(ctx context.Context, one search) error {
	tests, err := fs.Glob(w.module.files, path.Join(testsFolder, one.folder, "*.tftest.hcl"))
	if err != nil || len(tests) == 0 {
		return err
	}
	remove, err := w.copySearch(one)
	if err != nil {
		return err
	}
	defer remove()
	// The engine runs the tests of one folder; tfexec does not support the flag for another one.
	folder, aside := filepath.Join(w.dir, testsFolder), filepath.Join(w.dir, ".tests")
	if err := os.Rename(folder, aside); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(aside, one.folder), folder); err != nil {
		return err
	}
	var output bytes.Buffer
	err = w.terraform.Test(ctx, &output)
	return errors.Join(w.addDiagnostics(ctx, &output, err), os.Rename(folder, filepath.Join(aside, one.folder)),
		os.Rename(aside, folder))
}

// addDiagnostics adds the errors in the engine's -json output as breaches. It returns a failure
// that the output does not explain.
func (w *work) addDiagnostics(ctx context.Context, output *bytes.Buffer, failure error) error {
	if failure == nil {
		return nil
	}
	if ctx.Err() != nil {
		return failure
	}
	before := len(w.module.Breaches)
	for line := range bytes.Lines(output.Bytes()) {
		var message struct {
			Type       string     `json:"type"`
			Diagnostic diagnostic `json:"diagnostic"`
			File       string     `json:"@testfile"`
			Run        string     `json:"@testrun"`
		}
		if json.Unmarshal(line, &message) != nil || message.Type != "diagnostic" {
			continue
		}
		if message.Diagnostic.Range.Filename == "" {
			message.Diagnostic.Range.Filename = message.File
		}
		if name, ok := strings.CutPrefix(message.Diagnostic.Range.Filename, testsFolder+"/"); ok && len(w.beside.files) > 0 {
			message.Diagnostic.Range.Filename = path.Join(testsFolder, w.beside.folder, name)
		}
		if message.Run != "" {
			message.Diagnostic.what = fmt.Sprintf("run %q", message.Run)
		}
		w.add(message.Diagnostic)
	}
	if len(w.module.Breaches) == before {
		return failure
	}
	return nil
}

// diagnostic is one of the engine's.
type diagnostic struct {
	Severity string `json:"severity"`
	Summary  string `json:"summary"`
	Detail   string `json:"detail"`
	Range    struct {
		Filename string `json:"filename"`
		Start    struct {
			Line int `json:"line"`
		} `json:"start"`
	} `json:"range"`
	what string
}

// add adds an error as a breach, with the engine's detail as the fix. It skips warnings.
func (w *work) add(d diagnostic) {
	if d.Severity != "error" {
		return
	}
	if i := slices.IndexFunc(w.beside.files,
		func(name string) bool { return path.Base(name) == d.Range.Filename }); i >= 0 {
		d.Range.Filename = w.beside.files[i]
	}
	w.module.add(contract.Breach{
		File: d.Range.Filename, Line: d.Range.Start.Line, What: d.what,
		Problem: "fails: " + oneLine(d.Summary), Fix: oneLine(d.Detail),
	})
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
