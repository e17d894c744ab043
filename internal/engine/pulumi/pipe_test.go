package pulumi

import (
	"bytes"
	"io"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
)

func TestAPipeIsReadToItsEnd(t *testing.T) {
	var got bytes.Buffer
	path := filepath.Join(t.TempDir(), "events")
	for range 2 { // an operation follows on another
		p, err := openPipe(path, func(from io.Reader) { _, _ = io.Copy(&got, from) })
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.in.WriteString(strings.Repeat("x", 1000)); err != nil {
			t.Fatal(err)
		}
		p.close()
	}
	if got.Len() != 2000 {
		t.Errorf("%d bytes were read, want all", got.Len())
	}
}

const events = `{"resourcePreEvent":{"metadata":{"op":"create","urn":"` + urnThis + `","type":"acme:index:Server"}}}
{"summaryEvent":{"isPreview":true,"resourceChanges":{"create":1}}}
`

// writing returns a script that writes events where the CLI would.
func writing(events string) string {
	return `while [ "$1" != --event-log ]; do shift; done
cat > "$2" <<'END'
` + events + `END
`
}

func TestEventsOfAProcess(t *testing.T) {
	cases := map[string]struct {
		script    string
		wantClass failure.Class
		wantStart int
	}{
		"a plan": {script: writing(events) + "exit 0", wantStart: 1},
		"a plan with what is no event, which may matter": {script: writing("{]\n"+events) + "exit 0", wantClass: failure.Unknown, wantStart: 1},
		"no plan":               {script: "exit 0", wantClass: failure.Unknown},
		"a death before a word": {script: "exit 1", wantClass: failure.Unknown},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			report, err := openIdle(t, newIdle(t, tc.script)).Plan(t.Context())
			if failure.ClassOf(err) != tc.wantClass || len(report.Creates()) != tc.wantStart {
				t.Errorf("Plan() = %+v, %v, want %d creates and class %q", report, err, tc.wantStart, tc.wantClass)
			}
		})
	}
}

// TestAPlanThatDiesLeavesNothingRunning counts goroutines: a manager lives for months.
func TestAPlanThatDiesLeavesNothingRunning(t *testing.T) {
	for name, script := range map[string]string{"it fails": "exit 1", "it succeeds without an event": "exit 0"} {
		t.Run(name, func(t *testing.T) {
			workspace := openIdle(t, newIdle(t, script))
			plan := func() {
				if _, err := workspace.Plan(t.Context()); err == nil {
					t.Fatal("there is a plan")
				}
				if _, _, err := workspace.Preview(t.Context()); err == nil {
					t.Fatal("there is a preview")
				}
			}
			plan()
			const more = 10
			before := runtime.NumGoroutine()
			for range more {
				plan()
			}
			// Those that are about to end get the time to.
			for deadline := time.Now().Add(patience); runtime.NumGoroutine() >= before+more && time.Now().Before(deadline); {
				runtime.Gosched()
			}
			if after := runtime.NumGoroutine(); after >= before+more {
				t.Errorf("%d goroutines have become %d", before, after)
			}
		})
	}
}

func TestACLIThatIsGoneIsNamed(t *testing.T) {
	e := newIdle(t, "exit 0")
	workspace := openIdle(t, e)
	workspace.command.binary.Path = "/nonexistent/pulumi"
	if _, err := workspace.Plan(t.Context()); err == nil || !strings.Contains(err.Error(), "/nonexistent/pulumi") {
		t.Errorf("Plan() = %v, want which file is missing", err)
	}
}
