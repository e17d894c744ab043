package observe_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/machine-iac/machine-iac-operator/test/observe"
)

func TestProcessesHaveThisOne(t *testing.T) {
	all, err := observe.Processes()
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(all, func(p observe.Process) bool { return p.PID == os.Getpid() })
	if at < 0 {
		t.Fatal("this process is not there")
	}
	own := all[at]
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if own.Parent != os.Getppid() || own.Name != filepath.Base(os.Args[0]) || own.Dir != dir ||
		!slices.Equal(own.Arguments, os.Args) {
		t.Errorf("%+v", own)
	}
}

func TestWhatAProcessIs(t *testing.T) {
	for name, tc := range map[string]struct {
		process observe.Process
		within  bool
	}{
		"in the folder":             {observe.Process{Name: "x", Dir: "/w"}, true},
		"below the folder":          {observe.Process{Name: "x", Dir: "/w/runs/1"}, true},
		"in a folder beside":        {observe.Process{Name: "x", Dir: "/w-b"}, false},
		"an engine of the manager":  {observe.Process{Name: "tofu", Dir: "/", Parent: 7}, true},
		"a plugin of the manager":   {observe.Process{Name: "pulumi-resource-x", Dir: "/", Parent: 7}, true},
		"another's engine":          {observe.Process{Name: "tofu", Dir: "/", Parent: 8}, false},
		"another of the manager's":  {observe.Process{Name: "cat", Dir: "/", Parent: 7}, false},
		"a program's language host": {observe.Process{Name: "pulumi-language-yaml", Dir: "/", Parent: 7}, true},
	} {
		if got := tc.process.Within([]string{"/w"}, []int{7}); got != tc.within {
			t.Errorf("%s: %t", name, got)
		}
	}
	supervisor := observe.Process{Arguments: []string{"machine-iac-supervisor", "/w", "2s"}}
	if supervisor.Supervises() != "/w" ||
		(observe.Process{Arguments: []string{"machine-controllers", "/w"}}).Supervises() != "" {
		t.Error("supervisors are not distinguished")
	}
}
