package tofu

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/hashicorp/terraform-exec/tfexec"
)

// slot is the right to run one engine, and what is needed for it.
//
// A tfexec.Terraform is bound to one working folder and asks the CLI for its version once. So there is one for each slot, not for
// each run, and its working folder is a link that is pointed at the run's folder. The engine's own working folder is then the
// run's: the kernel resolves the link when the process starts.
type slot struct {
	engine    *Engine
	link      string
	terraform *tfexec.Terraform
	ready     bool // the CLI has been asked for its version
}

func newSlot(e *Engine, n int) (*slot, error) {
	s := &slot{engine: e, link: e.dir.path("slots", strconv.Itoa(n))}
	if err := s.rest(); err != nil {
		return nil, err
	}
	var err error
	if s.terraform, err = tfexec.NewTerraform(s.link, e.options.Sandbox.Program(e.options.Binary.Path)); err != nil {
		return nil, fmt.Errorf("making an engine slot: %w", err)
	}
	if err := s.terraform.SetWaitDelay(e.options.WaitDelay); err != nil {
		return nil, fmt.Errorf("making an engine slot: %w", err)
	}
	// The socket between engine and plugin is in a folder that is ours alone. Making certificates for it costs as much as the
	// plan itself.
	if err := s.terraform.SetDisablePluginTLS(true); err != nil {
		return nil, fmt.Errorf("making an engine slot: %w", err)
	}
	return s, nil
}

// versionTimeout bounds `version -json`.
const versionTimeout = 30 * time.Second

// use points the slot at a folder and gives it that folder's environment.
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
	// Not cancelled with ctx: terraform-exec leaves a process behind when its context ends while it starts one.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), versionTimeout)
	defer cancel()
	s.engine.starts.Add(1)
	if _, _, err := s.terraform.Version(ctx, false); err != nil {
		return fmt.Errorf("asking %s for its version: %w", s.engine.options.Binary.Path, err)
	}
	s.ready = true
	return nil
}

// rest points the slot at an empty folder.
func (s *slot) rest() error { return s.point(s.engine.dir.idle()) }

// point replaces the link in one step, so that the slot's path leads somewhere at any time.
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
