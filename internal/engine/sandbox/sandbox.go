package sandbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Mode says whether engines are confined.
type Mode string

// The modes.
const (
	// Preferred confines engines as far as the kernel can.
	Preferred Mode = "preferred"
	// Required starts no engine where the kernel has no Landlock.
	Required Mode = "required"
	// Off confines nothing.
	Off Mode = "off"
)

// String implements flag.Value.
func (m *Mode) String() string { return string(*m) }

// Set implements flag.Value.
func (m *Mode) Set(text string) error {
	if !slices.Contains([]Mode{Preferred, Required, Off}, Mode(text)) {
		return fmt.Errorf("it is %q; set it to %s, %s or %s", text, Preferred, Required, Off)
	}
	*m = Mode(text)
	return nil
}

// Type implements pflag.Value.
func (m *Mode) Type() string { return "string" }

// Options describe a Sandbox.
type Options struct {
	Mode Mode
	// Read are files and folders that engines may read, and run programs from, beside what their policies name.
	Read []string
	// Hidden are folders that nothing of Read may contain, such as that with the runs.
	Hidden []string
}

// Policy says what one process, with all that it starts, may reach.
type Policy struct {
	// Program is the file that is started.
	Program string
	// Read are files and folders that it may read, and run programs from. What does not exist is left out.
	Read []string
	// Write are folders in which it may do anything.
	Write []string
}

// Sandbox confines processes. A nil one confines nothing. It is safe for concurrent use.
type Sandbox struct {
	mode Mode
	abi  int
	read []string
	// hidden are folders that nothing of read may contain.
	hidden []string
}

// Variable is the environment variable with the order of a launcher, which is a process of this program.
const Variable = "MACHINE_IAC_SANDBOX"

// order is what a launcher does.
type order struct {
	Program string   `json:"program"`
	ABI     int      `json:"abi"`
	Read    []string `json:"read"`
	Write   []string `json:"write"`
}

// New returns a Sandbox, nil where the mode is Off or this system has none. Whether it confines as its mode demands, Check says.
func New(o Options) (*Sandbox, error) {
	if o.Mode == Off {
		return nil, nil
	}
	s := &Sandbox{mode: o.Mode, abi: landlockABI()}
	if !available && o.Mode != Required {
		return nil, nil
	}
	for _, path := range append([]string{tokens}, o.Hidden...) {
		absolute, err := filepath.Abs(path)
		if err != nil {
			return nil, fmt.Errorf("finding what engines may not read: %w", err)
		}
		s.hidden = append(s.hidden, absolute)
	}
	for _, path := range o.Read {
		absolute, err := filepath.Abs(path)
		if err != nil {
			return nil, fmt.Errorf("finding what engines may read: %w", err)
		}
		for _, hidden := range s.hidden {
			if inside(hidden, absolute) {
				return nil, fmt.Errorf("engines cannot be allowed to read %s, since %s is in it; name what they need in there", absolute, hidden)
			}
		}
		s.read = append(s.read, absolute)
	}
	return s, nil
}

// tokens has the service account's token, which opens the cluster.
const tokens = "/var/run/secrets/kubernetes.io"

// inside reports whether a path is a folder or in it, as named or with its links followed.
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

// Reading returns a Sandbox with more that engines may read. Empty paths are left out.
func (s *Sandbox) Reading(paths ...string) *Sandbox {
	if s == nil {
		return nil
	}
	named := slices.DeleteFunc(slices.Clone(paths), func(path string) bool { return path == "" })
	return &Sandbox{mode: s.mode, abi: s.abi, read: slices.Concat(s.read, named), hidden: s.hidden}
}

// ABI returns the version of Landlock that confines engines, zero for none.
func (s *Sandbox) ABI() int {
	if s == nil {
		return 0
	}
	return s.abi
}

var errNoLandlock = errors.New("engines cannot be confined: the kernel has no Landlock, which --sandbox=required demands; " +
	"use a kernel of version 5.13 or later with \"landlock\" among its security modules (boot parameter lsm=) and a seccomp profile that allows its calls, " +
	"or set --sandbox=preferred")

// Check returns why no engine may be started, nil where each may.
func (s *Sandbox) Check() error {
	if s != nil && s.mode == Required && s.abi == 0 {
		return errNoLandlock
	}
	return nil
}

// Program returns what is started in place of a program, with the variables of Environment.
func (s *Sandbox) Program(path string) string {
	if s == nil {
		return path
	}
	return ownProgram
}

// Launches reports whether a process is a launcher, which is of this program and about to become an engine.
func Launches(pid int) bool {
	environment, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ"))
	return err == nil && bytes.Contains(append([]byte{0}, environment...), []byte("\x00"+Variable+"="))
}

// Environment returns the variables by which Program's process becomes that of the policy.
func (s *Sandbox) Environment(p Policy) map[string]string {
	if s == nil {
		return nil
	}
	raw, _ := json.Marshal(order{ // texts always can be
		Program: p.Program, ABI: s.abi, Read: slices.Concat(systemFiles, []string{p.Program}, s.read, p.Read), Write: p.Write,
	})
	return map[string]string{Variable: string(raw)}
}

// Wrap has a command that is not started yet confined. Its environment is set already.
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
