package tofu

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/hashicorp/terraform-exec/tfexec"
)

// slot is the right to run one engine.
//
// A tfexec.Terraform is bound to one working folder and runs the CLI to get its version once. To
// avoid that for each run, there is one for each slot. Its working folder is a link that points at
// the run's folder. The kernel resolves the link when the process starts, so the engine's working
// folder is the run's.
type slot struct {
	engine    *Engine
	link      string
	terraform *tfexec.Terraform
	ready     bool // the version of the CLI is known
}

func newSlot(e *Engine, n int) (*slot, error) {
	s := &slot{engine: e, link: e.dir.path("slots", strconv.Itoa(n))}
	if err := s.rest(); err != nil {
		return nil, err
	}
	var err error
	if s.terraform, err = tfexec.NewTerraform(s.link, e.options.Sandbox.Program(e.options.Binary.Path)); err != nil {
		return nil, fmt.Errorf("creating an engine slot: %w", err)
	}
	if err := s.terraform.SetWaitDelay(e.options.WaitDelay); err != nil {
		return nil, fmt.Errorf("creating an engine slot: %w", err)
	}
	// Other runs can connect to the sockets of plugins, but cannot read the TLS keys of engine and
	// plugin. The keys cost as much as a small plan, and nothing if all providers are warm. Unconfined
	// processes can read the keys anyway.
	if err := s.terraform.SetDisablePluginTLS(e.options.Sandbox.ABI() == 0); err != nil {
		return nil, fmt.Errorf("creating an engine slot: %w", err)
	}
	return s, nil
}

// versionTimeout limits `version -json`.
const versionTimeout = 30 * time.Second

// use points the slot at a folder and sets that folder's environment.
func (s *slot) use(ctx context.Context, dir string, environment map[string]string) error {
	if err := s.point(dir); err != nil {
		return err
	}
	if err := s.terraform.SetEnv(environment); err != nil {
		return fmt.Errorf("setting the engine's environment: %w", err)
	}
	if s.ready {
		return nil
	}
	// Not cancelled with ctx: terraform-exec leaves the process behind if its context ends while it is
	// starting.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), versionTimeout)
	defer cancel()
	s.engine.starts.Add(1)
	if _, _, err := s.terraform.Version(ctx, false); err != nil {
		return fmt.Errorf("getting the version of %s: %w", s.engine.options.Binary.Path, err)
	}
	s.ready = true
	return nil
}

// rest points the slot at an empty folder.
func (s *slot) rest() error { return s.point(s.engine.dir.idle()) }

// point replaces the link atomically, so that the slot's path is always valid.
func (s *slot) point(dir string) error {
	next := s.link + ".next"
	if err := os.Remove(next); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("pointing an engine slot at %s: %w", dir, err)
	}
	if err := os.Symlink(dir, next); err != nil {
		return fmt.Errorf("pointing an engine slot at %s: %w", dir, err)
	}
	if err := os.Rename(next, s.link); err != nil {
		return fmt.Errorf("pointing an engine slot at %s: %w", dir, err)
	}
	return nil
}
