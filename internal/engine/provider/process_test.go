package provider_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/machine-iac/machine-iac-operator/internal/engine/provider"
	"github.com/machine-iac/machine-iac-operator/internal/engine/workdir"
	"github.com/machine-iac/machine-iac-operator/test/parentdeath"
	"github.com/machine-iac/machine-iac-operator/test/shortdir"
)

func TestMain(m *testing.M) {
	if parentdeath.IsParent() {
		beParent()
		return
	}
	os.Exit(m.Run())
}

const parentFolder = "TEST_PROVIDER_FOLDER"

// beParent has a pool start a provider, as the manager does, prints its id, and waits.
func beParent() {
	pool := provider.NewPool(os.Getenv(parentFolder), provider.Options{Max: 1})
	lease := pool.Lend(context.Background(), provider.Use{Files: map[string]string{"x": plugin()}})
	for _, config := range lease.Reattach() {
		lease.GiveBack()
		parentdeath.Print(config.Pid)
	}
	select {}
}

// plugin returns the file of a real provider; empty where there is none.
func plugin() string {
	files, err := filepath.Glob("../../../bin/mirror/registry.opentofu.org/gavinbunney/kubectl/*/*/terraform-provider-kubectl*")
	if err != nil || len(files) != 1 {
		return ""
	}
	file, err := filepath.Abs(files[0])
	if err != nil {
		return ""
	}
	return file
}

func start(t *testing.T, dir string) *provider.Process {
	t.Helper()
	file := plugin()
	if file == "" {
		t.Fatal("there is no provider in bin/mirror; run 'make tools'")
	}
	p, err := provider.Start(dir, file, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.End(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func TestAnIdleProviderDiesWithTheManager(t *testing.T) {
	if plugin() == "" {
		t.Fatal("there is no provider in bin/mirror; run 'make tools'")
	}
	t.Setenv(parentFolder, shortdir.New(t))
	parentdeath.Expect(t)
}

func TestAStoppedProviderDoesNotRespond(t *testing.T) {
	p := start(t, filepath.Join(shortdir.New(t), "p"))
	if err := p.Responds(t.Context()); err != nil {
		t.Errorf("a provider that is well: %v", err)
	}
	parentdeath.Stop(t, p.Reattach().Pid)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if p.Responds(ctx) == nil {
		t.Error("a provider that is stopped responds")
	}
	if err := p.End(); err != nil {
		t.Fatal(err)
	}
	if !p.Exited() {
		t.Error("a provider that was stopped lives on after its end")
	}
	if p.Responds(t.Context()) == nil {
		t.Error("a provider that has ended responds")
	}
}

func TestAProviderQuits(t *testing.T) {
	for name, tc := range map[string]struct {
		stopped bool
		within  time.Duration
	}{
		"one that is well":    {false, 2 * time.Second}, // or it was killed
		"one that is stopped": {true, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, filepath.Join(shortdir.New(t), "p"))
			if tc.stopped {
				parentdeath.Stop(t, p.Reattach().Pid)
			}
			begun := time.Now()
			p.Quit()
			if took := time.Since(begun); !p.Exited() || took > tc.within {
				t.Errorf("exited: %t, after %s", p.Exited(), took)
			}
		})
	}
}

func TestTheSizeOfAProvider(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has /proc")
	}
	dir := filepath.Join(shortdir.New(t), "p")
	p := start(t, dir)
	size := p.Size()
	if size.Memory < 1<<20 || size.Memory > 1<<30 || size.Files < 3 || size.Processes != 0 {
		t.Errorf("its size is %+v", size)
	}
	child := exec.Command("sleep", "300")
	child.Dir, child.SysProcAttr = dir, workdir.ChildAttributes()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if size := p.Size(); size.Processes != 1 {
		t.Errorf("%d processes are left, want one", size.Processes)
	}
	if err := p.End(); err != nil {
		t.Fatal(err)
	}
	if child.Wait() == nil {
		t.Error("what a provider has left goes on after its end")
	}
}
