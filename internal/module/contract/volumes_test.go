package contract_test

import (
	"strings"
	"testing"
	"time"

	"github.com/machine-iac/machine-iac-operator/internal/module/load"
	"github.com/machine-iac/machine-iac-operator/test/moduletest"
)

// waiting is the change that has deletions wait for volumes.
func waiting(seconds string) moduletest.Change {
	return moduletest.Change{"module.yaml", "  capacity:\n", "  attachedVolumes: {waitSeconds: " + seconds + "}\n  capacity:\n"}
}

func TestAModuleSaysHowLongVolumesAreWaitedFor(t *testing.T) {
	if got := moduletest.Load(t).VolumeWait(); got != 0 {
		t.Errorf("a module that says nothing waits %s", got)
	}
	if got := moduletest.Load(t, waiting("600")).VolumeWait(); got != 10*time.Minute {
		t.Errorf("it waits %s, want 10m", got)
	}
	for seconds, want := range map[string]string{
		"0":     "spec.attachedVolumes.waitSeconds is 0; write 1 to 86400, or remove spec.attachedVolumes",
		"86401": "spec.attachedVolumes.waitSeconds is 86401; write 1 to 86400, or remove spec.attachedVolumes",
	} {
		_, err := load.Module(moduletest.FS(moduletest.Changed(t, waiting(seconds))))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("waitSeconds: %s: %v, want %q", seconds, err, want)
		}
	}
}
