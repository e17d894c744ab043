// Package libvirt uses the libvirt that hack/libvirt.sh runs, and creates domains with virsh as another actuator would.
package libvirt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Environment variables from hack/libvirt.sh: the URI, a folder that libvirt can access, and a bridge.
const (
	uriVariable    = "LIBVIRT_DEFAULT_URI"
	dirVariable    = "LIBVIRT_DIR"
	bridgeVariable = "LIBVIRT_BRIDGE"
)

// A domain that KVM cannot run ends during or soon after its start.
const (
	probeTime = 3 * time.Second
	probePoll = 250 * time.Millisecond
)

// Memory is the memory of MakeDomain's domains in MiB. They have one CPU.
const Memory = 64

// Host is a libvirt with a storage pool and a network of the same name, as an installer creates them.
type Host struct {
	URI, Name string
	// DomainType is kvm if such a domain runs, otherwise qemu; Reason explains the choice.
	DomainType, Reason string
	// Dir is accessible to libvirt, and Pool contains its volumes.
	Dir, Pool string
}

func Runs() bool { return os.Getenv(uriVariable) != "" }

// Open creates a pool and a network.
func Open(ctx context.Context, name string) (*Host, error) {
	h := &Host{URI: os.Getenv(uriVariable), Dir: os.Getenv(dirVariable), Name: name,
		DomainType: "kvm", Reason: "a domain of this type runs"}
	bridge := os.Getenv(bridgeVariable)
	if h.URI == "" || h.Dir == "" || bridge == "" {
		return nil, errors.New("there is no libvirt: 'hack/libvirt.sh COMMAND' starts one for a command")
	}
	if err := h.tryKVM(ctx); err != nil {
		h.DomainType, h.Reason = "qemu", "KVM runs no domain: "+strings.Join(strings.Fields(err.Error()), " ")
	}
	h.Pool = filepath.Join(h.Dir, name)
	if err := os.Mkdir(h.Pool, 0o755); err != nil {
		return nil, err
	}
	if _, err := h.Virsh(ctx, "pool-create-as", name, "dir", "--target", h.Pool); err != nil {
		return nil, err
	}
	definition := fmt.Sprintf("<network><name>%s</name><forward mode='bridge'/><bridge name='%s'/></network>",
		name, bridge)
	return h, h.define(ctx, "net-create", name+"-network", definition)
}

// tryKVM starts a domain without disks, with the module's processor. On nested machines libvirt may claim that KVM is
// available, but QEMU ends when or soon after it sets up its processor ("failed to set MSR").
func (h *Host) tryKVM(ctx context.Context) error {
	if _, err := h.Virsh(ctx, "domcapabilities", "--virttype", "kvm"); err != nil {
		return err
	}
	name := h.Name + "-probe"
	definition := fmt.Sprintf("<domain type='kvm'><name>%s</name><memory "+
		"unit='MiB'>%d</memory><vcpu>1</vcpu><cpu mode='maximum'/><os><type>hvm</type></os></domain>", name, Memory)
	if err := h.define(ctx, "create", name, definition); err != nil {
		return err
	}
	defer func() { _, _ = h.Virsh(context.WithoutCancel(ctx), "destroy", name) }() // it may have ended
	return h.runsFor(ctx, name, probeTime)
}

// runsFor returns an error unless a domain runs for the whole duration.
func (h *Host) runsFor(ctx context.Context, name string, duration time.Duration) error {
	end := time.NewTimer(duration)
	defer end.Stop()
	again := time.NewTicker(probePoll)
	defer again.Stop()
	for {
		state, err := h.Virsh(ctx, "domstate", name)
		switch {
		case err != nil:
			return fmt.Errorf("the domain has ended: %w", err)
		case state != "running":
			return fmt.Errorf("the domain is %s", state)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-end.C:
			return nil
		case <-again.C:
		}
	}
}

// Environment returns what the provider needs to create domains of DomainType.
func (h *Host) Environment() map[string]string {
	return map[string]string{"TERRAFORM_LIBVIRT_TEST_DOMAIN_TYPE": h.DomainType}
}

func (h *Host) Close(ctx context.Context) error {
	names, err := h.Virsh(ctx, "list", "--all", "--name")
	failed := []error{err}
	for _, name := range strings.Fields(names) {
		_, _ = h.Virsh(ctx, "destroy", name) // it may be off
		_, err := h.Virsh(ctx, "undefine", name)
		failed = append(failed, err)
	}
	for _, command := range []string{"net-destroy", "pool-destroy"} {
		_, err := h.Virsh(ctx, command, h.Name)
		failed = append(failed, err)
	}
	return errors.Join(append(failed, os.RemoveAll(h.Pool))...)
}

func (h *Host) Virsh(ctx context.Context, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, "virsh", append([]string{"--connect", h.URI, "--quiet"}, arguments...)...)
	var out, problems bytes.Buffer
	command.Stdout, command.Stderr = &out, &problems
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("virsh %s: %w: %s", strings.Join(arguments, " "), err,
			strings.TrimSpace(problems.String()))
	}
	return strings.TrimSpace(out.String()), nil
}

// MakeDomain creates and starts a domain with a volume of the same name, as OpenShift's actuator does, and returns its
// UUID.
func (h *Host) MakeDomain(ctx context.Context, name, description string) (string, error) {
	if _, err := h.Virsh(ctx, "vol-create-as", h.Name, name, "64M", "--format", "qcow2"); err != nil {
		return "", err
	}
	definition := fmt.Sprintf(
		`<domain type='%s'><name>%s</name><description>%s</description><memory unit='MiB'>%d</memory><vcpu>1</vcpu>
  <os><type>hvm</type></os>
  <devices>
    <disk type='file' device='disk'><driver name='qemu' type='qcow2'/><source file='%s'/><target dev='vda' bus='virtio'/></disk>
    <interface type='network'><source network='%s'/><model type='virtio'/></interface>
  </devices></domain>`, h.DomainType, name, description, Memory, filepath.Join(h.Pool, name), h.Name)
	if err := h.define(ctx, "define", name, definition); err != nil {
		return "", err
	}
	if _, err := h.Virsh(ctx, "start", name); err != nil {
		return "", err
	}
	return h.Virsh(ctx, "domuuid", name)
}

// define passes a definition to virsh.
func (h *Host) define(ctx context.Context, command, name, definition string) error {
	file := filepath.Join(h.Dir, name+".xml")
	if err := os.WriteFile(file, []byte(definition), 0o600); err != nil {
		return err
	}
	_, err := h.Virsh(ctx, command, file)
	return err
}
