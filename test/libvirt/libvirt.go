// Package libvirt reaches the libvirt that hack/libvirt.sh runs, and makes domains there by virsh, as another actuator does.
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

// The environment variables that hack/libvirt.sh sets: the URI, a folder that libvirt sees as well, and a bridge.
const (
	uriVariable    = "LIBVIRT_DEFAULT_URI"
	dirVariable    = "LIBVIRT_DIR"
	bridgeVariable = "LIBVIRT_BRIDGE"
	// typeVariable is the type of domains that a person wants.
	typeVariable = "E2E_LIBVIRT_TYPE"
)

// A domain that KVM cannot run ends while it starts, or very soon after.
const (
	probeTime = 3 * time.Second
	probePoll = 250 * time.Millisecond
)

// Memory is how many MiB a domain has that MakeDomain makes. It has one processor.
const Memory = 64

// Host is a libvirt with a storage pool and a network of one name, as an installer lays them down.
type Host struct {
	URI, Name string
	// DomainType is kvm where a domain of that type runs, and else qemu; Reason says why it was chosen.
	DomainType, Reason string
	// Dir is seen by libvirt as well, and Pool is where its volumes lie.
	Dir, Pool string
}

// Runs reports whether there is a libvirt.
func Runs() bool { return os.Getenv(uriVariable) != "" }

// Open makes a pool and a network.
func Open(ctx context.Context, name string) (*Host, error) {
	h := &Host{URI: os.Getenv(uriVariable), Dir: os.Getenv(dirVariable), Name: name, DomainType: os.Getenv(typeVariable), Reason: typeVariable + " says so"}
	bridge := os.Getenv(bridgeVariable)
	if h.URI == "" || h.Dir == "" || bridge == "" {
		return nil, errors.New("there is no libvirt to test with: run 'make e2e-libvirt', which starts one")
	}
	if h.DomainType == "" {
		h.DomainType, h.Reason = "kvm", "a domain of this type runs"
		if err := h.tryKVM(ctx); err != nil {
			h.DomainType, h.Reason = "qemu", "KVM runs no domain: "+strings.Join(strings.Fields(err.Error()), " ")
		}
	}
	h.Pool = filepath.Join(h.Dir, name)
	if err := os.Mkdir(h.Pool, 0o755); err != nil {
		return nil, err
	}
	if _, err := h.Virsh(ctx, "pool-create-as", name, "dir", "--target", h.Pool); err != nil {
		return nil, err
	}
	definition := fmt.Sprintf("<network><name>%s</name><forward mode='bridge'/><bridge name='%s'/></network>", name, bridge)
	return h, h.define(ctx, "net-create", name+"-network", definition)
}

// tryKVM starts a domain without disks. On a nested machine libvirt may say that KVM is there, and QEMU ends as its processor is set up
// ("failed to set MSR"), or a moment later.
func (h *Host) tryKVM(ctx context.Context) error {
	if _, err := h.Virsh(ctx, "domcapabilities", "--virttype", "kvm"); err != nil {
		return err
	}
	name := h.Name + "-probe"
	definition := fmt.Sprintf("<domain type='kvm'><name>%s</name><memory unit='MiB'>%d</memory><vcpu>1</vcpu><os><type>hvm</type></os></domain>", name, Memory)
	if err := h.define(ctx, "create", name, definition); err != nil {
		return err
	}
	defer func() { _, _ = h.Virsh(context.WithoutCancel(ctx), "destroy", name) }() // it may have ended
	return h.runsFor(ctx, name, probeTime)
}

// runsFor returns an error when a domain is not running, now or at any moment until then.
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

// Environment is what the provider needs to make domains of the type that works here.
func (h *Host) Environment() map[string]string {
	return map[string]string{"TERRAFORM_LIBVIRT_TEST_DOMAIN_TYPE": h.DomainType}
}

// Close removes all domains, the network and the pool.
func (h *Host) Close(ctx context.Context) error {
	names, err := h.Domains(ctx)
	failed := []error{err}
	for _, name := range names {
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

// Virsh runs virsh and returns what it prints.
func (h *Host) Virsh(ctx context.Context, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, "virsh", append([]string{"--connect", h.URI, "--quiet"}, arguments...)...)
	var out, problems bytes.Buffer
	command.Stdout, command.Stderr = &out, &problems
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("virsh %s: %w: %s", strings.Join(arguments, " "), err, strings.TrimSpace(problems.String()))
	}
	return strings.TrimSpace(out.String()), nil
}

// Domains returns the names of all domains, running or not.
func (h *Host) Domains(ctx context.Context) ([]string, error) {
	out, err := h.Virsh(ctx, "list", "--all", "--name")
	return strings.Fields(out), err
}

// MakeDomain makes a domain as OpenShift's actuator does, with a volume of its name, starts it and returns its UUID.
func (h *Host) MakeDomain(ctx context.Context, name, description string) (string, error) {
	if _, err := h.Virsh(ctx, "vol-create-as", h.Name, name, "64M", "--format", "qcow2"); err != nil {
		return "", err
	}
	definition := fmt.Sprintf(`<domain type='%s'><name>%s</name><description>%s</description><memory unit='MiB'>%d</memory><vcpu>1</vcpu>
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

// define has virsh read a definition.
func (h *Host) define(ctx context.Context, command, name, definition string) error {
	file := filepath.Join(h.Dir, name+".xml")
	if err := os.WriteFile(file, []byte(definition), 0o600); err != nil {
		return err
	}
	_, err := h.Virsh(ctx, command, file)
	return err
}
