package program

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/machine-iac/machine-iac-operator/internal/engine/pulumi"
	"github.com/machine-iac/machine-iac-operator/internal/engine/sandbox"
	"github.com/machine-iac/machine-iac-operator/internal/plan/offline"
	"github.com/machine-iac/machine-iac-operator/internal/plan/stub"
)

// languageHost runs programs in YAML. It is beside the CLI.
const languageHost = "pulumi-language-yaml"

// waitDelay is how long an interrupted CLI may take before it is killed: it has nothing to save.
const waitDelay = 5 * time.Second

// Options describe a Planner. Binary and ProviderMirror must be set.
type Options struct {
	// Binary is the CLI; the language host of programs is beside it.
	Binary pulumi.Binary
	// Plugins is a folder with Pulumi's plugins, of which the bridge to Terraform providers is used.
	Plugins string
	// ProviderMirror is a folder in the layout of a filesystem mirror, and the only source of providers.
	ProviderMirror string
	// Sandbox confines CLIs and providers; nil confines nothing.
	Sandbox *sandbox.Sandbox
	// Parallel bounds the CLIs that run at once; zero means one.
	Parallel int
}

// Planner plans stacks. It is safe for concurrent use.
type Planner struct {
	options Options
	// scratch is private to this process, and its path is short, for sockets are in it.
	scratch string
	unknown *unknownProvider
	engine  *pulumi.Engine
	// key hides what is secret in checkpoints, of which none is kept.
	key func(ctx context.Context) (*pulumi.Key, error)

	mu       sync.Mutex
	binaries map[string]*stub.Binary
	count    int
}

// New returns a Planner. Close it.
func New(ctx context.Context, o Options) (*Planner, error) {
	if o.Binary.Path == "" || o.ProviderMirror == "" {
		return nil, errors.New("planning stacks offline: the CLI and a folder with providers are required; name the latter with --provider-mirror")
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
		return nil, fmt.Errorf("finding the language host of YAML programs: there is no %s; install it beside pulumi, or name another pulumi with --pulumi", host)
	}
	scratch, err := stub.MakeScratch()
	if err != nil {
		return nil, err
	}
	p := &Planner{options: o, scratch: scratch, binaries: map[string]*stub.Binary{}}
	if err := p.start(); err != nil {
		return nil, errors.Join(err, p.Close(ctx))
	}
	return p, nil
}

func (p *Planner) start() (err error) {
	if err := os.Mkdir(p.mirror(), 0o700); err != nil {
		return fmt.Errorf("making a folder to plan in: %w", err)
	}
	if p.unknown, err = serveUnknown(); err != nil {
		return err
	}
	made := &lazyKey{}
	p.key = made.get
	p.engine, err = pulumi.New(pulumi.Options{
		Binary: p.options.Binary, WorkDir: filepath.Join(p.scratch, "p"), Plugins: p.options.Plugins, ProviderMirror: p.mirror(),
		// Stub binaries read and connect to what is in the scratch folder.
		Sandbox:  p.options.Sandbox.Reading(p.scratch),
		Attached: map[string]int{unknownResource: p.unknown.port}, Slots: max(1, p.options.Parallel), WaitDelay: waitDelay,
	})
	return err
}

// mirror is the folder with the stub binaries.
func (p *Planner) mirror() string { return filepath.Join(p.scratch, "m") }

// lazyKey makes a key when it is needed: that takes a good part of a second.
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

// Close ends what runs and removes what was written. No plan may be under way.
func (p *Planner) Close(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var failed []error
	if p.engine != nil {
		failed = append(failed, p.engine.Close(context.WithoutCancel(ctx))) // it has nothing to wait for
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

func (p *Planner) folder() (string, error) {
	p.mu.Lock()
	p.count++
	dir := filepath.Join(p.scratch, strconv.Itoa(p.count))
	p.mu.Unlock()
	return dir, os.Mkdir(dir, 0o700)
}

// Plan plans a stack for each of the inputs, and returns as many outcomes. Each takes a process of its own.
func (p *Planner) Plan(ctx context.Context, m offline.Module, inputs []offline.Input) []offline.Outcome {
	outcomes := make([]offline.Outcome, len(inputs))
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

// prepare reads a stack's program, and makes a stub binary for each of its providers.
func (p *Planner) prepare(ctx context.Context, m offline.Module) (*program, error) {
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

// makeBinary makes the stub binary of a provider, unless there is one.
func (p *Planner) makeBinary(ctx context.Context, provider bridged, environment map[string]string) error {
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
	made, err := stub.NewBinary(ctx, stub.BinaryOptions{
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

func (p *Planner) plan(ctx context.Context, m offline.Module, read *program, in offline.Input) (plan *offline.Plan, err error) {
	if in.Existing != nil {
		return nil, errors.New("its engine is Pulumi, and only a run can plan a Machine that exists: see the plan without --live, and kubectl machine drift")
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
		Save: func(context.Context, []byte) error { return nil }, // a preview makes nothing
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
