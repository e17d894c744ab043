package offline

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/machine-iac/machine-iac-operator/internal/engine/pulumi"
	"github.com/machine-iac/machine-iac-operator/internal/engine/sandbox"
)

// languageHost runs programs in YAML. It is installed beside the CLI.
const languageHost = "pulumi-language-yaml"

// StackOptions configure a StackPlanner. Binary and ProviderMirror are required.
type StackOptions struct {
	// Binary is the CLI; the language host is beside it.
	Binary pulumi.Binary
	// Plugins is a folder with Pulumi's plugins, including the bridge to Terraform providers.
	Plugins string
	// ProviderMirror is a folder with the layout of a filesystem mirror, and the only source of providers.
	ProviderMirror string
	// Sandbox confines CLIs and providers; optional.
	Sandbox *sandbox.Sandbox
	// Parallel bounds concurrent CLIs; defaults to one.
	Parallel int
}

// StackPlanner plans stacks. It is safe for concurrent use.
type StackPlanner struct {
	options StackOptions
	// scratch is private to this process. Its path is short, because it holds sockets.
	scratch string
	unknown *unknownProvider
	engine  *pulumi.Engine
	// key encrypts secrets in checkpoints, which are all discarded.
	key func(ctx context.Context) (*pulumi.Key, error)

	mu       sync.Mutex
	binaries map[string]*stubBinary
	count    int
}

// NewStackPlanner returns a StackPlanner. Callers must close it.
func NewStackPlanner(ctx context.Context, o StackOptions) (*StackPlanner, error) {
	if o.Binary.Path == "" || o.ProviderMirror == "" {
		return nil, errors.New("planning stacks offline: the CLI and a folder with providers are required; name the " +
			"latter with --provider-mirror")
	}
	for _, dir := range []struct {
		path *string
		name string
	}{{&o.ProviderMirror, "provider mirror"}, {&o.Plugins, "folder with Pulumi's plugins"}} {
		absolute, err := filepath.Abs(*dir.path)
		if err != nil {
			return nil, fmt.Errorf("planning stacks offline: %w", err)
		}
		if info, err := os.Stat(absolute); err != nil || !info.IsDir() {
			return nil, fmt.Errorf("finding the %s: %s is no folder; name one that is", dir.name, *dir.path)
		}
		*dir.path = absolute
	}
	host := filepath.Join(filepath.Dir(o.Binary.Path), languageHost)
	if _, err := os.Stat(host); err != nil {
		return nil, fmt.Errorf("finding the language host of YAML programs: there is no %s; install it beside "+
			"pulumi, or name another pulumi with --pulumi", host)
	}
	scratch, err := makeScratch()
	if err != nil {
		return nil, err
	}
	p := &StackPlanner{options: o, scratch: scratch, binaries: map[string]*stubBinary{}}
	if err := p.start(); err != nil {
		return nil, errors.Join(err, p.Close(ctx))
	}
	return p, nil
}

func (p *StackPlanner) start() (err error) {
	if err := os.Mkdir(p.mirror(), 0o700); err != nil {
		return fmt.Errorf("making a folder to plan in: %w", err)
	}
	if p.unknown, err = serveUnknown(); err != nil {
		return err
	}
	made := &lazyKey{}
	p.key = made.get
	p.engine, err = pulumi.New(pulumi.Options{
		Binary: p.options.Binary, WorkDir: filepath.Join(p.scratch, "p"), Plugins: p.options.Plugins,
		ProviderMirror: p.mirror(),
		// Stub binaries read the scratch folder and connect to sockets in it.
		Sandbox:  p.options.Sandbox.Reading(p.scratch),
		Attached: map[string]int{unknownResource: p.unknown.port}, Slots: max(1, p.options.Parallel),
		WaitDelay: waitDelay,
	})
	return err
}

// mirror returns the folder with the stub binaries.
func (p *StackPlanner) mirror() string { return filepath.Join(p.scratch, "m") }

// lazyKey generates a key on first use, because that takes a good part of a second.
type lazyKey struct {
	mu  sync.Mutex
	key *pulumi.Key
}

func (l *lazyKey) get(ctx context.Context) (*pulumi.Key, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.key != nil {
		return l.key, nil
	}
	key, err := pulumi.NewKey(ctx)
	if err == nil {
		l.key = key
	}
	return key, err
}

// Close stops all processes and removes all files. The caller must wait for running plans first.
func (p *StackPlanner) Close(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var failed []error
	if p.engine != nil {
		failed = append(failed, p.engine.Close(context.WithoutCancel(ctx))) // does not block
	}
	if p.unknown != nil {
		p.unknown.close()
	}
	for _, one := range p.binaries {
		failed = append(failed, one.Close())
	}
	p.binaries = nil
	return errors.Join(append(failed, os.RemoveAll(p.scratch))...)
}

func (p *StackPlanner) folder() (string, error) {
	p.mu.Lock()
	p.count++
	dir := filepath.Join(p.scratch, strconv.Itoa(p.count))
	p.mu.Unlock()
	return dir, os.Mkdir(dir, 0o700)
}

// Plan plans a stack for each input and returns the outcomes in the same order. Each input takes a process of its own.
func (p *StackPlanner) Plan(ctx context.Context, m Module, inputs []Input) []Outcome {
	outcomes := make([]Outcome, len(inputs))
	read, err := p.prepare(ctx, m)
	var group sync.WaitGroup
	for n, in := range inputs {
		if err != nil {
			outcomes[n].Err = err
			continue
		}
		group.Go(func() { outcomes[n].Plan, outcomes[n].Err = p.plan(ctx, m, read, in) })
	}
	group.Wait()
	return outcomes
}

// prepare reads a stack's program and creates stub binaries for its providers.
func (p *StackPlanner) prepare(ctx context.Context, m Module) (*program, error) {
	read, err := newProgram(m.Files)
	if err != nil {
		return nil, err
	}
	providers, err := bridgedIn(m.Files)
	if err != nil {
		return nil, err
	}
	for _, one := range providers {
		if err := p.makeBinary(ctx, one, m.Environment); err != nil {
			return nil, err
		}
	}
	return read, nil
}

// makeBinary creates a provider's stub binary unless it exists.
func (p *StackPlanner) makeBinary(ctx context.Context, provider bridged, environment map[string]string) error {
	p.mu.Lock()
	_, known := p.binaries[provider.folder()]
	p.mu.Unlock()
	if known {
		return nil
	}
	file, err := provider.file(p.options.ProviderMirror)
	if err != nil {
		return err
	}
	made, err := newStubBinary(ctx, binaryOptions{
		Folder: p.folder, File: file, Environment: environment, Sandbox: p.options.Sandbox, Uses: provider.uses,
		Stub: filepath.Join(p.mirror(), provider.folder(), provider.executable()),
	})
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.binaries[provider.folder()] = made
	return nil
}

func (p *StackPlanner) plan(ctx context.Context, m Module, read *program, in Input) (plan *Plan, err error) {
	if in.Existing != nil {
		return nil, errors.New("its engine is Pulumi, and only a run can plan a Machine that exists: see the plan " +
			"without --live, and kubectl machine drift")
	}
	var locals marked
	if m.Locals != nil {
		if locals.value, locals.unknown, err = m.Locals(in); err != nil {
			return nil, err
		}
	}
	with, err := read.with(in, locals)
	if err != nil {
		return nil, err
	}
	key, err := p.key(ctx)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.count++
	id := "plan" + strconv.Itoa(p.count)
	p.mu.Unlock()
	folder, err := p.engine.Open(ctx, pulumi.RunSpec{
		ID: id, Project: read.project, Program: with.files, Variables: with.variables, Secret: with.secret, Key: key,
		Save: func(context.Context, []byte) error { return nil }, // previews create nothing
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	seen, report, err := folder.Preview(ctx)
	if err != nil {
		return nil, err
	}
	seen.Outputs = gather(seen.Outputs, with.outputs)
	return p.planOf(seen, report, with.reads), nil
}
