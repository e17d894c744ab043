package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/machine-iac/machine-iac-operator/test/parentdeath"
)

// confined returns a sandbox on a kernel that can confine.
func confined(t *testing.T, o Options) *Sandbox {
	t.Helper()
	o.Mode = Preferred
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	if s.ABI() == 0 {
		t.Skip("this kernel has no Landlock")
	}
	return s
}

// try has a process of this test try something, and returns what it prints.
func try(t *testing.T, s *Sandbox, p Policy, what ...string) string {
	t.Helper()
	command := exec.Command(os.Args[0], what...)
	command.Env = []string{probeVariable + "=1"}
	s.Wrap(command, p)
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", what, err, output)
	}
	return strings.TrimSpace(string(output))
}

func TestWhatIsConfined(t *testing.T) {
	s := confined(t, Options{})
	own, other := t.TempDir(), t.TempDir()
	secret := filepath.Join(other, "secret")
	write(t, secret)
	write(t, filepath.Join(own, "file"))
	link := filepath.Join(own, "link")
	if err := os.Symlink(secret, link); err != nil {
		t.Fatal(err)
	}
	policy := Policy{Write: []string{own}}
	parent := "/proc/" + pid()
	for _, one := range []struct {
		what []string
		want string // inside of the sandbox; outside everything is "ok"
		abi  int
	}{
		{what: []string{"read", filepath.Join(own, "file")}, want: "ok"},
		{what: []string{"write", filepath.Join(own, "new")}, want: "ok"},
		{what: []string{"list", own}, want: "ok"},
		{what: []string{"read", "/etc/passwd"}, want: "ok"},
		{what: []string{"write", "/dev/null"}, want: "ok"},
		{what: []string{"read", secret}, want: "permission denied"},
		{what: []string{"read", link}, want: "permission denied"},
		{what: []string{"write", filepath.Join(other, "new")}, want: "permission denied"},
		{what: []string{"list", other}, want: "permission denied"},
		{what: []string{"read", parent + "/environ"}, want: "permission denied"},
		{what: []string{"read", parent + "/maps"}, want: "permission denied"},
		{what: []string{"open", parent + "/mem"}, want: "permission denied"},
		{what: []string{"follow", parent + "/fd/0"}, want: "permission denied"},
		{what: []string{"list", parent + "/root"}, want: "permission denied"},
		{what: []string{"ptrace", pid()}, want: "operation not permitted"},
		{what: []string{"signal", pid()}, want: "operation not permitted", abi: 6},
	} {
		if s.ABI() < one.abi {
			continue
		}
		if got := try(t, s, policy, one.what...); got != one.want {
			t.Errorf("%v in the sandbox: %s, want %s", one.what, got, one.want)
		}
		if got := try(t, nil, policy, one.what...); got != "ok" {
			t.Errorf("%v without a sandbox: %s, so that the case shows nothing", one.what, got)
		}
	}
}

func TestNoPrivilegeIsLeft(t *testing.T) {
	for name, s := range map[string]*Sandbox{"with Landlock": confined(t, Options{}), "without": {mode: Preferred}} {
		got := try(t, s, Policy{Write: []string{t.TempDir()}}, "status")
		if want := "CapPrm:0000000000000000 CapEff:0000000000000000 CapAmb:0000000000000000 NoNewPrivs:1"; got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func TestEnginesGiveWayToTheManager(t *testing.T) {
	if got := try(t, confined(t, Options{}), Policy{}, "niceness"); got != "10" {
		t.Errorf("the niceness of an engine is %s, want 10", got)
	}
}

func TestEnginesAskOnlyThemselvesWhetherProvidersLive(t *testing.T) {
	s := confined(t, Options{})
	for value, want := range map[string]string{
		`{"a.example/b/c":{"Protocol":"grpc","ProtocolVersion":6,"Pid":1,"Test":true}}`: "ok", "": "",
	} {
		command := exec.Command(os.Args[0], "reattach")
		command.Env = []string{probeVariable + "=1", reattachVariable + "=" + value}
		s.Wrap(command, Policy{})
		output, err := command.CombinedOutput()
		if got := strings.TrimSpace(string(output)); err != nil || got != want {
			t.Errorf("%s: %s (%v), want %q", value, got, err, want)
		}
	}
}

func TestLaunchersAreKnown(t *testing.T) {
	for setting, want := range map[string]bool{Variable + "={}": true, "OTHER_" + Variable + "={}": false} {
		other := exec.Command("sleep", "60") // no launcher, so that it stays as it is
		other.Env = []string{setting}
		if err := other.Start(); err != nil {
			t.Fatal(err)
		}
		got := Launches(other.Process.Pid)
		for end := time.Now().Add(10 * time.Second); got != want && time.Now().Before(end); time.Sleep(time.Millisecond) {
			got = Launches(other.Process.Pid) // a process that starts has no environment for a moment
		}
		if got != want {
			t.Errorf("%s makes a launcher: %t, want %t", setting, got, want)
		}
		_ = other.Process.Kill()
		_ = other.Wait() // it was killed
	}
	if Launches(os.Getpid()) {
		t.Error("this process is taken for a launcher")
	}
}

func TestWhatIsReadableIsNamed(t *testing.T) {
	given, later := filepath.Join(t.TempDir(), "given"), filepath.Join(t.TempDir(), "later")
	write(t, given)
	write(t, later)
	s := confined(t, Options{Read: []string{given}}).Reading(later, "/not/there")
	for _, file := range []string{given, later} {
		if got := try(t, s, Policy{}, "read", file); got != "ok" {
			t.Errorf("reading %s: %s", file, got)
		}
	}
}

func TestFoldersThatHideSomethingAreNotReadable(t *testing.T) {
	work := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(filepath.Dir(work), link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/", work, filepath.Dir(work), link, "/var/run", "/var/run/secrets/kubernetes.io"} {
		_, err := New(Options{Mode: Required, Read: []string{path}, Hidden: []string{work}})
		if err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("reading %s: %v, want an error that names it", path, err)
		}
	}
	if _, err := New(Options{Mode: Preferred, Read: []string{filepath.Join(work, "authorities")}, Hidden: []string{work}}); err != nil {
		t.Error(err)
	}
}

func TestWhatIsNotReadableIsHintedAt(t *testing.T) {
	s := (&Sandbox{abi: 1, hidden: []string{"/srv/manager"}}).Reading("/given", "")
	for text, want := range map[string]string{
		"Error reading CA Cert: open /etc/keys/ca.pem: permission denied":    "engines cannot read /etc/keys/ca.pem; add the file or its folder to --sandbox-read",
		"cannot open '/keys/id_rsa': Permission denied":                      "engines cannot read /keys/id_rsa; add the file or its folder to --sandbox-read",
		"unable to read \"/keys/id_rsa\" (Permission denied)":                "engines cannot read /keys/id_rsa; add the file or its folder to --sandbox-read",
		"open (sensitive): permission denied":                                "engines can only read files that --sandbox-read names; add the one that the credentials refer to",
		"open /given/ca.pem: permission denied":                              "",
		"open /srv/manager/runs/other/secret: permission denied":             "",
		"open /etc/ssl/private/key: permission denied":                       "",
		"Permission denied on resource project p":                            "",
		"open /etc/keys/ca.pem: no such file or directory":                   "",
		"dial tcp 10.0.0.1:443: connect: permission denied, says the server": "",
	} {
		if got := s.Hint(text); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	var off *Sandbox
	for _, none := range []*Sandbox{off, {mode: Preferred}} {
		if got := none.Hint("open /etc/keys/ca.pem: permission denied"); got != "" {
			t.Errorf("without Landlock: %q", got)
		}
	}
}

func TestAKernelWithoutLandlock(t *testing.T) {
	if err := (&Sandbox{mode: Required}).Check(); err == nil || !strings.Contains(err.Error(), "--sandbox=preferred") {
		t.Errorf("required: %v, want an error with the fix", err)
	}
	if err := (&Sandbox{mode: Preferred}).Check(); err != nil {
		t.Errorf("preferred: %v", err)
	}
	off, err := New(Options{Mode: Off})
	if off != nil || err != nil || off.Check() != nil {
		t.Errorf("off: %v, %v", off, err)
	}
}

func TestAWrongFolderEndsTheLauncher(t *testing.T) {
	command := exec.Command("/bin/true")
	confined(t, Options{}).Wrap(command, Policy{Write: []string{"/not/there"}})
	output, err := command.CombinedOutput()
	if code := command.ProcessState.ExitCode(); err == nil || code != exitCode || !strings.Contains(string(output), "/not/there") {
		t.Errorf("exit code %d, %s; want %d and the folder's name", code, output, exitCode)
	}
}

func TestAConfinedProcessDiesWithItsParent(t *testing.T) { parentdeath.Expect(t) }

func TestTreesOfLinks(t *testing.T) {
	elsewhere, tree := t.TempDir(), t.TempDir()
	file := filepath.Join(elsewhere, "provider")
	write(t, file)
	for name, target := range map[string]string{"outside": file, "inside": tree, "broken": "/not/there"} {
		if err := os.Symlink(target, filepath.Join(tree, name)); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := Tree(tree), []string{tree, file}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestFilesThatVariablesName(t *testing.T) {
	dir := t.TempDir()
	got := Named(map[string]string{"A": dir + ":/not/there", "B": "relative:/", "C": "https://proxy.example", "D": dir})
	if want := []string{dir}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func write(t *testing.T, file string) {
	t.Helper()
	if err := os.WriteFile(file, []byte("s3cr3t"), 0o600); err != nil {
		t.Fatal(err)
	}
}
