package pulumi

import (
	"context"
	"os/exec"
	"sync/atomic"
	"testing"
	"time"

	"github.com/machine-iac/machine-iac-operator/test/parentdeath"
)

// beParent runs a command as the CLI is run, prints its id and waits for its end.
func beParent() {
	c := &command{starts: &atomic.Int64{}}
	go func() {
		for c.pid.Load() == 0 {
			time.Sleep(time.Millisecond)
		}
		parentdeath.Print(int(c.pid.Load()))
	}()
	_ = c.execute(exec.CommandContext(context.Background(), "sleep", "300"))
}

func TestTheCLIDiesWithItsManager(t *testing.T) { parentdeath.Expect(t) }
