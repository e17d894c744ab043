package hostile

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/machine-iac/machine-iac-operator/internal/engine/provider"
	"github.com/machine-iac/machine-iac-operator/internal/engine/sandbox"
	"github.com/machine-iac/machine-iac-operator/internal/engine/tofu"
	"github.com/machine-iac/machine-iac-operator/internal/plan/offline"
	"github.com/machine-iac/machine-iac-operator/test/long"
	"github.com/machine-iac/machine-iac-operator/test/shortdir"
)

const (
	lockFile     = ".terraform.lock.hcl"
	hostileLock  = "provider \"registry.opentofu.org/acme/hostile\" {\n  version = \"1.0.0\"\n}\n"
	hostileThing = `
terraform {
  required_providers {
    hostile = {
      source  = "acme/hostile"
      version = "1.0.0"
    }
  }
}

resource "hostile_thing" "this" {}
`
)

// newTofu returns an engine as the manager creates it, with the hostile provider in its mirror.
func newTofu(t *testing.T, confined *sandbox.Sandbox, warm int) (engine *tofu.Engine, work string) {
	t.Helper()
	return newTofuOf(t, confined, warm, hostileMirror(t))
}

func newTofuOf(t *testing.T, confined *sandbox.Sandbox, warm int, mirror string) (engine *tofu.Engine, work string) {
	t.Helper()
	binary, err := tofu.Find(t.Context(), tofu.FindOptions{Path: tool(t, "tofu")})
	if err != nil {
		t.Fatalf("%v; run 'make tools'", err)
	}
	work = shortdir.New(t)
	engine, err = tofu.New(tofu.Options{
		Binary: binary, WorkDir: work, ProviderMirror: mirror, Slots: 3, WaitDelay: time.Second, Sandbox: confined,
		Warm: provider.Options{Max: warm},
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

func hostileMirror(t *testing.T) string {
	t.Helper()
	mirror := t.TempDir()
	asProgram(t, filepath.Join(mirror, "registry.opentofu.org", "acme", "hostile", "1.0.0",
		runtime.GOOS+"_"+runtime.GOARCH), providerFile)
	return mirror
}

func moduleOf(main, lock string) fs.FS {
	return fstest.MapFS{"main.tf": {Data: []byte(main)}, lockFile: {Data: []byte(lock)}}
}

// states is an http backend that accepts states without storing them.
func states(t *testing.T) tofu.Backend {
	t.Helper()
	var mu sync.Mutex
	var kept []byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case r.Method == http.MethodPost:
			kept, _ = io.ReadAll(r.Body)
		case kept == nil:
			w.WriteHeader(http.StatusNotFound)
		default:
			_, _ = w.Write(kept)
		}
	}))
	t.Cleanup(server.Close)
	return tofu.Backend{Address: server.URL}
}

// run opens a run of a module, with or without the hostile provider.
func run(t *testing.T, engine *tofu.Engine, id, main string, more func(*tofu.RunSpec)) *tofu.Workspace {
	t.Helper()
	return runOf(t, engine, id, main, hostileLock, more)
}

func runOf(t *testing.T, engine *tofu.Engine, id, main, lock string, more func(*tofu.RunSpec)) *tofu.Workspace {
	t.Helper()
	digest := "sha256:" + id
	if err := engine.Prepare(t.Context(), tofu.Module{Digest: digest, Files: moduleOf(main, lock)}); err != nil {
		t.Fatal(err)
	}
	spec := tofu.RunSpec{ID: id, Module: digest, Variables: []byte("{}"), Backend: states(t)}
	if more != nil {
		more(&spec)
	}
	opened, err := engine.Open(t.Context(), spec)
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

func TestProvidersReachNothingButTheirRun(t *testing.T) {
	long.Test(t)
	for _, warm := range []int{0, 1} {
		t.Run(fmt.Sprintf("%d warm providers", warm), func(t *testing.T) {
			eachWay(t, func(t *testing.T, confined *sandbox.Sandbox) {
				engine, work := newTofu(t, confined, warm)
				run(t, engine, "other", "", func(spec *tofu.RunSpec) {
					spec.Files = map[string]string{"KEY": "s3cr3t"}
				})
				collected := newCollector(t)
				attacks := attacksOn(t, confined, filepath.Join(work, "runs", "other"))
				attacks = append(attacks,
					attack{"another run's credentials", "read",
						filepath.Join(work, "runs", "other", "secret-files", "KEY")},
					attack{"the list of modules", "list", filepath.Join(work, "modules")},
					attack{"the work folder", "write", work})
				hostile := run(t, engine, "hostile", hostileThing,
					func(spec *tofu.RunSpec) { spec.Environment = collected.environment(t, attacks) })
				if _, err := hostile.Plan(t.Context(), tofu.PlanOptions{}); err == nil {
					t.Error("a provider that serves nothing is planned with")
				}
				collected.check(t, attacks, confined != nil)
				if got := len(collected.reports); got < 1+warm {
					t.Errorf("%d hostile processes have run; one more is to be warm", got)
				}
			})
		})
	}
}

func TestModulesReadNothingButTheirContent(t *testing.T) {
	long.Test(t)
	for name, expression := range map[string]func(secret string) string{
		"file":         func(secret string) string { return fmt.Sprintf("length(file(%q))", secret) },
		"filebase64":   func(secret string) string { return fmt.Sprintf("length(filebase64(%q))", secret) },
		"filesha256":   func(secret string) string { return fmt.Sprintf("length(filesha256(%q))", secret) },
		"templatefile": func(secret string) string { return fmt.Sprintf("length(templatefile(%q, {}))", secret) },
		"fileset": func(secret string) string {
			return fmt.Sprintf("length(fileset(%q, \"*\"))", filepath.Dir(secret))
		},
		"a way up": func(secret string) string {
			return fmt.Sprintf("length(file(\"../../../../../../..%s\"))", secret)
		},
	} {
		t.Run(name, func(t *testing.T) {
			eachWay(t, func(t *testing.T, confined *sandbox.Sandbox) {
				engine, _ := newTofu(t, confined, 0)
				opened := run(t, engine, "functions", readsBy(expression(token(t))), nil)
				_, err := opened.Plan(t.Context(), tofu.PlanOptions{})
				denied(t, err, confined != nil)
			})
		})
	}
}

// readsBy returns a module whose plan fails unless an expression is positive.
func readsBy(expression string) string {
	return "locals {\n  read = " + expression +
		"\n}\noutput \"read\" {\n  value = \"read\"\n  precondition {\n    condition     = local.read > 0\n" +
		"    error_message = \"Nothing is read.\"\n  }\n}\n"
}

func TestProvisionersReadNothingButTheirRun(t *testing.T) {
	long.Test(t)
	eachWay(t, func(t *testing.T, confined *sandbox.Sandbox) {
		engine, _ := newTofu(t, confined, 0)
		main := fmt.Sprintf("resource \"terraform_data\" \"this\" {\n  provisioner \"local-exec\" {\n"+
			"    command = \"cat %s > stolen\"\n  }\n}\n", token(t))
		_, err := run(t, engine, "provisioner", main, nil).Apply(t.Context())
		denied(t, err, confined != nil)
	})
	t.Run("and work in it", func(t *testing.T) {
		engine, _ := newTofu(t, newSandbox(t), 0)
		main := "resource \"terraform_data\" \"this\" {\n  provisioner \"local-exec\" {\n" +
			"    command = \"echo mine > own && cat own\"\n  }\n}\n"
		if _, err := run(t, engine, "provisioner", main, nil).Apply(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestNothingOfARunOutlivesIt(t *testing.T) {
	eachWay(t, func(t *testing.T, confined *sandbox.Sandbox) {
		engine, work := newTofu(t, confined, 0)
		main := "resource \"terraform_data\" \"this\" {\n  provisioner \"local-exec\" {\n" +
			"    command = \"(cd / && exec setsid sleep 600) < /dev/null > /dev/null 2>&1 & echo $! > left\"\n  }\n}\n"
		opened := run(t, engine, "leaves", main, nil)
		if _, err := opened.Apply(t.Context()); err != nil {
			t.Fatal(err)
		}
		raw, err := os.ReadFile(filepath.Join(work, "runs", "leaves", "left"))
		if err != nil {
			t.Fatal(err)
		}
		left, err := strconv.Atoi(strings.TrimSpace(string(raw)))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = syscall.Kill(left, syscall.SIGKILL) }() // it may be gone
		if !runs(left) {
			t.Fatal("nothing is left of the engine, so that the test shows nothing")
		}
		if err := opened.Close(); err != nil {
			t.Fatal(err)
		}
		if got := runs(left); got != (confined == nil) {
			t.Errorf("what the run has left goes on: %t", got)
		}
	})
}

// runs reports whether a process exists and has not ended.
func runs(pid int) bool {
	raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	return err == nil && !strings.Contains(string(raw), ") Z ")
}

func TestPreviewsReadNothingButTheModule(t *testing.T) {
	eachWay(t, func(t *testing.T, confined *sandbox.Sandbox) {
		binary, err := tofu.Find(t.Context(), tofu.FindOptions{Path: tool(t, "tofu")})
		if err != nil {
			t.Fatalf("%v; run 'make tools'", err)
		}
		planner, err := offline.New(offline.Options{
			Binary: binary, CacheDir: t.TempDir(), ProviderMirror: t.TempDir(), Sandbox: confined,
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := planner.Close(); err != nil {
				t.Error(err)
			}
		})
		main := "variable \"machine\" {\n  type = any\n}\nvariable \"provider_spec\" {\n  type = any\n}\n" +
			"variable \"user_data\" {\n  type = string\n}\n" +
			readsBy(fmt.Sprintf("length(file(%q))", token(t)))
		outcome := planner.Plan(t.Context(), offline.Module{
			Files: fstest.MapFS{"main.tf": {Data: []byte(main)}},
		}, []offline.Input{{
			Variables: []byte(
				`{"machine": {"name": "m", "uid": "u", "cluster_id": "c"}, "provider_spec": {}, "user_data": ""}`),
		}})[0]
		denied(t, outcome.Err, confined != nil)
	})
}

// denied compares a result with the expected one.
func denied(t *testing.T, err error, want bool) {
	t.Helper()
	switch {
	case want && err == nil:
		t.Error("it reads what is not its own")
	case !want && err != nil:
		t.Errorf("without a sandbox it fails too, so that the test shows nothing: %v", err)
	}
}

func TestAModuleCannotBeChangedByARun(t *testing.T) {
	eachWay(t, func(t *testing.T, confined *sandbox.Sandbox) {
		engine, work := newTofu(t, confined, 0)
		main := "resource \"terraform_data\" \"this\" {\n  provisioner \"local-exec\" {\n" +
			"    command = \"echo '# changed' >> main.tf\"\n  }\n}\n"
		_, err := run(t, engine, "changes", main, nil).Apply(t.Context())
		denied(t, err, confined != nil)
		found, globErr := filepath.Glob(filepath.Join(work, "modules", "*", "module", "main.tf"))
		if globErr != nil || len(found) != 1 {
			t.Fatal(found, globErr)
		}
		raw, readErr := os.ReadFile(found[0])
		if readErr != nil {
			t.Fatal(readErr)
		}
		if changed := string(raw) != main; changed == (confined != nil) {
			t.Errorf("the module has changed: %t", changed)
		}
	})
}
