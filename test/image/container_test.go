//go:build image

package image

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// boxVariable marks a test binary that becomes the first process of a container.
	boxVariable = "IMAGE_CHECK_BOX"
	// user is the user in the image and the Deployment.
	user = 65532
)

func TestMain(m *testing.M) {
	if raw := os.Getenv(boxVariable); raw != "" {
		code, err := enter(raw)
		if err != nil {
			fmt.Fprintln(os.Stderr, "entering the container:", err)
		}
		os.Exit(code)
	}
	code := m.Run()
	if unpacked != "" {
		if err := os.RemoveAll(unpacked); err != nil {
			fmt.Fprintln(os.Stderr, "removing the unpacked image:", err)
		}
	}
	os.Exit(code)
}

// box is a container: a program in a read-only root file system.
type box struct {
	// Root is the folder with the file system.
	Root    string
	Command []string
	// Environment is the program's whole environment.
	Environment []string
	// Folders are bind mounts of this machine's folders.
	Folders []volume
	// offline disables all networks, including loopback.
	offline bool
}

type volume struct {
	From, To string
	ReadOnly bool
}

// command returns the command that runs the box. Everything in it ends with that process.
func (b box) command(ctx context.Context, t *testing.T) *exec.Cmd {
	t.Helper()
	raw, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(ctx, "/proc/self/exe")
	command.Env = []string{boxVariable + "=" + string(raw)}
	flags := uintptr(unix.CLONE_NEWNS | unix.CLONE_NEWPID)
	if b.offline {
		flags |= unix.CLONE_NEWNET
	}
	command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags}
	return command
}

// run runs a program to its end, and returns its output and exit code.
func (b box) run(t *testing.T) (string, int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	command := b.command(ctx, t)
	out, err := command.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("starting %s in the image: %v", b.Command[0], err)
	}
	return string(out), command.ProcessState.ExitCode()
}

// needRoot skips a test that cannot create containers.
func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("this needs root, to mount file systems and to change the root; run 'make image-check' as root")
	}
	command := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^$")
	command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET}
	if err := command.Run(); errors.Is(err, syscall.EPERM) {
		t.Skip("this machine allows even root no namespaces; run 'make image-check' on one that does")
	}
}

// enter runs as a container's first process: it sets up what a container runtime and the kubelet provide, runs the
// program as the image's user, and returns its exit code.
func enter(raw string) (int, error) {
	var b box
	if err := json.Unmarshal([]byte(raw), &b); err != nil {
		return 1, err
	}
	if err := b.mount(); err != nil {
		return 1, err
	}
	if err := errors.Join(unix.Chroot(b.Root), unix.Chdir("/")); err != nil {
		return 1, err
	}
	runtime.LockOSThread() // this thread must start the process: it may gain no privileges
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return 1, err
	}
	command := exec.Command(b.Command[0], b.Command[1:]...)
	command.Env, command.Stdout, command.Stderr = b.Environment, os.Stdout, os.Stderr
	command.SysProcAttr = &syscall.SysProcAttr{
		Credential: &syscall.Credential{Uid: user, Gid: user, Groups: []uint32{user}},
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM)
	if err := command.Start(); err != nil {
		return 1, err
	}
	go func() {
		for received := range ended {
			_ = command.Process.Signal(received) // it may have ended
		}
	}()
	err := command.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode(), nil
	}
	return 0, err
}

// mount creates the container's file system, which is invisible outside.
func (b box) mount() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keeping mounts to this process: %w", err)
	}
	if err := bind(b.Root, b.Root, false); err != nil {
		return err
	}
	for _, name := range []string{"proc", "dev"} {
		if err := os.MkdirAll(filepath.Join(b.Root, name), 0o755); err != nil {
			return err
		}
	}
	if err := unix.Mount("proc", filepath.Join(b.Root, "proc"), "proc", 0, ""); err != nil {
		return fmt.Errorf("mounting /proc: %w", err)
	}
	if err := unix.Mount("tmpfs", filepath.Join(b.Root, "dev"), "tmpfs", 0, "mode=755"); err != nil {
		return fmt.Errorf("mounting /dev: %w", err)
	}
	for _, device := range []string{"/dev/null", "/dev/zero", "/dev/random", "/dev/urandom"} {
		if err := errors.Join(os.WriteFile(filepath.Join(b.Root, device), nil, 0o666),
			bind(device, filepath.Join(b.Root, device), false)); err != nil {
			return err
		}
	}
	for _, v := range b.Folders {
		to := filepath.Join(b.Root, v.To)
		if err := errors.Join(os.MkdirAll(to, 0o755), bind(v.From, to, v.ReadOnly)); err != nil {
			return err
		}
	}
	return readOnly(b.Root)
}

func bind(from, to string, lock bool) error {
	if err := unix.Mount(from, to, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mounting %s at %s: %w", from, to, err)
	}
	if lock {
		return readOnly(to)
	}
	return nil
}

func readOnly(folder string) error {
	if err := unix.Mount("", folder, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""); err != nil {
		return fmt.Errorf("making %s read-only: %w", folder, err)
	}
	return nil
}

// memory returns a folder that the user may write to, like the kubelet's emptyDir with an fsGroup.
func memory(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	if err := errors.Join(os.Chown(folder, 0, user), os.Chmod(folder, os.ModeSetgid|0o777)); err != nil {
		t.Fatal(err)
	}
	return folder
}
