package sandbox

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Mode is whether engines are confined.
type Mode string

// The modes.
const (
	// Preferred confines engines as far as the kernel supports it.
	Preferred Mode = "preferred"
	// Required starts no engine if the kernel lacks Landlock.
	Required Mode = "required"
	// Off confines nothing.
	Off Mode = "off"
)

// String implements flag.Value.
func (m *Mode) String() string { return string(*m) }

// Set implements flag.Value.
func (m *Mode) Set(text string) error {
	if !slices.Contains([]Mode{Preferred, Required, Off}, Mode(text)) {
		return fmt.Errorf("invalid mode %q: must be %s, %s or %s", text, Preferred, Required, Off)
	}
	*m = Mode(text)
	return nil
}

// Type implements pflag.Value.
func (m *Mode) Type() string { return "string" }

// Options describe a Sandbox.
type Options struct {
	Mode Mode
	// Read are additional files and folders that engines may read and execute.
	Read []string
	// Hidden are folders that nothing in Read may contain, such as the one with the runs.
	Hidden []string
	// Work is the manager's work folder, by which it and its supervisor find the processes. It may be
	// empty.
	Work string
}

// Policy is what one process and its child processes can access.
type Policy struct {
	// Program is the file to run.
	Program string
	// Read are files and folders that it may read and execute. Missing ones are ignored.
	Read []string
	// Write are folders in which it may do anything. The first one is its own: see [Mark.In].
	Write []string
}

// Sandbox confines processes. A nil Sandbox confines nothing. It is safe for concurrent use.
type Sandbox struct {
	mode Mode
	abi  int
	// lacks is why the kernel does not support Landlock.
	lacks string
	work  Mark
	read  []string
	// hidden are folders that nothing in read may contain.
	hidden []string
}

// Variable is the environment variable with the order for a launcher, which is a process of this
// program.
const Variable = "MACHINE_IAC_SANDBOX"

// order is what a launcher does.
type order struct {
	Program string   `json:"program"`
	ABI     int      `json:"abi"`
	Mark    Mark     `json:"mark"`
	Read    []string `json:"read"`
	Write   []string `json:"write"`
}

// New returns a Sandbox, or nil if the mode is Off or the system does not support it. Check reports
// whether it can confine as the mode requires.
func New(o Options) (*Sandbox, error) {
	if o.Mode == Off {
		return nil, nil
	}
	s := &Sandbox{mode: o.Mode, work: ofWork(o.Work)}
	s.abi, s.lacks = landlockABI()
	if !available && o.Mode != Required {
		return nil, nil
	}
	for _, path := range append([]string{tokens}, o.Hidden...) {
		absolute, err := filepath.Abs(path)
		if err != nil {
			return nil, fmt.Errorf("resolving the paths that engines may not read: %w", err)
		}
		s.hidden = append(s.hidden, absolute)
	}
	for _, path := range o.Read {
		absolute, err := filepath.Abs(path)
		if err != nil {
			return nil, fmt.Errorf("resolving the paths that engines may read: %w", err)
		}
		for _, hidden := range s.hidden {
			if inside(hidden, absolute) {
				return nil,
					fmt.Errorf("engines cannot be allowed to read %s, because it contains %s; name the files that they need instead",
						absolute, hidden)
			}
		}
		s.read = append(s.read, absolute)
	}
	return s, nil
}

// tokens contains the service account's token, which gives access to the cluster.
const tokens = "/var/run/secrets/kubernetes.io"

// inside reports whether a path is a folder or inside it, as written or with links resolved.
func inside(path, dir string) bool {
	for _, one := range []string{path, followed(path)} {
		for _, other := range []string{dir, followed(dir)} {
			if one == other || other == "/" || strings.HasPrefix(one, other+"/") {
				return true
			}
		}
	}
	return false
}

func followed(path string) string {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		return target
	}
	return path
}

// Reading returns a Sandbox that lets engines read more paths. It ignores empty ones.
func (s *Sandbox) Reading(paths ...string) *Sandbox {
	if s == nil {
		return nil
	}
	named := slices.DeleteFunc(slices.Clone(paths), func(path string) bool { return path == "" })
	return &Sandbox{mode: s.mode, abi: s.abi, lacks: s.lacks, work: s.work, read: slices.Concat(s.read, named),
		hidden: s.hidden}
}

// ABI returns the version of Landlock that confines engines, or zero.
func (s *Sandbox) ABI() int {
	if s == nil {
		return 0
	}
	return s.abi
}

// errNoLandlock says what the kernel lacks and how to fix it.
func errNoLandlock(lacks string) error {
	return fmt.Errorf("engines cannot be confined: the kernel has no Landlock, which --sandbox=required demands: %s; "+
		"see docs/security.md#kernels-without-landlock, or run them unconfined with --sandbox=preferred, which lets them read the service account's token", lacks)
}

// Check returns why engines cannot be started, or nil.
func (s *Sandbox) Check() error {
	if s != nil && s.mode == Required && s.abi == 0 {
		return errNoLandlock(s.lacks)
	}
	return nil
}

// Program returns what to start instead of a program, with the variables of Environment.
func (s *Sandbox) Program(path string) string {
	if s == nil {
		return path
	}
	return ownProgram
}

// Launches reports whether a process is a launcher: it runs this program and is about to become an
// engine.
func Launches(pid int) bool {
	environment, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ"))
	return err == nil && bytes.Contains(append([]byte{0}, environment...), []byte("\x00"+Variable+"="))
}

// Environment returns the variables that make Program's process apply the policy.
func (s *Sandbox) Environment(p Policy) map[string]string {
	if s == nil {
		return nil
	}
	raw, _ := json.Marshal(order{ // strings can always be encoded
		Program: p.Program, ABI: s.abi, Mark: s.mark(p), Read: slices.Concat(systemFiles, []string{p.Program}, s.read,
			p.Read), Write: p.Write,
	})
	return map[string]string{Variable: string(raw)}
}

// Wrap confines a command that has not been started. Its environment must be set already.
func (s *Sandbox) Wrap(command *exec.Cmd, p Policy) {
	if s == nil {
		return
	}
	p.Program = command.Path
	command.Path = ownProgram
	for name, value := range s.Environment(p) {
		command.Env = append(command.Env, name+"="+value)
	}
}
