package offline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/hashicorp/terraform-exec/tfexec"
	tfjson "github.com/hashicorp/terraform-json"
)

// modulesFile is the engine's list of the modules that a root module calls.
var modulesFile = filepath.Join(".terraform", "modules", "modules.json")

// workspace is a folder for one engine at a time. It has links to the initialised module, and a root module of its own.
type workspace struct {
	dir    string
	engine *tfexec.Terraform
	// calls is the number of calls of the module.
	calls int
	// reattach connects to running providers; nil if the engine starts them.
	reattach tfexec.ReattachInfo
	// once means that the workspace holds a state and is not reused. It then owns stubs.
	once  bool
	stubs []*stubProvider
}

// workspace returns a workspace for the inputs. m.release returns it.
func (m *module) workspace(inputs []Input) (*workspace, error) {
	if inputs[0].Existing == nil {
		return m.borrow(len(inputs))
	}
	return m.populate(inputs)
}

// borrow returns a workspace with that many calls. m.release returns it.
func (m *module) borrow(calls int) (*workspace, error) {
	m.mu.Lock()
	var found *workspace
	for n, one := range m.idle {
		if found == nil || one.calls == calls {
			found = one
			m.idle[n], m.idle[len(m.idle)-1] = m.idle[len(m.idle)-1], one
		}
	}
	if found != nil {
		m.idle = m.idle[:len(m.idle)-1]
	}
	m.mu.Unlock()
	if found == nil {
		made, err := m.newWorkspace()
		if err != nil {
			return nil, err
		}
		found = made
		found.reattach = m.reattach
	}
	if found.calls == calls {
		return found, nil
	}
	found.calls = calls
	return found, found.write(m)
}

// release takes a workspace back after the engine has ended.
func (m *module) release(w *workspace) error {
	if w.once {
		for _, one := range w.stubs {
			one.Close()
		}
		return os.RemoveAll(w.dir)
	}
	w.engine.SetStdout(nil)
	err := errors.Join(remove(w.variables()), remove(w.plan()))
	m.mu.Lock()
	defer m.mu.Unlock()
	m.idle = append(m.idle, w)
	return err
}

func remove(file string) error {
	if err := os.Remove(file); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func (m *module) newWorkspace() (*workspace, error) {
	dir, err := m.planner.folder()
	if err != nil {
		return nil, fmt.Errorf("making a folder to plan in: %w", err)
	}
	for _, name := range []string{moduleDir, lockFile} {
		target := filepath.Join(m.dir(), name)
		if _, err := os.Stat(target); errors.Is(err, os.ErrNotExist) { // a module without providers has no lock file
			continue
		}
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			return nil, fmt.Errorf("making a folder to plan in: %w", err)
		}
	}
	engine, err := m.planner.engine(dir, nil, m.planner.options.Sandbox)
	if err != nil {
		return nil, fmt.Errorf("making a folder to plan in: %w", err)
	}
	return &workspace{dir: dir, engine: engine}, nil
}

func (w *workspace) show(ctx context.Context) (*tfjson.Plan, error) {
	w.engine.SetStdout(nil)
	options := []tfexec.ShowOption{tfexec.JSONNumber(true)}
	if w.reattach != nil {
		options = append(options, tfexec.Reattach(w.reattach))
	}
	shown, err := w.engine.ShowPlanFile(ctx, w.plan(), options...)
	if err != nil {
		return nil, fmt.Errorf("reading the plan: %w", err)
	}
	return shown, nil
}

func (w *workspace) variables() string { return filepath.Join(w.dir, "machines.tfvars.json") }
func (w *workspace) plan() string      { return filepath.Join(w.dir, "plan") }

// write writes the root module, and the entries of its calls that an initialisation would write.
func (w *workspace) write(m *module) error {
	root, err := m.source.rootModule(w.calls)
	if err != nil {
		return err
	}
	called, err := calledModules(filepath.Join(m.dir(), modulesFile), w.calls)
	if err == nil {
		err = os.WriteFile(filepath.Join(w.dir, rootFile), root, 0o600)
	}
	if err == nil {
		err = os.MkdirAll(filepath.Dir(filepath.Join(w.dir, modulesFile)), 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(w.dir, modulesFile), called, 0o600)
	}
	if err != nil {
		return fmt.Errorf("writing the root module: %w", err)
	}
	return nil
}

// calledModules returns the engine's list of modules with the entry of the single call repeated.
func calledModules(file string, calls int) ([]byte, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var read struct {
		Modules []map[string]any `json:"Modules"`
	}
	if err := json.Unmarshal(raw, &read); err != nil {
		return nil, err
	}
	var all []map[string]any
	for _, entry := range read.Modules {
		if entry["Key"] != callName(0) {
			all = append(all, entry)
			continue
		}
		for n := range calls {
			call := map[string]any{}
			for name, value := range entry {
				call[name] = value
			}
			call["Key"] = callName(n)
			all = append(all, call)
		}
	}
	read.Modules = all
	return json.Marshal(read)
}
