package hostile

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	"github.com/machine-iac/machine-iac-operator/internal/engine/pulumi"
	"github.com/machine-iac/machine-iac-operator/internal/engine/sandbox"
	"github.com/machine-iac/machine-iac-operator/test/long"
	"github.com/machine-iac/machine-iac-operator/test/shortdir"
)

// newPulumi returns an engine as the manager creates it, with the hostile plugin among its plugins.
func newPulumi(t *testing.T, confined *sandbox.Sandbox) (engine *pulumi.Engine, work string) {
	t.Helper()
	binary, err := pulumi.Find(t.Context(), tool(t, "pulumi"))
	if err != nil {
		t.Fatalf("%v; run 'make tools'", err)
	}
	plugins := t.TempDir()
	asProgram(t, filepath.Join(plugins, "resource-hostile-v1.0.0"), pluginFile)
	work = shortdir.New(t)
	engine, err = pulumi.New(pulumi.Options{
		Binary: binary, WorkDir: work, Plugins: plugins, Slots: 2, WaitDelay: 10 * time.Second, Sandbox: confined,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 30*time.Second)
		defer cancel()
		if err := engine.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return engine, work
}

func runProgram(t *testing.T, engine *pulumi.Engine, id, program string,
	environment map[string]string) *pulumi.Workspace {
	t.Helper()
	key, err := pulumi.NewKey(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	opened, err := engine.Open(t.Context(), pulumi.RunSpec{
		ID: id, Project: "hostile", Program: fstest.MapFS{
			"Pulumi.yaml": {Data: []byte("name: hostile\nruntime: yaml\n" + program)},
		},
		Variables: []byte("{}"), Key: key, Environment: environment,
		Save: func(context.Context, []byte) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
	})
	return opened
}

func TestPluginsReachNothingButTheirRun(t *testing.T) {
	long.Test(t)
	eachWay(t, func(t *testing.T, confined *sandbox.Sandbox) {
		engine, work := newPulumi(t, confined)
		runProgram(t, engine, "other", "", nil)
		collected := newCollector(t)
		attacks := attacksOn(t, confined, filepath.Join(work, "runs", "other"))
		attacks = append(attacks,
			attack{"another run's checkpoint", "read",
				filepath.Join(work, "runs", "other", "backend", ".pulumi", "stacks", "hostile",
					pulumi.StackName+".json")},
			attack{"another run's temporary files", "list", filepath.Join(work, "t", "0")})
		program := "resources:\n  this:\n    type: hostile:index:Thing\n    options:\n      version: 1.0.0\n"
		hostile := runProgram(t, engine, "hostile", program, collected.environment(t, attacks))
		if _, _, err := hostile.Preview(t.Context()); err == nil {
			t.Error("a plugin that serves nothing is planned with")
		}
		collected.check(t, attacks, confined != nil)
	})
}

func TestProgramsReadNothingButTheirRun(t *testing.T) {
	long.Test(t)
	eachWay(t, func(t *testing.T, confined *sandbox.Sandbox) {
		engine, _ := newPulumi(t, confined)
		program := fmt.Sprintf("variables:\n  stolen:\n    fn::readFile: %s\noutputs:\n  stolen: ${stolen}\n", token(t))
		_, _, err := runProgram(t, engine, "reads", program, nil).Preview(t.Context())
		denied(t, err, confined != nil)
	})
	t.Run("a link in their folder", func(t *testing.T) {
		engine, work := newPulumi(t, newSandbox(t))
		opened := runProgram(t, engine, "link",
			"variables:\n  stolen:\n    fn::readFile: ./link\noutputs:\n  stolen: ${stolen}\n", nil)
		if err := os.Symlink(token(t), filepath.Join(work, "runs", "link", "program", "link")); err != nil {
			t.Fatal(err)
		}
		_, _, err := opened.Preview(t.Context())
		denied(t, err, true)
	})
}
