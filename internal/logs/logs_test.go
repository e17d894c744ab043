package logs

import (
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
)

func TestBodiesOfRequestsAreNeverLogged(t *testing.T) {
	var text strings.Builder
	log := WithoutBodies(funcr.New(func(prefix, line string) { text.WriteString(prefix + line + "\n") }, funcr.Options{Verbosity: 10})).WithName("a").WithValues("b", "c")
	log.V(maxVerbosity).Info("headers")
	log.V(maxVerbosity + 1).Info("bodies")
	log.V(5).V(5).Info("bodies")
	if got := text.String(); !strings.Contains(got, "headers") || strings.Contains(got, "bodies") {
		t.Errorf("logged is %s", got)
	}
}
