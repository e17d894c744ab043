package offline

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/hashicorp/terraform-exec/tfexec"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/machine-iac/machine-iac-operator/internal/engine/tofu"
)

// providersDir is where an engine keeps the providers of an initialised module.
var providersDir = filepath.Join(".terraform", "providers")

// furnish answers a workspace with the states of what exists, and with what plans in place of the providers, or with the providers
// themselves.
func (m *module) furnish(inputs []Input) (*workspace, error) {
	w, err := m.newWorkspace()
	if err != nil {
		return nil, err
	}
	w.once, w.calls = true, len(inputs)
	if err := m.fill(w, inputs); err != nil {
		return nil, errors.Join(err, m.release(w))
	}
	return w, nil
}

func (m *module) fill(w *workspace, inputs []Input) error {
	merged, err := m.source.mergedState(inputs, m.planner.options.Binary.Version.String())
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(w.dir, "terraform.tfstate"), merged, 0o600); err != nil {
		return fmt.Errorf("writing the state: %w", err)
	}
	if err := w.write(m.dir()); err != nil {
		return err
	}
	if inputs[0].Existing.Refresh {
		environment, err := w.withFiles(inputs[0].Existing)
		if err != nil {
			return fmt.Errorf("writing the files that providers read: %w", err)
		}
		return m.connect(w, environment)
	}
	return m.recall(w, inputs)
}

// withFiles writes the files of what exists into the workspace, and answers the environment with their paths.
func (w *workspace) withFiles(existing *Existing) (map[string]string, error) {
	environment := map[string]string{}
	maps.Copy(environment, existing.Environment)
	if len(existing.Files) == 0 {
		return environment, nil
	}
	dir := filepath.Join(w.dir, "secret-files")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	for name, content := range existing.Files {
		environment[name] = filepath.Join(dir, name)
		if err := os.WriteFile(environment[name], []byte(content), 0o600); err != nil {
			return nil, err
		}
	}
	return environment, nil
}

// connect has the engine of a workspace start the providers, with an environment.
func (m *module) connect(w *workspace, environment map[string]string) error {
	if len(m.installed) > 0 {
		if err := os.Symlink(filepath.Join(m.dir(), providersDir), filepath.Join(w.dir, providersDir)); err != nil {
			return fmt.Errorf("linking the providers: %w", err)
		}
	}
	engine, err := m.planner.engine(w.dir, environment)
	if err != nil {
		return fmt.Errorf("making a folder to plan in: %w", err)
	}
	w.engine = engine
	return nil
}

// recall has stand-ins serve a workspace that know what exists.
func (m *module) recall(w *workspace, inputs []Input) error {
	records, err := recordsOf(inputs[0].Existing.State)
	if err != nil {
		return err
	}
	w.reattach = tfexec.ReattachInfo{}
	for _, one := range m.installed {
		known := &past{records: records, writes: m.source.writesOf, ask: m.guess(filepath.Join(m.dir(), one.File))}
		started, err := m.standIn(one, known)
		if err != nil {
			return err
		}
		w.standIns = append(w.standIns, started)
		w.reattach[one.Address] = started.reattach(one.Protocol)
	}
	return nil
}

// writesOf answers what the module writes in its resources of a type, all together.
func (s *source) writesOf(kind string) *written {
	all := &written{attributes: map[string]bool{}, blocks: map[string]*written{}}
	for key, one := range s.resources {
		if key[0] == kind {
			all.add(one)
		}
	}
	return all
}

// add adds what another resource has.
func (w *written) add(other *written) {
	for name := range other.attributes {
		w.attributes[name] = true
	}
	for name, inner := range other.blocks {
		if w.blocks[name] == nil {
			w.blocks[name] = &written{attributes: map[string]bool{}, blocks: map[string]*written{}}
		}
		w.blocks[name].add(inner)
	}
}

// missed tells whether a data source would have been read that no state has.
func (w *workspace) missed() bool {
	for _, one := range w.standIns {
		if one.past.hasMissed() {
			return true
		}
	}
	return false
}

// mark marks the resources of which the provider has not told what becomes of them.
func (w *workspace) mark(plans []*Plan) {
	for _, standIn := range w.standIns {
		for _, plan := range plans {
			for n := range plan.Resources {
				one := &plan.Resources[n]
				one.Unsure = one.Unsure || one.Action == tofu.ActionUpdate && standIn.past.isUnsure(one.Type)
			}
		}
	}
}

func (p *past) hasMissed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.missed
}

func (p *past) isUnsure(kind string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.unsure[kind]
}

// guessTimeout bounds what a provider may take to tell something that it knows without asking anybody.
const guessTimeout = 20 * time.Second

// guesses keeps questions apart to providers that may break down over them, and has those not asked again that did.
type guesses struct {
	mu     sync.Mutex
	broken map[string]bool
}

// guessing is the purpose of a provider's process that may break down; what checks arguments has another.
const guessing = " guessing"

// guess answers how to ask a provider that is not configured what it makes of an object.
func (m *module) guess(file string) asker {
	return func(ctx context.Context, method string, request frame) (frame, error) {
		m.guesses.mu.Lock()
		defer m.guesses.mu.Unlock()
		read, err := readPlanned(request)
		if err != nil {
			return nil, err
		}
		question := file + " " + method + " " + read.kind
		if m.guesses.broken[question] {
			return nil, status.Error(codes.Unavailable, "the provider broke down over the same question")
		}
		m.mu.Lock()
		running, err := m.start(file, guessing)
		m.mu.Unlock()
		if err != nil {
			return nil, err
		}
		ctx, cancel := context.WithTimeout(ctx, guessTimeout)
		defer cancel()
		answer, err := running.connection.ask(ctx, method, request)
		if code := status.Code(err); code == codes.Unavailable || code == codes.DeadlineExceeded {
			if m.guesses.broken == nil {
				m.guesses.broken = map[string]bool{}
			}
			m.guesses.broken[question] = true
			err = errors.Join(err, m.end(running))
		}
		return answer, err
	}
}

// end ends a provider's process, so that the next use starts another.
func (m *module) end(running *plugin) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, one := range m.plugins {
		if one == running {
			delete(m.plugins, key)
		}
	}
	return errors.Join(running.connection.client.Close(), running.process.End())
}
